package main

import (
	"bytes"
	"net/http"
)

// answer is what a handler in this process has answered.
type answer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// askHandler returns the answer of a handler to a request.
func askHandler(h http.Handler, r *http.Request) *answer {
	a := &answer{header: http.Header{}, status: http.StatusOK}
	h.ServeHTTP(a, r)
	return a
}

// Header returns the headers.
func (a *answer) Header() http.Header { return a.header }

// WriteHeader sets the status.
func (a *answer) WriteHeader(status int) { a.status = status }

// Write adds to the body.
func (a *answer) Write(b []byte) (int, error) { return a.body.Write(b) }
