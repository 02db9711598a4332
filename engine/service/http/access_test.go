package http_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	nethttp "net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-run/weir/engine/audit"
	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/history"
	"github.com/weir-run/weir/engine/service"
	"github.com/weir-run/weir/engine/service/http"
)

// routes says, for every route of the service, what the kinds of callers get. A
// new route needs a line here.
var routes = []struct {
	pattern, request string
	// Status codes: without credentials, over TCP with the token, in memory, over
	// the control socket.
	stranger, token, memory, socket int
}{
	{"GET /{$}", "GET /", 401, 200, 403, 200},
	{"GET /ui/{file}", "GET /ui/app.js", 401, 200, 403, 200},
	{"GET /api/v0/docs", "GET /api/v0/docs", 401, 200, 403, 200},
	{"GET /api/v0/docs/{page...}", "GET /api/v0/docs/x", 401, 404, 403, 404},
	{"GET /api/v0/manual/{name}", "GET /api/v0/manual/a.sink", 401, 404, 403, 404},
	{"GET /api/v0/completions/{of}", "GET /api/v0/completions/lua", 401, 404, 403, 404},
	{"GET /-/ready", "GET /-/ready", 503, 503, 503, 503},
	{"GET /-/healthy", "GET /-/healthy", 503, 503, 503, 503},
	{"POST /-/reload", "POST /-/reload", 401, 200, 403, 200},
	{"POST /-/reload/preview", "POST /-/reload/preview", 401, 200, 403, 200},
	{"POST /-/reload/preview", "POST /-/reload/preview?config=/etc/c.alloy", 401, 403, 403, 200},
	{"POST /-/reload/preview", "POST /-/reload/preview?scripts=/etc", 401, 403, 403, 200},
	{"GET /api/v0/config", "GET /api/v0/config", 401, 200, 403, 200},
	{"GET /api/v0/config/check", "GET /api/v0/config/check", 401, 200, 403, 200},
	{"GET /-/page", "GET /-/page?token=x", 401, 401, 403, 403},
	{"POST /-/page", "POST /-/page", 403, 403, 403, 200},
	{"GET /api/v0/openapi.json", "GET /api/v0/openapi.json", 200, 200, 200, 200},
	{"GET /api/v0/status", "GET /api/v0/status", 200, 200, 403, 200},
	{"GET /api/v0/audit", "GET /api/v0/audit", 401, 200, 403, 200},
	{"GET /api/v0/log", "GET /api/v0/log", 401, 200, 403, 200},
	{"GET /api/v0/events", "GET /api/v0/events", 401, 200, 403, 200},
	{"GET /api/v0/graph", "GET /api/v0/graph", 401, 200, 403, 200},
	{"GET /api/v0/history", "GET /api/v0/history", 401, 200, 403, 200},
	{"GET /api/v0/reloads", "GET /api/v0/reloads", 401, 200, 403, 200},
	{"GET /api/v0/reloads/events", "GET /api/v0/reloads/events", 401, 200, 403, 200},
	{"GET /api/v0/batch/{id...}", "GET /api/v0/batch/a.sink.b", 401, 200, 403, 200},
	{"GET /api/v0/tap/{id...}", "GET /api/v0/tap/nowhere", 401, 404, 403, 404},
	{"GET /api/v0/top", "GET /api/v0/top?lines=1", 401, 200, 403, 200},
	{"GET /api/v0/why/{id...}", "GET /api/v0/why/nowhere", 401, 404, 403, 404},
	{"GET /api/v0/playground/{id...}", "GET /api/v0/playground/nowhere", 401, 404, 403, 404},
	{"POST /api/v0/playground/{id...}", "POST /api/v0/playground/nowhere", 401, 404, 403, 404},
	{"/api/v0/component/{path...}", "POST /api/v0/component/a.sink.b/x", 200, 200, 200, 200},
	{"/api/v0/control/{path...}", "POST /api/v0/control/a.sink.b/quarantine/replay", 401, 200, 403, 200},
	{"/api/v0/control/{path...}", "POST /api/v0/control/a.sink.b/tests", 401, 200, 403, 200},
	{"/api/v0/control/{path...}", "GET /api/v0/control/a.sink.b/state", 401, 200, 403, 200},
	{"GET /debug/pprof/", "GET /debug/pprof/", 401, 200, 403, 200},
	{"GET /debug/pprof/cmdline", "GET /debug/pprof/cmdline", 401, 200, 403, 200},
	{"GET /debug/pprof/profile", "GET /debug/pprof/profile?seconds=1", 401, 200, 403, 200},
	{"GET /debug/pprof/symbol", "GET /debug/pprof/symbol", 401, 200, 403, 200},
	{"POST /debug/pprof/symbol", "POST /debug/pprof/symbol", 401, 200, 403, 200},
	{"GET /debug/pprof/trace", "GET /debug/pprof/trace?seconds=0.01", 401, 200, 403, 200},
	{"GET /metrics", "GET /metrics", 200, 200, 200, 200},
}

// TestRoutes: another user of this machine, who has no credentials, cannot run
// code, see data or change anything; nor can a target that makes a scrape come
// to weir's own address.
func TestRoutes(t *testing.T) {
	h := house(t)
	h.components = map[string]component.Component{"a.sink.b": server{}}
	s := run(t, h, http.Options{Gatherer: prometheus.NewRegistry(), Document: []byte("{}"), History: history.New(clock.System{}), Audit: audit.New(slog.New(slog.DiscardHandler))})
	data := s.Data().(service.HTTPData)
	stranger, token, memory := client(t, nil), owner(t, s), client(t, data.DialContext)
	base := "http://" + s.Address()
	seen := map[string]bool{}
	for _, r := range routes {
		seen[r.pattern] = true
		method, path, _ := strings.Cut(r.request, " ")
		status, body := get(t, stranger, method, base+path)
		if status != r.stranger {
			t.Errorf("%s without credentials: got %d %q, want %d", r.request, status, body, r.stranger)
		}
		for _, never := range []string{"no disk", "arguments", "http://x", "c.alloy", "hunter2", "temperature"} {
			if strings.Contains(body, never) {
				t.Errorf("%s without credentials: %q is in %s", r.request, never, body)
			}
		}
		if status, body := get(t, stranger, method, base+path, "Authorization", "Bearer "+s.Token()[1:]); status != r.stranger {
			t.Errorf("%s with a wrong token: got %d %q, want %d", r.request, status, body, r.stranger)
		}
		if h.reloads != 0 {
			t.Fatalf("%s: a stranger reloaded", r.request)
		}
		if status, body := get(t, token, method, base+path); status != r.token {
			t.Errorf("%s with the token: got %d %q, want %d", r.request, status, body, r.token)
		}
		h.reloads = 0
		if status, body := get(t, memory, method, "http://"+data.MemoryAddress+path); status != r.memory {
			t.Errorf("%s in memory: got %d %q, want %d", r.request, status, body, r.memory)
		}
		w := httptest.NewRecorder()
		ctx, cancel := context.WithCancel(t.Context())
		if strings.HasSuffix(path, "/events") { // its answer ends with the client
			cancel()
		}
		s.Handler().ServeHTTP(w, httptest.NewRequestWithContext(ctx, method, "http://weir"+path, nil))
		cancel()
		if w.Code != r.socket {
			t.Errorf("%s over the socket: got %d %q, want %d", r.request, w.Code, w.Body, r.socket)
		}
		h.reloads = 0
	}
	for _, pattern := range s.Routes() {
		if !seen[pattern] {
			t.Errorf("the route %q is not in the table: say who may use it", pattern)
		}
	}
	// The states are for everyone, the messages are not.
	if _, body := get(t, stranger, "GET", base+"/api/v0/status"); !strings.Contains(body, `"a.sink.b"`) || !strings.Contains(body, `"unhealthy"`) {
		t.Errorf("the status has no states: %s", body)
	}
	if _, body := get(t, stranger, "GET", base+"/-/healthy"); body != "1 of 7 nodes are not healthy" {
		t.Errorf("health without credentials: got %q", body)
	}
	if _, body := get(t, token, "GET", base+"/-/healthy"); !strings.Contains(body, "a.sink.b is unhealthy: <b>no disk") {
		t.Errorf("health with the token: got %q", body)
	}
	// A path that leads elsewhere does not get around the table.
	for _, path := range []string{"//debug/pprof/cmdline", "/api/v0/component/../../../debug/pprof/cmdline", "/s/x/../../debug/pprof/cmdline", "/%2e%2e/debug/pprof/cmdline"} {
		if status, body := get(t, stranger, "GET", base+path); status == 200 {
			t.Errorf("%s: got %s", path, body)
		}
	}
}

// TestNetwork: credentials that anyone on the way could read are not accepted.
func TestNetwork(t *testing.T) {
	h := &host{components: map[string]component.Component{"x": server{}}}
	s := run(t, h, http.Options{Gatherer: prometheus.NewRegistry()})
	get(t, client(t, nil), "GET", "http://"+s.Address()+"/-/ready") // it runs
	filtered := &http.Arguments{Auth: &http.AuthArguments{
		Basic: &http.BasicArguments{Username: "me", Password: "secret"}, Filter: &http.FilterArguments{Paths: []string{"/metrics"}, AuthenticateMatchingPaths: true}}}
	update(t, s, filtered)
	f := func(method, path, remote, authorization string, secure bool, want int) {
		t.Helper()
		r := httptest.NewRequest(method, "http://10.0.0.1:12345"+path, nil)
		r.RemoteAddr = remote
		if authorization != "" {
			r.Header.Set("Authorization", authorization)
		}
		if secure {
			r.TLS = new(tls.ConnectionState)
		}
		r = r.WithContext(context.WithValue(r.Context(), nethttp.LocalAddrContextKey, &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 12345}))
		w := httptest.NewRecorder()
		s.TCPHandler().ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("%s %s from %s with %q, TLS %v: got %d %s, want %d", method, path, remote, authorization, secure, w.Code, w.Body, want)
		}
	}
	const login = "Basic bWU6c2VjcmV0"
	token := "Bearer " + s.Token()
	for _, credentials := range []string{login, token} {
		f("POST", "/-/reload", "10.0.0.2:99", credentials, false, 403)
		f("GET", "/", "10.0.0.2:99", credentials, false, 403)
		f("POST", "/-/reload", "10.0.0.2:99", credentials, true, 200)
		f("POST", "/-/reload", "127.0.0.1:99", credentials, false, 200)
		f("POST", "/-/reload", "[::1]:99", credentials, false, 200)
		f("POST", "/-/reload", "10.0.0.1:99", credentials, false, 200) // the machine itself
	}
	f("POST", "/-/reload", "10.0.0.2:99", "", true, 401)
	f("POST", "/-/reload", "10.0.0.2:99", "Basic bWU6d3Jvbmc=", true, 401)
	f("POST", "/-/reload", "127.0.0.1:99", "", false, 401)
	f("GET", "/-/page?token=x", "10.0.0.2:99", "", false, 403)
	// A browser does not ask for a password that opens nothing, in plaintext.
	update(t, s, &http.Arguments{Auth: &http.AuthArguments{Basic: &http.BasicArguments{Username: "me", Password: "secret"}}})
	f("GET", "/", "10.0.0.2:99", "", false, 403)
	f("GET", "/", "10.0.0.2:99", "", true, 401)
	f("GET", "/api/v0/status", "10.0.0.2:99", "", false, 401)
	update(t, s, filtered)
	f("GET", "/s/x/", "10.0.0.2:99", "", false, 403)
	// As in Alloy, a password may protect metrics without TLS.
	f("GET", "/metrics", "10.0.0.2:99", "", false, 401)
	f("GET", "/metrics", "10.0.0.2:99", login, false, 200)
	f("GET", "/metrics", "10.0.0.2:99", token, true, 200)
	// Public routes, and routes of components.
	f("GET", "/api/v0/status", "10.0.0.2:99", "", false, 200)
	f("GET", "/-/ready", "10.0.0.2:99", "", false, 503)
	f("POST", "/api/v0/component/x/y", "10.0.0.2:99", "", false, 200)
}

// TestOrigins: pages of other origins cannot use a browser that has credentials,
// nor a name that they make resolve to weir's address.
func TestOrigins(t *testing.T) {
	h := &host{components: map[string]component.Component{"x": server{}}}
	s := run(t, h, http.Options{Gatherer: prometheus.NewRegistry(), Hosts: []string{"weir.example"}})
	strange, base := client(t, nil), "http://"+s.Address()
	_, port, _ := net.SplitHostPort(s.Address())
	f := func(c *nethttp.Client, want int, method, path string, header ...string) {
		t.Helper()
		if status, body := get(t, c, method, base+path, header...); status != want {
			t.Errorf("%s %s with %q: got %d %q, want %d", method, path, header, status, body, want)
		}
	}
	const evil = "evil.example"
	for _, path := range []string{"/metrics", "/-/healthy", "/api/v0/component/x/metrics"} {
		f(strange, 200, "GET", path, "Host", evil)
	}
	f(strange, 403, "GET", "/api/v0/status", "Host", evil)
	f(strange, 403, "GET", "/api/v0/status", "Host", evil+":"+port)
	f(strange, 403, "GET", "/api/v0/status", "Host", "127.0.0.1.evil.example")
	for _, known := range []string{"weir.example:80", "localhost:" + port, "[::1]:" + port, "LOCALHOST."} {
		f(strange, 200, "GET", "/api/v0/status", "Host", known)
	}
	// Routes of components are for webhooks, by any name; of pages, for weir's own.
	const route = "/api/v0/component/x/send"
	f(strange, 200, "POST", route, "Host", "weir.internal")
	f(strange, 200, "POST", route, "Origin", base, "Sec-Fetch-Site", "same-origin")
	f(strange, 403, "POST", route, "Host", evil, "Origin", "http://"+evil)
	f(strange, 403, "POST", route, "Host", evil, "Sec-Fetch-Site", "same-origin")
	f(strange, 403, "POST", route, "Origin", "null")

	login := client(t, nil)
	update(t, s, &http.Arguments{Auth: &http.AuthArguments{
		Basic: &http.BasicArguments{Username: "me", Password: "secret"}, Filter: &http.FilterArguments{Paths: []string{"/-/"}, AuthenticateMatchingPaths: true}}})
	login.Transport = withHeader{"Authorization", "Basic bWU6c2VjcmV0", login.Transport}
	for name, c := range map[string]*nethttp.Client{"token": owner(t, s), "login": login, "session": session(t, s)} {
		for _, r := range []string{"POST /-/reload", "POST /api/v0/control/x/state", "GET /api/v0/control/x/state", "GET /api/v0/status", "GET /debug/pprof/cmdline"} {
			method, path, _ := strings.Cut(r, " ")
			f(c, 403, method, path, "Origin", "http://evil.example")
			f(c, 403, method, path, "Origin", "null") // a sandboxed page
			f(c, 403, method, path, "Origin", "http://localhost:1")
			f(c, 403, method, path, "Sec-Fetch-Site", "cross-site")
			f(c, 403, method, path, "Sec-Fetch-Site", "same-site")
			f(c, 200, method, path, "Sec-Fetch-Site", "none")
			f(c, 200, method, path, "Origin", base, "Sec-Fetch-Site", "same-origin")
			f(c, 200, method, path)
		}
		// Another page may link to weir's.
		f(c, 200, "GET", "/", "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document")
		f(c, 403, "GET", "/", "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe")
		if t.Failed() {
			t.Fatalf("with the credentials: %s", name)
		}
	}
}

type withHeader struct {
	name, value string
	nethttp.RoundTripper
}

func (w withHeader) RoundTrip(r *nethttp.Request) (*nethttp.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set(w.name, w.value)
	return w.RoundTripper.RoundTrip(r)
}

// echo answers what it is sent, as HTML, with all headers that a script could
// try.
type echo struct{ mute }

func (echo) Handler() nethttp.Handler {
	return nethttp.HandlerFunc(func(w nethttp.ResponseWriter, r *nethttp.Request) {
		for _, name := range []string{"Set-Cookie", "Clear-Site-Data", "Service-Worker-Allowed", "Strict-Transport-Security", "Alt-Svc", "NEL", "Report-To", "Reporting-Endpoints"} {
			w.Header().Set(name, "mine")
		}
		w.Header().Set("Content-Security-Policy", "default-src *")
		w.Header().Set("X-Content-Type-Options", "sniff")
		w.Header().Set("Content-Type", "text/html")
		w.Header().Set("X-Mine", "kept")
		fmt.Fprintf(w, "authorization %q, cookies %q", r.Header.Get("Authorization"), r.Header.Get("Cookie"))
	})
}

// TestSandboxedRoutes: answers of component routes cannot act on weir's origin.
func TestSandboxedRoutes(t *testing.T) {
	h := &host{components: map[string]component.Component{"x": echo{}}}
	s := run(t, h, http.Options{})
	c := client(t, nil)
	for _, path := range []string{"/api/v0/component/x/page", "/api/v0/component/nobody/"} {
		res, err := c.Get("http://" + s.Address() + path)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		policies := res.Header.Values("Content-Security-Policy")
		if len(policies) == 0 || policies[len(policies)-1] != "sandbox" {
			t.Errorf("%s: got policies %q, want sandbox last", path, policies)
		}
		if got := res.Header.Values("X-Content-Type-Options"); len(got) != 1 || got[0] != "nosniff" {
			t.Errorf("%s: got X-Content-Type-Options %q", path, got)
		}
		for _, name := range []string{"Set-Cookie", "Clear-Site-Data", "Service-Worker-Allowed", "Strict-Transport-Security", "Alt-Svc", "NEL", "Report-To", "Reporting-Endpoints"} {
			if got := res.Header.Values(name); got != nil {
				t.Errorf("%s: the answer has %s: %q", path, name, got)
			}
		}
		if path == "/api/v0/component/x/page" && res.Header.Get("X-Mine") != "kept" {
			t.Error("a harmless header is gone")
		}
	}
}

// TestHiddenCredentials: a component does not get weir's own credentials, and no
// session leads to it.
func TestHiddenCredentials(t *testing.T) {
	h := &host{components: map[string]component.Component{"x": echo{}}}
	s := run(t, h, http.Options{})
	update(t, s, &http.Arguments{Auth: &http.AuthArguments{
		Basic: &http.BasicArguments{Username: "me", Password: "secret"}, Filter: &http.FilterArguments{Paths: []string{"/api"}, AuthenticateMatchingPaths: false}}})
	s.Data().(service.HTTPData).Handle("/extra/", echo{}.Handler())
	c, base := client(t, nil), "http://"+s.Address()
	f := func(path, authorization, cookie, want string) {
		t.Helper()
		if _, body := get(t, c, "GET", base+path, "Authorization", authorization, "Cookie", cookie); body != want {
			t.Errorf("%s with %q and %q: got %q, want %q", path, authorization, cookie, body, want)
		}
	}
	const path = "/api/v0/component/x/y"
	f(path, "Basic bWU6c2VjcmV0", "", `authorization "", cookies ""`)
	f(path, "Bearer "+s.Token(), "", `authorization "", cookies ""`)
	f("/extra/x", "Bearer "+s.Token(), "weir_session=x", `authorization "", cookies ""`)
	f(path, "", "a=b; weir_session=x; c=d", `authorization "", cookies "a=b; c=d"`)
	// Credentials that a script checks itself.
	f(path, "Basic b3RoZXI6c2VjcmV0", "", `authorization "Basic b3RoZXI6c2VjcmV0", cookies ""`)
	f(path, "Bearer other", "", `authorization "Bearer other", cookies ""`)
	for _, path := range []string{path, "/extra/x"} {
		if status, body := get(t, session(t, s), "GET", base+path); status == 200 {
			t.Errorf("%s in a session: got %q", path, body)
		}
	}
}
