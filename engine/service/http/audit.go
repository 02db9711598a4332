package http

import (
	nethttp "net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/weir-run/weir/engine/audit"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/service"
)

// Audit is the response of /api/v0/audit.
type Audit struct {
	Entries []audit.Entry `json:"entries"` // the last 200, the oldest first
}

func (s *Service) serveAudit(_ service.Host, w nethttp.ResponseWriter, _ *nethttp.Request) {
	if s.o.Audit == nil {
		nethttp.Error(w, "this weir has no audit log", nethttp.StatusNotFound)
		return
	}
	writeJSON(w, Audit{append([]audit.Entry{}, s.o.Audit.Entries()...)})
}

// audited serves a request and adds it to the audit log.
func (s *Service) audited(w nethttp.ResponseWriter, r *nethttp.Request, h func(nethttp.ResponseWriter)) {
	who := callerOf(r)
	a := &outcome{ResponseWriter: w, status: nethttp.StatusOK}
	e := audit.Entry{Time: s.o.Clock.Now(), Who: who.name, Request: r.Method + " " + shownRequest(r.URL), Outcome: "done"}
	if from, err := netip.ParseAddrPort(r.RemoteAddr); who.via == overTCP && err == nil {
		e.Remote = from.Addr().Unmap().String()
	}
	if who.name == "" {
		e.Who = "link"
	}
	defer func() {
		if id, _, ok := sessionPath(w.Header().Get("Location")); ok {
			e.Who = sessionName(id)
		}
		if e.Status = a.status; a.status >= 400 {
			text := string(a.text)
			if a.reason != "" {
				text = "refused: " + a.reason
			}
			e.Outcome, e.Message = "refused", component.HideURLs(strings.TrimSpace(text))
		}
		s.o.Audit.Add(e)
	}()
	h(a)
}

// shownRequest returns the path and the parameters of a request without what may be
// secret.
func shownRequest(u *url.URL) string {
	q := u.Query()
	for _, name := range []string{"value", "token"} {
		if q.Has(name) {
			q.Set(name, "(hidden)")
		}
	}
	if len(q) == 0 {
		return u.Path
	}
	return component.HideURLs(u.Path + "?" + q.Encode())
}

// outcome notes the status of a response, and the text of a refusal.
type outcome struct {
	nethttp.ResponseWriter
	status int
	text   []byte
	reason string // if text is a page
}

// WriteHeader sends the headers.
func (o *outcome) WriteHeader(status int) {
	if status >= 200 {
		o.status = status
	}
	o.ResponseWriter.WriteHeader(status)
}

// Write sends a part of the body.
func (o *outcome) Write(b []byte) (int, error) {
	if o.status >= 400 && len(o.text) < 1<<10 {
		o.text = append(o.text, b[:min(len(b), 1<<10)]...)
	}
	return o.ResponseWriter.Write(b)
}

// Unwrap supports http.ResponseController.
func (o *outcome) Unwrap() nethttp.ResponseWriter { return o.ResponseWriter }

// explain sets the reason of a refusal for the audit log. Without it, the log has the
// beginning of the response, which may be a page.
func explain(w nethttp.ResponseWriter, reason string) {
	for {
		if o, ok := w.(*outcome); ok {
			o.reason = reason
			return
		}
		inner, ok := w.(interface{ Unwrap() nethttp.ResponseWriter })
		if !ok {
			return
		}
		w = inner.Unwrap()
	}
}
