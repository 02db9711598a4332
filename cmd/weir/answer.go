package main

import (
	"bytes"
	"errors"
	"net/http"
)

// answer is what a handler in this process has answered.
type answer struct {
	header http.Header
	status int
	body   bytes.Buffer
	limit  int  // of the body, in bytes; 0: there is none
	cut    bool // whether the body would be larger
}

// askHandler returns the answer of a handler to a request. limit is that of the body, in
// bytes; 0: there is none.
func askHandler(h http.Handler, r *http.Request, limit int) *answer {
	a := &answer{header: http.Header{}, status: http.StatusOK, limit: limit}
	h.ServeHTTP(a, r)
	return a
}

// Header returns the headers.
func (a *answer) Header() http.Header { return a.header }

// WriteHeader sets the status.
func (a *answer) WriteHeader(status int) { a.status = status }

// Write adds to the body. It fails at the limit, so that the handler ends.
func (a *answer) Write(b []byte) (int, error) {
	if a.limit > 0 && a.body.Len()+len(b) > a.limit {
		a.cut = true
		return 0, errors.New("the answer is too large")
	}
	return a.body.Write(b)
}

// Flush lets handlers of streams write.
func (a *answer) Flush() {}
