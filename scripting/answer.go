package scripting

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// reply is what a hook http answers.
type reply struct {
	status int
	header http.Header
	body   string
}

// answerParam is the table that a hook http may return.
var answerParam = Param{Kind: KindMap, Fields: []Param{
	{Name: "status", Kind: KindInt, Optional: true, Doc: "The status, 200 to 599. Default: 200."},
	{Name: "headers", Kind: KindMap, Optional: true, Of: &Param{Kind: KindString}, Doc: "Headers by name."},
	{Name: "body", Kind: KindString, Optional: true, Doc: "The text to answer."},
	{Name: "json", Kind: KindAny, Doc: "A value to answer as JSON."},
}}

// Request is the type of what a hook http is called with.
func Request() *ObjectType { return requestType }

// ownAnswerHeaders are what only the server sets: with them an answer could be
// understood otherwise than it was meant.
var ownAnswerHeaders = []string{"Connection", "Content-Length", "Transfer-Encoding", "Trailer", "Upgrade", "Keep-Alive", "Date"}

const (
	plainText = "text/plain; charset=utf-8"
	jsonText  = "application/json"
)

// newReply makes the answer of what a hook returned; encode is that of the
// module json, nil without.
func newReply(v Value, encode *Function) (*reply, error) {
	a := &reply{status: http.StatusOK, header: http.Header{}}
	switch v := v.(type) {
	case nil:
		return a, nil
	case string:
		a.body = v
		a.header.Set("Content-Type", plainText)
		return a, a.fits()
	case int64, float64:
		status, msg := (&Param{Kind: KindInt}).convert(v)
		if msg != "" {
			return nil, fmt.Errorf("cannot answer %v: a status %s", v, msg)
		}
		a.status = int(max(min(status.(int64), 1000), 0))
		return a, a.fits()
	}
	x, msg := answerParam.convert(v)
	m, ok := x.(*Map)
	if msg != "" || !ok {
		if _, is := v.(*Map); is {
			return nil, fmt.Errorf("cannot answer this: the table %s", msg)
		}
		return nil, fmt.Errorf("cannot answer with a %s: return nothing, a text, a status, or a table with status, headers, and body or json", nameOf(v))
	}
	return a, a.fill(m, encode)
}

func (a *reply) fill(m *Map, encode *Function) error {
	if n, ok := option[int64](m, "status"); ok {
		a.status = int(max(min(n, 1000), 0))
	}
	body, hasBody := option[string](m, "body")
	value, hasJSON := m.Get("json")
	hasJSON = hasJSON && value != nil
	switch {
	case hasBody && hasJSON:
		return errors.New("cannot answer both body and json")
	case hasBody:
		a.body = body
		a.header.Set("Content-Type", plainText)
	case hasJSON && encode == nil:
		return errors.New("cannot answer json: there is no module json")
	case hasJSON:
		text, err := encode.Call(nil, []Value{value})
		if err != nil {
			return fmt.Errorf("cannot answer json: %w", err)
		}
		a.body = text.(string)
		a.header.Set("Content-Type", jsonText)
	}
	if headers, ok := option[*Map](m, "headers"); ok {
		size := 0
		for _, name := range headers.Keys() {
			v, _ := headers.Get(name)
			size += len(name) + len(v.(string))
			switch value := v.(string); {
			case size > maxHeaderBytes:
				return headersTooLong()
			case !httpguts.ValidHeaderFieldName(name):
				return fmt.Errorf("cannot use %q as the name of a header", name)
			case slices.Contains(ownAnswerHeaders, http.CanonicalHeaderKey(name)):
				return fmt.Errorf("cannot set the header %s: the server does that itself", http.CanonicalHeaderKey(name))
			case !httpguts.ValidHeaderFieldValue(value):
				return fmt.Errorf("cannot use this value of the header %s: it has a line feed or another control character in it", name)
			default:
				a.header.Set(name, value)
			}
		}
	}
	return a.fits()
}

// fits checks what goes together.
func (a *reply) fits() error {
	switch {
	case a.status < 200 || a.status > 599:
		return errors.New("cannot answer with this status: it must be between 200 and 599")
	case a.body != "" && (a.status == http.StatusNoContent || a.status == http.StatusNotModified):
		return fmt.Errorf("cannot answer %d with a body: it has none", a.status)
	}
	return nil
}

// write answers.
func (a *reply) write(w http.ResponseWriter) {
	h := w.Header()
	for name, values := range a.header {
		h[name] = values
	}
	h.Set("X-Content-Type-Options", "nosniff")
	if a.status != http.StatusNoContent && a.status != http.StatusNotModified {
		h.Set("Content-Length", strconv.Itoa(len(a.body)))
	}
	w.WriteHeader(a.status)
	// An error is the client's: it went away.
	_, _ = strings.NewReader(a.body).WriteTo(w)
}

// refusal is an answer that is not the script's.
func refusal(status int, format string, args ...any) *reply {
	a := &reply{status: status, header: http.Header{"Content-Type": {plainText}}, body: fmt.Sprintf(format, args...) + "\n"}
	if status == http.StatusServiceUnavailable {
		a.header.Set("Retry-After", retryAfter)
	}
	return a
}

// How long clients are asked to wait before they come again.
const retryAfter = "1"
