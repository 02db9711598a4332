package scripttest

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/host"
	"github.com/weir-run/weir/scripting/node"
)

// clientAddress is who asks in tests, unless they say.
const clientAddress = "192.0.2.1"

// requestMethod is t:request.
func (s *session) requestMethod() scripting.Function {
	return scripting.Function{
		Name: "request", Doc: "Sends a request to the routes of a source (http) and returns the response. An error in the script fails the test.",
		Params: []scripting.Param{{Name: "request", Kind: scripting.KindMap, Doc: "The request.", Fields: []scripting.Param{
			{Name: "method", Kind: scripting.KindString, Optional: true, Doc: "The method; by default GET, or POST if there is a body."},
			{Name: "path", Kind: scripting.KindString, Doc: "The path with the query, such as /hook?team=a."},
			{Name: "headers", Kind: scripting.KindMap, Of: &scripting.Param{Kind: scripting.KindString}, Optional: true, Doc: "Headers by name."},
			{Name: "body", Kind: scripting.KindString, Optional: true, Doc: "The body."},
			{Name: "json", Kind: scripting.KindAny, Optional: true, Doc: "A value to send as a JSON body."},
			{Name: "remote_address", Kind: scripting.KindString, Optional: true, Doc: "Address of the client; " + clientAddress + " by default."},
		}}},
		Result: scripting.Result{Kind: scripting.KindObject, Type: answerType, Doc: "The response."},
		Fn: func(a []scripting.Value) (scripting.Value, error) {
			n := a[0].(*testNode)
			if err := cmp.Or(s.usable(n), s.chaos.replaceVMs(s.ctx, n)); err != nil {
				return nil, err
			}
			q := a[1].(*scripting.Map)
			body, isJSON, err := s.mocks.jsonOf(q)
			if err != nil {
				return nil, fmt.Errorf("cannot make this request: %w", err)
			}
			if !isJSON {
				body = stringOf(q, "body")
			}
			out, err := n.request(s.ctx, q, body, isJSON)
			if err := cmp.Or(s.mocks.takeDenied(), err, n.failure()); err != nil {
				return nil, err
			}
			return &scripting.Object{Type: answerType, Data: out}, nil
		},
	}
}

// answered is what a component answered, and sent meanwhile.
type answered struct {
	status int
	header http.Header
	body   bytes.Buffer
	sent   *output
}

// answerType is what t:request returns.
var answerType = &scripting.ObjectType{
	Name: "answer", Doc: "The response of a source to a request.",
	Fields: []scripting.Param{
		{Name: "status", Kind: scripting.KindInt, Doc: "The status code, such as 200."},
		{Name: "headers", Kind: scripting.KindMap, Of: &scripting.Param{Kind: scripting.KindString}, Doc: "The headers, by name in lower case."},
		{Name: "body", Kind: scripting.KindString, Doc: "The body."},
		{Name: "sent", Kind: scripting.KindObject, Type: batchType, Doc: "The records that the hook emitted and that were accepted before the response."},
	},
	Read: func(data any, field string) scripting.Value {
		a := data.(*answered)
		switch field {
		case "status":
			return int64(a.status)
		case "body":
			return a.body.String()
		case "sent":
			return &scripting.Object{Type: batchType, Data: a.sent}
		}
		return host.HeaderMap(a.header)
	},
	String: func(data any) string { return fmt.Sprintf("answer(%d)", data.(*answered).status) },
}

// stringOf returns the string of a key, "" without one.
func stringOf(q *scripting.Map, name string) string {
	v, _ := q.Get(name)
	s, _ := v.(string)
	return s
}

// request sends a request with a body to the component.
func (n *testNode) request(ctx context.Context, q *scripting.Map, body string, isJSON bool) (*answered, error) {
	text := func(name string) string { return stringOf(q, name) }
	method := cmp.Or(text("method"), map[bool]string{true: http.MethodGet, false: http.MethodPost}[body == ""])
	r, err := http.NewRequestWithContext(node.Observe(ctx, n.failed), method, "http://weir.test"+text("path"), strings.NewReader(body))
	if err != nil || !strings.HasPrefix(text("path"), "/") {
		return nil, fmt.Errorf(`cannot make this request: the method must be one such as POST, the path begin with "/", not %q`, text("path"))
	}
	r.RemoteAddr = net.JoinHostPort(cmp.Or(text("remote_address"), clientAddress), "50000")
	if isJSON {
		r.Header.Set("Content-Type", "application/json")
	}
	if h, ok := q.Get("headers"); ok && h != nil {
		for _, name := range h.(*scripting.Map).Keys() {
			v, _ := h.(*scripting.Map).Get(name)
			r.Header.Set(name, v.(string))
		}
	}
	h, ok := n.comp.(component.HTTPHandler)
	if !ok {
		return nil, fmt.Errorf("cannot send a request to %s: it takes none", n.name)
	}
	before := n.begin()
	out := &answered{header: http.Header{}}
	h.Handler().ServeHTTP(out, r)
	if _, err := n.awaitIdle(ctx); err != nil { // a script that sleeps moves the clock
		return nil, err
	}
	out.sent = n.output(&batch.Metrics{}, before)
	out.sent.typ = batchType
	return out, nil
}

// Header is that of the answer.
func (a *answered) Header() http.Header { return a.header }

// WriteHeader keeps the first status.
func (a *answered) WriteHeader(status int) { a.status = cmp.Or(a.status, status) }

// Write keeps the body.
func (a *answered) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.body.Write(p)
}
