package http

import (
	nethttp "net/http"

	"github.com/weir-run/weir/engine/api"
	"github.com/weir-run/weir/engine/service/ui"
)

const (
	liveDataOff = "live data is off: set live_data = true in the block ui of the config, or use the command line on the machine that weir runs on"
	editOff     = "changes of files are off: set edit = true in the block ui of the config"
	changesOff  = "changes over the network are off: set edit = true in the block ui of the config, or use the command line or the web UI on the machine that weir runs on"
)

// allowed returns what the block ui allows to a caller. The control socket may do
// everything: its user can read and write the files.
func (s *Service) allowed(r *nethttp.Request) ui.Arguments {
	if s.o.Allowed == nil || callerOf(r).via == overSocket {
		return ui.Arguments{LiveData: true, Edit: true}
	}
	return s.o.Allowed()
}

// changesAllowed reports whether a caller with credentials may change something that is not
// a file. On the machine itself, everyone with credentials may, and anywhere the owner of
// the token, who can read the storage directory. A session or a login over a network may
// with edit.
func (s *Service) changesAllowed(r *nethttp.Request) bool {
	who := callerOf(r)
	page := who.base != "" || who.login
	return !page || !overNetwork(r) || s.allowed(r).Edit
}

// overNetwork reports whether a request may come from another machine, also through a proxy on
// this one.
func overNetwork(r *nethttp.Request) bool {
	return !onMachine(r) || r.Header.Get("X-Forwarded-For") != "" || r.Header.Get("Forwarded") != ""
}

// forbids returns why the block ui does not allow an operation, or "".
func (s *Service) forbids(r *nethttp.Request, op api.Operation) string {
	switch a := s.allowed(r); {
	case op.Records && !a.LiveData:
		return liveDataOff
	case op.Writes && !a.Edit:
		return editOff
	case op.Changes(r.Method) && !s.changesAllowed(r):
		return changesOff
	}
	return ""
}

// permit calls h, unless the block ui does not allow the operation. Changes are audited, also
// those that are refused.
func (s *Service) permit(w nethttp.ResponseWriter, r *nethttp.Request, op api.Operation, h func(nethttp.ResponseWriter)) {
	if why := s.forbids(r, op); why != "" {
		h = func(w nethttp.ResponseWriter) { nethttp.Error(w, why, nethttp.StatusForbidden) }
	}
	s.noted(w, r, op, h)
}

// noted calls h, and audits it if the operation changes something. A panic of h is a
// response, which is audited as well.
func (s *Service) noted(w nethttp.ResponseWriter, r *nethttp.Request, op api.Operation, h func(nethttp.ResponseWriter)) {
	h = s.guarded(r, h)
	if s.o.Audit != nil && op.Changes(r.Method) {
		s.audited(w, r, h)
		return
	}
	h(w)
}

// gated returns the handler of a route, which does what the block ui allows and audits changes.
// Components do both by themselves on routes for everyone, and describe what they do on routes
// for callers with credentials.
func (s *Service) gated(rt route) nethttp.HandlerFunc {
	if rt.access == served || rt.pattern == controlPattern {
		return rt.handler
	}
	do := s.permit
	if rt.access == public { // the caller has no credentials yet
		do = s.noted
	}
	return func(w nethttp.ResponseWriter, r *nethttp.Request) {
		do(w, r, rt.Operation, func(w nethttp.ResponseWriter) { rt.handler(w, r) })
	}
}
