package http

import (
	"encoding/json"
	nethttp "net/http"
	"strconv"
	"strings"

	"github.com/weir-run/weir/engine/api"
)

// acceptsJSON reports whether a caller understands JSON. Browsers that open a page accept
// anything, which does not count.
func acceptsJSON(r *nethttp.Request) bool {
	return strings.Contains(r.Header.Get("Accept"), "application/json")
}

// jsonErrors converts errors in plain text, as nethttp.Error writes them, to an
// api.Error. Other responses pass unchanged.
type jsonErrors struct {
	nethttp.ResponseWriter
	status int // of the error; 0 for other responses
	sent   bool
	text   []byte
}

// maxErrorText is how much of an error is kept. No error is that long.
const maxErrorText = 1 << 20

// WriteHeader sends the headers, or keeps the status of an error.
func (j *jsonErrors) WriteHeader(status int) {
	if j.sent || j.status != 0 {
		return
	}
	if status >= 400 && strings.HasPrefix(j.Header().Get("Content-Type"), "text/plain") {
		j.status = status
		return
	}
	j.sent = status >= 200
	j.ResponseWriter.WriteHeader(status)
}

// Write sends a part of the body, or keeps a part of an error.
func (j *jsonErrors) Write(b []byte) (int, error) {
	if j.status == 0 {
		j.sent = true
		return j.ResponseWriter.Write(b)
	}
	if len(j.text)+len(b) <= maxErrorText {
		j.text = append(j.text, b...)
	}
	return len(b), nil
}

// finish sends the error, if there is one.
func (j *jsonErrors) finish() {
	if j.status == 0 {
		return
	}
	text, _ := json.Marshal(api.Error{Error: api.ErrorDetail{Status: j.status, Message: strings.TrimSpace(string(j.text))}}) // it has what JSON can express
	text = append(text, '\n')
	j.Header().Set("Content-Type", "application/json")
	j.Header().Set("Content-Length", strconv.Itoa(len(text)))
	j.ResponseWriter.WriteHeader(j.status)
	_, _ = j.ResponseWriter.Write(text) // an error is the client's: it went away
}

// FlushError flushes the response, for http.ResponseController. An error is not sent in
// parts.
func (j *jsonErrors) FlushError() error {
	if j.status != 0 {
		return nil
	}
	j.sent = true
	return nethttp.NewResponseController(j.ResponseWriter).Flush()
}

// Unwrap supports the deadlines of http.ResponseController.
func (j *jsonErrors) Unwrap() nethttp.ResponseWriter { return j.ResponseWriter }
