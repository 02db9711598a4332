package http

import (
	"fmt"
	nethttp "net/http"
	"runtime/debug"
)

// guarded returns h with a response for panics, which are bugs in weir. Without it, net/http
// closes the connection, and a browser shows that weir cannot be reached.
func (s *Service) guarded(r *nethttp.Request, h func(nethttp.ResponseWriter)) func(nethttp.ResponseWriter) {
	return func(w nethttp.ResponseWriter) {
		begun := &begun{ResponseWriter: w}
		defer func() {
			v := recover()
			if v == nil {
				return
			}
			if v == nethttp.ErrAbortHandler {
				panic(v)
			}
			s.log.Error("BUG: a request panicked", "request", r.Method+" "+r.URL.Path, "err", v, "stack", string(debug.Stack()))
			if begun.yes {
				panic(nethttp.ErrAbortHandler) // the client sees that the response is incomplete
			}
			nethttp.Error(w, fmt.Sprintf("weir has a bug: the request panicked: %v. The log of weir has the details; please report them.", v), nethttp.StatusInternalServerError)
		}()
		h(begun)
	}
}

// begun notes that a part of the response was sent.
type begun struct {
	nethttp.ResponseWriter
	yes bool
}

// WriteHeader sends the headers.
func (b *begun) WriteHeader(status int) {
	b.yes = b.yes || status >= 200
	b.ResponseWriter.WriteHeader(status)
}

// Write sends a part of the body.
func (b *begun) Write(p []byte) (int, error) {
	b.yes = true
	return b.ResponseWriter.Write(p)
}

// FlushError flushes the response, for http.ResponseController.
func (b *begun) FlushError() error {
	b.yes = true
	return nethttp.NewResponseController(b.ResponseWriter).Flush()
}

// Unwrap supports http.ResponseController.
func (b *begun) Unwrap() nethttp.ResponseWriter { return b.ResponseWriter }
