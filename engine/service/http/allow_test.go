package http_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	nethttp "net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-run/weir/engine/api"
	"github.com/weir-run/weir/engine/audit"
	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/history"
	"github.com/weir-run/weir/engine/service"
	"github.com/weir-run/weir/engine/service/http"
	"github.com/weir-run/weir/engine/service/ui"
)

// TestAllowed: the block ui decides who sees records and writes files, except over the control
// socket.
func TestAllowed(t *testing.T) {
	h := &host{components: map[string]component.Component{"x": server{}, "undescribed": failing{}}}
	var allowed ui.Arguments
	mine := http.Route{Route: api.Route{Pattern: "GET /mine", Operation: api.Operation{Records: true}}, Handler: func(service.Host, nethttp.ResponseWriter, *nethttp.Request) {}}
	s := run(t, h, http.Options{Gatherer: prometheus.NewRegistry(), Routes: []http.Route{mine}, Allowed: func() ui.Arguments { return allowed }})
	base := "http://" + s.Address()
	const off = 403
	f := func(request string, live, edit bool) {
		t.Helper()
		method, path, _ := strings.Cut(request, " ")
		for _, allowed = range []ui.Arguments{{}, {LiveData: true}, {Edit: true}, {LiveData: true, Edit: true}} {
			want := ""
			switch {
			case live && !allowed.LiveData:
				want = "set live_data = true"
			case edit && !allowed.Edit:
				want = "set edit = true"
			}
			for name, c := range map[string]*nethttp.Client{"token": owner(t, s), "session": session(t, s)} {
				status, body := get(t, c, method, base+path)
				if want == "" && status == off || want != "" && (status != off || method != "HEAD" && !strings.Contains(body, want)) {
					t.Errorf("%s with %+v and a %s: got %d %q, want %q", request, allowed, name, status, body, want)
				}
			}
		}
	}
	for _, request := range []string{"GET /api/v0/batch/x", "GET /api/v0/tap/nowhere", "GET /api/v0/why/nowhere", "GET /api/v0/playground/nowhere", "POST /api/v0/playground/nowhere", "GET /api/v0/log", "GET /mine",
		"GET /api/v0/control/x/state", "HEAD /api/v0/control/x/state", "POST /api/v0/control/x/debug", "POST /api/v0/control/x/play", "GET /api/v0/control/undescribed/x"} {
		f(request, true, false)
	}
	for _, request := range []string{"GET /api/v0/status", "GET /api/v0/control/x/history", "POST /api/v0/control/x/rollback", "PUT /api/v0/control/x/state", "POST /-/reload"} {
		f(request, false, false)
	}
	f("PUT /api/v0/control/x/source", false, true)
}

// TestChangesOverNetwork: a session or a login can change something over a network only with edit,
// also through a proxy on the machine; the token and the machine itself can always. Nothing of
// it keeps anybody from reading, or from starting a session.
func TestChangesOverNetwork(t *testing.T) {
	h := &host{components: map[string]component.Component{"x": server{}}}
	allowed := ui.Arguments{LiveData: true}
	requests := audit.New(slog.New(slog.DiscardHandler))
	s := run(t, h, http.Options{Audit: requests, Allowed: func() ui.Arguments { return allowed }})
	get(t, client(t, nil), "GET", "http://"+s.Address()+"/-/ready") // it runs
	update(t, s, &http.Arguments{Auth: &http.AuthArguments{Basic: &http.BasicArguments{Username: "me", Password: "secret"}}})
	const far, near = "10.0.0.2:99", "127.0.0.1:99"
	do := func(request, remote string, header ...string) *httptest.ResponseRecorder {
		t.Helper()
		method, path, _ := strings.Cut(request, " ")
		r := httptest.NewRequestWithContext(t.Context(), method, "https://10.0.0.1:12345"+path, nil)
		r.RemoteAddr = remote
		for i := 0; i < len(header); i += 2 {
			r.Header.Add(header[i], header[i+1])
		}
		w := httptest.NewRecorder()
		s.TCPHandler().ServeHTTP(w, r)
		return w
	}
	login, token := []string{"Authorization", "Basic bWU6c2VjcmV0"}, []string{"Authorization", "Bearer " + s.Token()}
	_, link, _ := strings.Cut(s.PageURL(), "/-/")
	started := do("GET /-/"+link, far, login...)
	base := strings.TrimSuffix(started.Header().Get("Location"), "/")
	if started.Code != 303 || base == "" {
		t.Fatalf("a session over a network: got %d %s", started.Code, started.Body)
	}
	if c := started.Result().Cookies(); len(c) != 1 || !c[0].Secure || !c[0].HttpOnly || c[0].SameSite != nethttp.SameSiteStrictMode || c[0].Path != base+"/" || c[0].Domain != "" {
		t.Errorf("over TLS, got the cookie %v", c)
	}
	cookie := []string{"Cookie", strings.Split(started.Header().Get("Set-Cookie"), ";")[0]}

	changes := []string{"POST /api/v0/control/x/rollback", "POST /api/v0/control/x/canary/promote", "POST /api/v0/control/x/quarantine/drop", "PUT /api/v0/control/x/state/name",
		"DELETE /api/v0/control/x/state/name", "GET /api/v0/control/x/do/it", "POST /-/reload", "POST /api/v0/control/nowhere/unpin", "POST /api/v0/control/x/a/%2e%2e/play"}
	reads := []string{"GET /", "GET /api/v0/status", "GET /api/v0/control/x/state", "POST /api/v0/control/x/play", "POST /-/reload/preview", "POST /debug/pprof/symbol", "GET /api/v0/audit"}
	f := func(remote string, refused bool, prefix string, header ...string) {
		t.Helper()
		for _, request := range changes {
			request = strings.Replace(request, " ", " "+prefix, 1)
			w := do(request, remote, header...)
			if got := w.Code == 403; got != refused || got && !strings.Contains(w.Body.String(), "set edit = true in the block ui") {
				t.Errorf("%s from %s with %q and %+v: got %d %s", request, remote, header, allowed, w.Code, w.Body)
			}
		}
		for _, request := range reads {
			if w := do(strings.Replace(request, " ", " "+prefix, 1), remote, header...); w.Code != 200 {
				t.Errorf("%s from %s with %q: got %d %s", request, remote, header, w.Code, w.Body)
			}
		}
		w := do("GET "+prefix+"/api/v0/status", remote, header...)
		if want := fmt.Sprintf(`"changes": %v,`, !refused); !strings.Contains(w.Body.String(), want) {
			t.Errorf("the status from %s with %q has no %s: %s", remote, header, want, w.Body)
		}
	}
	f(far, true, base, cookie...)
	f(far, true, "", login...)
	f(near, true, base, append(cookie, "X-Forwarded-For", "10.0.0.2")...)
	f(near, true, "", append(login, "Forwarded", "for=10.0.0.2")...)
	f(far, false, "", token...)
	f(near, false, base, cookie...)
	f(near, false, "", login...)
	allowed.Edit = true
	f(far, false, base, cookie...)
	f(far, false, "", login...)

	// Refused changes are audited, and reads are not.
	refused := 0
	for _, e := range requests.Entries() {
		if strings.Contains(e.Message, "changes over the network are off") {
			refused++
		}
		if strings.Contains(e.Request, "/play") && !strings.Contains(e.Request, "/a/") || strings.Contains(e.Request, "preview") || strings.Contains(e.Request, "symbol") {
			t.Errorf("a request that changes nothing is audited: %+v", e)
		}
	}
	if want := 4 * len(changes); refused != want {
		t.Errorf("got %d refused changes in the audit log, want %d", refused, want)
	}
}

// TestLiveDataOff: without live_data, nothing that may quote a record is shown, except over the
// control socket.
func TestLiveDataOff(t *testing.T) {
	const quote = "hunter2"
	sick := component.Health{State: component.Unhealthy, Message: "cannot parse " + quote, Time: time.Unix(1, 0)}
	h := house(t)
	h.components = map[string]component.Component{"x": server{}}
	h.infos = []service.Info{
		{ID: "x", Name: "x", Health: sick, LastError: sick, Problems: []component.Health{sick}, Stats: new(flow.Stats), Debug: func() any {
			return map[string]any{"file": "kept.lua", "error": map[string]any{"msg": quote}, "endpoints": []any{map[string]any{"last_error": quote, "shards": 3}}, "reports": []string{quote}}
		}},
		{ID: "y", Name: "y", Health: component.Health{State: component.Healthy, Message: "listening on :80"}},
	}
	h.records = []service.Reload{
		{ID: 1, Outcome: "partial", Message: "refused by canary: " + quote, Nodes: []service.ReloadNode{{ID: "x", Action: "refused", Step: component.StepCanary, Message: quote}}},
		{ID: 2, Outcome: "partial", Message: "refused by test: kept", Nodes: []service.ReloadNode{{ID: "x", Action: "refused", Step: component.StepTest, Message: "kept"}}},
	}
	h.overview.Reload = h.records[0]
	h.events = func(uint64) ([]service.ReloadEvent, <-chan struct{}) {
		return []service.ReloadEvent{{ID: 1, Reload: &h.records[0]}}, nil
	}
	recorder := history.New(clock.System{})
	recorder.Take(h)
	var live atomic.Bool
	live.Store(true)
	s := run(t, h, http.Options{History: recorder, Allowed: func() ui.Arguments { return ui.Arguments{LiveData: live.Load()} }, Log: func() []byte { return []byte(quote) }})
	token, base := owner(t, s), "http://"+s.Address()
	socket := func(path string) string {
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "http://weir"+path, nil))
		return w.Body.String()
	}
	paths := []string{"/api/v0/status", "/-/healthy", "/api/v0/reloads", "/api/v0/history"}
	for _, path := range paths {
		if _, body := get(t, token, "GET", base+path); !strings.Contains(body, quote) {
			t.Errorf("%s with live data has no %q: %s", path, quote, body)
		}
	}
	live.Store(false)
	for _, path := range append(paths, "/api/v0/log", "/api/v0/graph", "/api/v0/top?lines=1", "/api/v0/events", "/api/v0/audit") {
		body := beginning(t, token, base+path)
		if strings.Contains(body, quote) {
			t.Errorf("%s without live data: %s", path, body)
		}
	}
	for _, path := range paths {
		if body := socket(path); !strings.Contains(body, quote) {
			t.Errorf("%s over the socket has no %q: %s", path, quote, body)
		}
	}
	_, body := get(t, token, "GET", base+"/api/v0/status")
	for _, kept := range []string{"kept.lua", `"shards": 3`, "listening on :80", "(hidden: live_data is off in the block ui)", `"live_data": false`} {
		if !strings.Contains(body, kept) {
			t.Errorf("the status has no %s: %s", kept, body)
		}
	}
	if _, body := get(t, token, "GET", base+"/api/v0/reloads"); strings.Count(body, "kept") != 2 {
		t.Errorf("the message of a test is hidden: %s", body)
	}
	if h.records[0].Message != "refused by canary: "+quote || h.infos[0].Health.Message != sick.Message {
		t.Error("the records of the engine were changed")
	}
	if _, body := get(t, token, "GET", base+"/api/v0/control/x/quietly"); !strings.HasSuffix(body, "quietly quietly") {
		t.Errorf("a component does not know that records are hidden: %s", body)
	}
}

// beginning returns the beginning of a response, which may have no end.
func beginning(t *testing.T, c *nethttp.Client, url string) string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, err := nethttp.NewRequestWithContext(ctx, "GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if !strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		text, _ := io.ReadAll(res.Body)
		return string(text)
	}
	var text strings.Builder
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		if text.WriteString(lines.Text() + "\n"); strings.Contains(text.String(), "event: status") && strings.HasPrefix(lines.Text(), "data: ") {
			break
		}
	}
	return text.String()
}
