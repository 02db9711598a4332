package http

import (
	"maps"
	nethttp "net/http"
)

// contained writes the response of a component, which shares weir's origin: a
// browser must not run it as a page of weir, and it must not change how the
// browser treats weir.
type contained struct {
	nethttp.ResponseWriter
	done bool
}

// originWide are headers that affect a whole origin or host.
var originWide = map[string]bool{
	"Alt-Svc":                   true,
	"Clear-Site-Data":           true,
	"Expect-Ct":                 true,
	"Nel":                       true,
	"Public-Key-Pins":           true,
	"Report-To":                 true,
	"Reporting-Endpoints":       true,
	"Service-Worker-Allowed":    true,
	"Set-Cookie":                true,
	"Set-Cookie2":               true,
	"Strict-Transport-Security": true,
}

// contain edits the headers before they are sent. Policies are cumulative, so a
// policy of the component can only be stricter.
func (c *contained) contain() {
	if c.done {
		return
	}
	c.done = true
	h := c.Header()
	maps.DeleteFunc(h, func(name string, _ []string) bool { return originWide[nethttp.CanonicalHeaderKey(name)] })
	h.Add("Content-Security-Policy", "sandbox")
	h.Set("X-Content-Type-Options", "nosniff")
}

// WriteHeader sends the headers.
func (c *contained) WriteHeader(status int) {
	if status >= 200 || status == nethttp.StatusSwitchingProtocols {
		c.contain()
	} else {
		// The headers of an informational response are sent as well.
		maps.DeleteFunc(c.Header(), func(name string, _ []string) bool { return originWide[nethttp.CanonicalHeaderKey(name)] })
	}
	c.ResponseWriter.WriteHeader(status)
}

// Write sends a part of the body.
func (c *contained) Write(b []byte) (int, error) {
	c.contain()
	return c.ResponseWriter.Write(b)
}

// FlushError flushes the response, for http.ResponseController.
func (c *contained) FlushError() error {
	c.contain()
	return nethttp.NewResponseController(c.ResponseWriter).Flush()
}

// Flush is FlushError for callers that ignore errors.
func (c *contained) Flush() { _ = c.FlushError() }

// Unwrap supports the deadlines of http.ResponseController.
func (c *contained) Unwrap() nethttp.ResponseWriter { return c.ResponseWriter }

// hideCredentials removes weir's own credentials from a request for a
// component. Other credentials are checked by the component.
func (s *Service) hideCredentials(r *nethttp.Request, who caller) {
	if who.login || s.hasToken(r) {
		r.Header.Del("Authorization")
	}
	cookies := r.Cookies()
	r.Header.Del("Cookie")
	for _, c := range cookies {
		if c.Name != sessionCookie {
			r.AddCookie(c)
		}
	}
}
