package host_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/host"
)

// TestReplies writes what a hook answers as it leaves the server.
func TestReplies(t *testing.T) {
	encode := open(t, transform(), host.AccessOptions{}).access.JSON("encode")
	f := func(v scripting.Value, status int, contentType, body string) {
		t.Helper()
		reply, err := host.NewReply(v, encode)
		if err != nil {
			t.Error(err)
			return
		}
		w := httptest.NewRecorder()
		w.Header().Set("Content-Type", "of/before")
		reply.Write(w)
		length := fmt.Sprint(len(body))
		if status == 204 || status == 304 {
			length = ""
		}
		if contentType == "" {
			contentType = "of/before"
		}
		h := w.Header()
		if w.Code != status || w.Body.String() != body || h.Get("Content-Type") != contentType || h.Get("Content-Length") != length || h.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%v: got %d %q with %v", v, w.Code, w.Body, h)
		}
	}
	const plain = "text/plain; charset=utf-8"
	f(nil, 200, "", "")
	f("", 200, plain, "")
	f("é", 200, plain, "é")
	f(int64(599), 599, "", "")
	f(304.0, 304, "", "")
	f(table(), 200, "", "")
	f(table("status", int64(201), "body", "made"), 201, plain, "made")
	f(table("json", table("a", scripting.Null)), 200, "application/json", `{"a":null}`)
	f(table("json", scripting.Null), 200, "application/json", "null")
	f(table("body", "<p>", "headers", table("content-type", "text/html")), 200, "text/html", "<p>")

	refused := func(v scripting.Value, encode *scripting.Function, want string) {
		t.Helper()
		_, err := host.NewReply(v, encode)
		fails(t, want, err, want)
	}
	refused(table("json", int64(1)), nil, "cannot answer json: there is no module json")
	refused(table("json", scripting.Callback(nil)), encode, "cannot answer json: ")
	refused(table("headers", table("X", strings.Repeat("x", 70<<10))), nil, "cannot use headers of more than 65536 bytes together")
	for _, name := range []string{"connection", "Content-Length", "transfer-encoding", "TRAILER", "upgrade", "keep-alive", "Date"} {
		refused(table("headers", table(name, "x")), nil, "cannot set the header "+http.CanonicalHeaderKey(name)+": the server does that itself")
	}
	refused(table("status", int64(304), "body", "x"), nil, "cannot answer 304 with a body: it has none")
	for _, status := range []scripting.Value{int64(199), int64(600), int64(-1 << 62), 1e9} {
		refused(status, nil, "cannot answer with this status: it must be between 200 and 599")
	}

	for status, retry := range map[int]string{http.StatusServiceUnavailable: "1", http.StatusNotFound: ""} {
		w := httptest.NewRecorder()
		host.Refuse(status, "no %s", "route").Write(w)
		if w.Code != status || w.Body.String() != "no route\n" || w.Header().Get("Retry-After") != retry {
			t.Errorf("got %d %q with %v", w.Code, w.Body, w.Header())
		}
	}
}

// TestRequestsAsObjects reads a request as a hook does.
func TestRequestsAsObjects(t *testing.T) {
	r := httptest.NewRequest("PUT", "/hook/7?b=2&a=1&b=3", nil)
	r.RemoteAddr = "pipe" // of a socket that has no port
	r.Header = http.Header{"X-B": {"2", "3"}, "X-A": {""}}
	r.SetPathValue("id", "7")
	req, err := host.NewRequest(r, scripting.Route{Params: []string{"id", "absent"}}, "text=a%zz", nil)
	if err != nil {
		t.Fatal(err)
	}
	for field, want := range map[string]string{
		"method": `"PUT"`, "path": `"/hook/7"`, "body": `"text=a%zz"`, "remote_address": `"pipe"`,
		"query": `{"a":"1","b":"2"}`, "headers": `{"x-a":"","x-b":"2, 3"}`, "params": `{"absent":"","id":"7"}`,
	} {
		if got := shown(t, req.Type.Read(req.Data, field)); got != want {
			t.Errorf("%s: got %s, want %s", field, got, want)
		}
	}
	f := func(name, want string, args ...scripting.Value) {
		t.Helper()
		v, err := method(t, req, name, args...)
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			got = shown(t, v)
		}
		if got != want {
			t.Errorf("%s(%v): got %s, want %s", name, args, got, want)
		}
	}
	f("header", `"2, 3"`, "x-b")
	f("header", `""`, "X-A")
	f("header", "nothing", "x-c")
	f("query_all", `["2","3"]`, "b")
	f("query_all", `[]`, "c")
	f("json", "cannot decode JSON: there is no module json")
	f("form", `cannot read the form: invalid URL escape "%zz"`)
	f("authorized", "cannot call authorized: argument username must be a string or a secret, not a number", table("basic", table("username", 5.0, "password", "p")))
	f("authorized", "cannot call authorized: argument password must not be empty: anyone would be authorized", table("basic", table("username", "u", "password", scripting.NewSecret(""))))
	f("authorized", "cannot call authorized: argument key must not be empty: anyone would be authorized", table("hmac", table("key", "", "header", "X-B")))
	f("authorized", "false", table("hmac", table("key", "k", "header", "X-C")))
	f("authorized", "cannot call authorized: argument by has no key \"digest\": there is bearer, basic, hmac", table("digest", "x"))

	r.URL = &url.URL{Path: "/", RawQuery: "a=%zz"}
	_, err = host.NewRequest(r, scripting.Route{}, "", nil)
	fails(t, "a query", err, "cannot read the query of the URL")
}

// broken is a body whose reading fails.
type broken struct{ err error }

func (b broken) Read([]byte) (int, error) { return 0, b.err }
func (b broken) Close() error             { return nil }

// TestBodiesThatFail holds with which status a request is refused whose body cannot be
// read.
func TestBodiesThatFail(t *testing.T) {
	f := func(err error, status int, want string) {
		t.Helper()
		r := httptest.NewRequest("POST", "/", broken{err})
		r.ContentLength = -1
		_, got := host.ReadBody(httptest.NewRecorder(), r, 10)
		fails(t, want, got, want)
		if e, ok := errors.AsType[*host.BodyError](got); !ok || e.Status != status {
			t.Errorf("got %+v, want %d", got, status)
		}
	}
	f(fmt.Errorf("%w: weir stops", flow.ErrStopped), 503, "cannot read the body: ")
	f(context.DeadlineExceeded, 408, "the body did not arrive in time")
	f(io.ErrUnexpectedEOF, 400, "cannot read the body: unexpected EOF")

	r := httptest.NewRequest("POST", "/", strings.NewReader("text"))
	r.Header.Set("Content-Encoding", " Identity ")
	if text, err := host.ReadBody(httptest.NewRecorder(), r, 4); text != "text" || err != nil {
		t.Errorf("got %q, %v", text, err)
	}
	r.Header.Set("Content-Encoding", strings.Repeat("x", 100))
	w := httptest.NewRecorder()
	_, err := host.ReadBody(w, r, 4)
	fails(t, "an encoding", err, `the encoding "`+strings.Repeat("x", 50)+`" is not supported; use gzip or deflate`)
	if got := w.Header().Get("Accept-Encoding"); got != "gzip, deflate" {
		t.Errorf("got Accept-Encoding %q", got)
	}
}
