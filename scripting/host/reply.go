package host

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-run/weir/scripting"
	"golang.org/x/net/http/httpguts"
)

// Reply is the response of a hook http.
type Reply struct {
	Status int
	header http.Header
	body   string
}

// answerParam is the table that a hook http may return.
var answerParam = scripting.Param{Kind: scripting.KindMap, Fields: []scripting.Param{
	{Name: "status", Kind: scripting.KindInt, Optional: true, Doc: "The status code, 200 to 599. Default: 200."},
	{Name: "headers", Kind: scripting.KindMap, Optional: true, Of: &scripting.Param{Kind: scripting.KindString}, Doc: "Headers by name."},
	{Name: "body", Kind: scripting.KindString, Optional: true, Doc: "The body, as a string."},
	{Name: "json", Kind: scripting.KindAny, Doc: "A value to send as JSON."},
}}

// RequestType returns the type of the hook http's argument.
func RequestType() *scripting.ObjectType { return requestType }

// ownAnswerHeaders are headers that only the server sets, because with them, a
// response could be interpreted differently than intended.
var ownAnswerHeaders = []string{"Connection", "Content-Length", "Transfer-Encoding", "Trailer", "Upgrade", "Keep-Alive", "Date"}

const (
	plainText = "text/plain; charset=utf-8"
	jsonText  = "application/json"
)

// NewReply converts the result of a hook to a response. encode is the function
// of the module json, or nil if there is no such module.
func NewReply(v scripting.Value, encode *scripting.Function) (*Reply, error) {
	a := &Reply{Status: http.StatusOK, header: http.Header{}}
	switch v := v.(type) {
	case nil:
		return a, nil
	case string:
		a.body = v
		a.header.Set("Content-Type", plainText)
		return a, a.fits()
	case int64, float64:
		status, msg := (&scripting.Param{Kind: scripting.KindInt}).Convert(v)
		if msg != "" {
			return nil, fmt.Errorf("cannot answer %v: a status %s", v, msg)
		}
		a.Status = int(max(min(status.(int64), 1000), 0))
		return a, a.fits()
	}
	x, msg := answerParam.Convert(v)
	m, ok := x.(*scripting.Map)
	if msg != "" || !ok {
		if _, is := v.(*scripting.Map); is {
			return nil, fmt.Errorf("cannot answer this: the table %s", msg)
		}
		return nil, fmt.Errorf("cannot answer with a %s: return nothing, a string, a status, or a table with status, headers, and body or json", scripting.TypeName(v))
	}
	return a, a.fill(m, encode)
}

func (a *Reply) fill(m *scripting.Map, encode *scripting.Function) error {
	if n, ok := option[int64](m, "status"); ok {
		a.Status = int(max(min(n, 1000), 0))
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
		text, err := encode.Call(nil, []scripting.Value{value})
		if err != nil {
			return fmt.Errorf("cannot answer json: %w", err)
		}
		a.body = text.(string)
		a.header.Set("Content-Type", jsonText)
	}
	if headers, ok := option[*scripting.Map](m, "headers"); ok {
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

// fits checks combinations of fields.
func (a *Reply) fits() error {
	switch {
	case a.Status < 200 || a.Status > 599:
		return errors.New("cannot answer with this status: it must be between 200 and 599")
	case a.body != "" && (a.Status == http.StatusNoContent || a.Status == http.StatusNotModified):
		return fmt.Errorf("cannot answer %d with a body: it has none", a.Status)
	}
	return nil
}

// Write writes the response.
func (a *Reply) Write(w http.ResponseWriter) {
	h := w.Header()
	for name, values := range a.header {
		h[name] = values
	}
	h.Set("X-Content-Type-Options", "nosniff")
	if a.Status != http.StatusNoContent && a.Status != http.StatusNotModified {
		h.Set("Content-Length", strconv.Itoa(len(a.body)))
	}
	w.WriteHeader(a.Status)
	// An error means that the client is gone.
	_, _ = strings.NewReader(a.body).WriteTo(w)
}

// Refuse returns a response by weir instead of the script.
func Refuse(status int, format string, args ...any) *Reply {
	a := &Reply{Status: status, header: http.Header{"Content-Type": {plainText}}, body: fmt.Sprintf(format, args...) + "\n"}
	if status == http.StatusServiceUnavailable {
		a.header.Set("Retry-After", retryAfter)
	}
	return a
}

// The value of Retry-After.
const retryAfter = "1"
