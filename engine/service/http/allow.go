package http

import (
	nethttp "net/http"
	"strings"

	"github.com/weir-run/weir/engine/service/ui"
)

const (
	liveDataOff = "live data is off: set live_data = true in the block ui of the config, or use the command line on the machine that weir runs on"
	editOff     = "changes of files are off: set edit = true in the block ui of the config"
)

// allowed returns what a caller with credentials may do. The control socket may do
// everything: its user can read and write the files.
func (s *Service) allowed(r *nethttp.Request) ui.Arguments {
	if s.o.Allowed == nil || callerOf(r).via == overSocket {
		return ui.Arguments{LiveData: true, Edit: true}
	}
	return s.o.Allowed()
}

// withLiveData returns a handler that refuses callers who may not see records.
func (s *Service) withLiveData(h nethttp.HandlerFunc) nethttp.HandlerFunc {
	return func(w nethttp.ResponseWriter, r *nethttp.Request) {
		if !s.allowed(r).LiveData {
			nethttp.Error(w, liveDataOff, nethttp.StatusForbidden)
			return
		}
		h(w, r)
	}
}

// refusesControl returns why a caller may not use a route of a node, or "". path is the part
// of the path after the ID of the node.
func (s *Service) refusesControl(r *nethttp.Request, path string) string {
	part, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	read := r.Method == nethttp.MethodGet || r.Method == nethttp.MethodHead
	switch a := s.allowed(r); part {
	case "source":
		if !read && !a.Edit {
			return editOff
		}
	case "debug", "playground":
		if !a.LiveData {
			return liveDataOff
		}
	case "quarantine", "state", "state-export":
		if read && !a.LiveData {
			return liveDataOff
		}
	}
	return ""
}
