package http_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	nethttp "net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-run/weir/engine/api"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/service"
	"github.com/weir-run/weir/engine/service/http"
)

// host is an engine that says what the test wants.
type host struct {
	components map[string]component.Component
	strangers  []string // IDs of components that do not say they need the service
	infos      []service.Info
	overview   service.Overview
	reload     error
	reloads    int
	canaries   bool // the last reload was to wait for them
	records    []service.Reload
	events     func(after uint64) ([]service.ReloadEvent, <-chan struct{})
}

func (h *host) GetComponent(id string) (component.Component, bool) {
	c, ok := h.components[id]
	return c, ok
}
func (h *host) ListComponents() []service.Info { return h.infos }
func (h *host) GetServiceConsumers(name string) []string {
	ids := slices.Sorted(maps.Keys(h.components))
	return slices.DeleteFunc(ids, func(id string) bool { return name != "http" || slices.Contains(h.strangers, id) })
}
func (h *host) Overview() service.Overview { return h.overview }
func (h *host) RequestReload(_ context.Context, canaries bool) ([]service.Reload, error) {
	h.reloads++
	h.canaries = canaries
	return h.records, h.reload
}
func (h *host) RunningConfig(context.Context) (map[string]string, error) {
	return map[string]string{"c.alloy": "a.sink \"b\" { }\n"}, h.reload
}
func (h *host) PreviewReload(context.Context, string, string) (service.Preview, error) {
	return service.Preview{}, h.reload
}
func (h *host) PlaygroundBlock(string) (service.PlaygroundBlock, bool) {
	return service.PlaygroundBlock{}, false
}
func (h *host) Play(context.Context, string, string, service.PlaygroundInput) (service.PlaygroundOutput, error) {
	return service.PlaygroundOutput{}, nil
}
func (h *host) Reloads() []service.Reload { return h.records }
func (h *host) ReloadEvents(after uint64) ([]service.ReloadEvent, <-chan struct{}) {
	if h.events == nil {
		return nil, nil
	}
	return h.events(after)
}

type server struct{}

func (server) Run(ctx context.Context) error { return nil }
func (server) Handler() nethttp.Handler {
	return nethttp.HandlerFunc(func(w nethttp.ResponseWriter, r *nethttp.Request) {
		fmt.Fprintf(w, "%s %s", r.Method, r.URL.Path)
	})
}

// Control shows what only its user may see.
func (server) Control() nethttp.Handler {
	m := new(api.Mux)
	for pattern, op := range map[string]api.Operation{
		"/":               {},
		"GET /state":      {Records: true},
		"POST /debug":     {Records: true},
		"POST /play":      {Records: true, Effect: api.Nothing},
		"PUT /source":     {Writes: true},
		"GET /quietly":    {},
		"GET /do/{what}":  {Effect: api.Change},
		"POST /a/{it...}": {},
	} {
		m.Handle(pattern, func(w nethttp.ResponseWriter, r *nethttp.Request) {
			fmt.Fprintf(w, "control %s %s", r.Method, r.URL.Path)
			if api.RecordsHidden(r.Context()) {
				fmt.Fprint(w, " quietly")
			}
		}, op)
	}
	return m
}

type mute struct{}

func (mute) Run(ctx context.Context) error { return nil }

// run serves h until the test ends, on a port.
func run(t *testing.T, h *host, o http.Options) *http.Service {
	t.Helper()
	if o.UI == nil {
		o.UI = page
	}
	o.Listen = "127.0.0.1:0"
	s := http.New(o)
	if err := s.Update(new(http.Arguments)); err != nil {
		t.Fatal(err)
	}
	serve(t, s, h)
	return s
}

// serve runs a service until the test ends.
func serve(t *testing.T, s *http.Service, h *host) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx, h) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run returned %v", err)
		}
	})
}

// get asks and returns status and body.
func get(t *testing.T, c *nethttp.Client, method, url string, header ...string) (int, string) {
	t.Helper()
	r, err := nethttp.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			r.Host = header[i+1]
		} else {
			r.Header.Set(header[i], header[i+1])
		}
	}
	res, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.Header.Get("Content-Type") == "text/event-stream" { // it does not end
		return res.StatusCode, ""
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, strings.TrimSpace(string(body))
}

// client is one without idle connections left.
func client(t *testing.T, dial service.DialFunc) *nethttp.Client {
	tr := &nethttp.Transport{DialContext: dial}
	t.Cleanup(tr.CloseIdleConnections)
	return &nethttp.Client{Transport: tr, CheckRedirect: func(*nethttp.Request, []*nethttp.Request) error { return nethttp.ErrUseLastResponse }}
}

// owner is a client that has the token.
func owner(t *testing.T, s *http.Service) *nethttp.Client {
	c := client(t, nil)
	c.Transport = withToken{s, c.Transport}
	return c
}

type withToken struct {
	s *http.Service
	nethttp.RoundTripper
}

func (w withToken) RoundTrip(r *nethttp.Request) (*nethttp.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+w.s.Token())
	return w.RoundTripper.RoundTrip(r)
}

func TestEndpoints(t *testing.T) {
	h := &host{components: map[string]component.Component{"x.y.z": server{}, "mute": mute{}, "x.stranger": server{}}, strangers: []string{"x.stranger"}}
	reg := prometheus.NewRegistry()
	reg.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: "a_gauge", Help: "A gauge."}))
	s := run(t, h, http.Options{Gatherer: reg})
	c, base := owner(t, s), "http://"+s.Address()
	f := func(method, path string, wantStatus int, want string) {
		t.Helper()
		status, body := get(t, c, method, base+path)
		if status != wantStatus || !strings.Contains(body, want) {
			t.Errorf("%s %s: got %d %q, want %d %q", method, path, status, body, wantStatus, want)
		}
	}
	f("GET", "/-/ready", 503, "not ready")
	h.overview.Ready = true
	f("GET", "/-/ready", 200, "ready")

	f("GET", "/-/healthy", 200, "all nodes are healthy")
	h.infos = []service.Info{
		{ID: "a.good", Health: component.Health{State: component.Healthy}, Debug: func() any {
			t.Error("the health of nodes does not need their debug information, which may take long")
			return nil
		}},
		{ID: "a.bad", Health: component.Health{State: component.Unhealthy, Message: "no target"}},
		{ID: "a.new", Health: component.Health{State: component.Unknown}},
		{ID: "a.gone", Health: component.Health{State: component.Exited, Message: "component exited"}},
	}
	h.overview.Services = []service.Info{{ID: "telemetry", Health: component.Health{State: component.Unhealthy, Message: "what"}}}
	f("GET", "/-/healthy", 503, "a.bad is unhealthy: no target\na.gone is exited: component exited\ntelemetry is unhealthy: what")

	f("GET", "/-/reload", 405, "")
	h.records = []service.Reload{{Message: "reloaded c.alloy"}}
	f("POST", "/-/reload", 200, "reloaded c.alloy")
	h.reload = config.Diagnostics{{Span: config.Span{File: "c.alloy", Line: 3, Col: 4}, Msg: "nonsense"}}
	f("POST", "/-/reload", 400, "c.alloy:3:4: nonsense")
	h.reload = errors.New("the engine does not run")
	f("POST", "/-/reload", 503, "the engine does not run")
	if h.reloads != 3 {
		t.Errorf("%d reloads, want 3: GET must not reload", h.reloads)
	}

	f("GET", "/metrics", 200, "a_gauge 0")
	f("GET", "/debug/pprof/", 200, "goroutine")
	f("GET", "/debug/pprof/cmdline", 200, "")
	f("GET", "/nothing", 404, "")

	f("GET", "/api/v0/component/x.y.z/metrics", 200, "GET /metrics")
	f("POST", "/api/v0/component/x.y.z/a/b", 200, "POST /a/b")
	f("GET", "/api/v0/component/x.y.z/", 200, "GET /")
	f("GET", "/api/v0/component/mute/metrics", 404, "mute serves nothing")
	f("GET", "/api/v0/component/x.stranger/metrics", 404, "x.stranger serves nothing")
	f("GET", "/api/v0/component/nobody/metrics", 404, "no component runs as nobody")

	f("GET", "/api/v0/control/x.stranger/state/a", 200, "control GET /state/a")
	f("POST", "/api/v0/control/x.y.z/state", 200, "control POST /state")
	f("GET", "/api/v0/control/mute/state", 404, "mute has nothing to look into")
	f("GET", "/api/v0/control/nobody/state", 404, "no component runs as nobody")

	data := s.Data().(service.HTTPData)
	data.Handle("/own/", nethttp.HandlerFunc(func(w nethttp.ResponseWriter, r *nethttp.Request) { fmt.Fprint(w, "short") }))
	data.Handle("/own/long/", nethttp.HandlerFunc(func(w nethttp.ResponseWriter, r *nethttp.Request) { fmt.Fprint(w, "long") }))
	data.Handle("/-/", nethttp.HandlerFunc(func(w nethttp.ResponseWriter, r *nethttp.Request) { fmt.Fprint(w, "mine") }))
	f("POST", "/own/x", 200, "short")
	f("GET", "/own/long/x", 200, "long")
	f("GET", "/-/ready", 200, "weir is ready") // ours is not to be taken
	data.Handle("/own/", nil)
	f("GET", "/own/x", 404, "")
}

// TestErrors: an error is JSON for callers that accept it, except that of a component.
func TestErrors(t *testing.T) {
	h := &host{components: map[string]component.Component{"x.y.z": failing{}}}
	s := run(t, h, http.Options{})
	c, base := owner(t, s), "http://"+s.Address()
	f := func(method, path, accept string, want string) {
		t.Helper()
		status, body := get(t, c, method, base+path, "Accept", accept)
		if got := fmt.Sprint(status, " ", body); got != want {
			t.Errorf("%s %s: got %s, want %s", method, path, got, want)
		}
	}
	f("GET", "/api/v0/tap/a\"b", "application/json", `404 {"error":{"status":404,"message":"there is no node a\"b"}}`)
	f("GET", "/api/v0/tap/a\"b", "", `404 there is no node a"b`)
	f("GET", "/api/v0/tap/x", "text/html,application/xhtml+xml,*/*;q=0.8", "404 there is no node x")
	f("GET", "/nothing", "application/json", `404 {"error":{"status":404,"message":"404 page not found"}}`)
	f("DELETE", "/api/v0/status", "text/plain, application/json", `405 {"error":{"status":405,"message":"Method Not Allowed"}}`)
	f("POST", "/-/page", "application/json", `403 {"error":{"status":403,"message":"refused: only over the control socket"}}`)
	f("GET", "/api/v0/component/x.y.z/a", "application/json", "418 mine")
	f("GET", "/api/v0/control/x.y.z/a", "application/json", `418 {"error":{"status":418,"message":"mine"}}`)
}

// failing is a component that refuses all requests.
type failing struct{ server }

func (failing) Handler() nethttp.Handler {
	return nethttp.HandlerFunc(func(w nethttp.ResponseWriter, r *nethttp.Request) { nethttp.Error(w, "mine", nethttp.StatusTeapot) })
}
func (f failing) Control() nethttp.Handler { return f.Handler() }

func TestMemory(t *testing.T) {
	h := &host{}
	s := http.New(http.Options{})
	data := s.Data().(service.HTTPData)
	if data.ListenAddress != "" {
		t.Errorf("it listens on %s", data.ListenAddress)
	}
	// A dial before Run waits; one that gives up does not hold anybody.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := data.DialContext(ctx, "tcp", data.MemoryAddress); err == nil {
		t.Error("connected to nobody")
	}
	if err := s.Update(new(http.Arguments)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel = context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx, h) }()
	c := client(t, data.DialContext)
	for range 20 {
		if status, _ := get(t, c, "GET", "http://"+data.MemoryAddress+"/-/healthy"); status != 200 {
			t.Errorf("got %d", status)
		}
	}
	// Other addresses are reached as ever.
	other := httptest.NewServer(nethttp.HandlerFunc(func(w nethttp.ResponseWriter, r *nethttp.Request) {}))
	if status, _ := get(t, c, "GET", other.URL); status != 200 {
		t.Errorf("got %d", status)
	}
	other.Close()
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if _, err := data.DialContext(t.Context(), "tcp", data.MemoryAddress); !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v after the end", err)
	}
}

func TestListen(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s := http.New(http.Options{Listen: l.Addr().String()})
	if err := s.Update(new(http.Arguments)); err == nil || !strings.Contains(err.Error(), "cannot listen on "+l.Addr().String()+": the address is already in use") || !strings.Contains(err.Error(), "--server.http.listen-addr") {
		t.Errorf("got %v for an address that is taken", err)
	}
	// Run with a ctx that has ended gives the port back.
	// On a port that nobody gets who asks for any: Linux gives those from 32768 on.
	err = errors.New("not tried")
	for try := 0; err != nil && try < 100; try++ {
		s = http.New(http.Options{Listen: fmt.Sprint("127.0.0.1:", 10000+rand.IntN(20000))})
		err = s.Update(new(http.Arguments))
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Run(ctx, &host{}); err != nil {
		t.Error(err)
	}
	again, err := net.Listen("tcp", s.Address())
	if err != nil {
		t.Errorf("the port is still taken: %v", err)
	} else {
		again.Close()
	}
}

type arguments struct {
	URL      string           `alloy:"url,attr"`
	Password component.Secret `alloy:"password,attr"`
	To       []*flow.Receiver `alloy:"to,attr"`
}

// TestStatusOfLongLists: the status and the page of a node show the first elements of
// long lists, and count those that they do not show.
func TestStatusOfLongLists(t *testing.T) {
	h := manyTargets(5_000)
	s := run(t, h, http.Options{})
	c, base := owner(t, s), "http://"+s.Address()
	_, body := get(t, c, "GET", base+"/api/v0/status")
	var got struct {
		Components []struct {
			Arguments, Exports struct{ Targets []map[string]string }
			Omitted            int
		}
	}
	if err := json.Unmarshal([]byte(body), &got); err != nil {
		t.Fatal(err)
	}
	targets := [][]map[string]string{got.Components[0].Exports.Targets, got.Components[1].Arguments.Targets}
	for i, list := range targets {
		if len(list) != 1000 || list[0]["instance"] != "host-0.example.net" || list[999]["instance"] != "host-999.example.net" {
			t.Errorf("component %d has %d targets, want the first 1000", i, len(list))
		}
		if n := got.Components[i].Omitted; n != 4000 {
			t.Errorf("component %d omits %d elements, want 4000", i, n)
		}
	}
}

func TestStatus(t *testing.T) {
	at := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
	stats := new(flow.Stats)
	stats.In.Store(7)
	stats.Out.Store(5)
	stats.Drop("filtered", 2)
	h := &host{
		overview: service.Overview{Time: at.Add(time.Second), Version: "v1", Config: "c.alloy", Started: at, Ready: true,
			Reload: service.Reload{Time: at, Seconds: 0.012, Outcome: "applied", Message: "reloaded"}},
		infos: []service.Info{
			{ID: "a.b.c", Name: "a.b", Health: component.Health{State: component.Healthy, Message: "running", Time: at}, Stats: stats, Position: "c.alloy:3",
				LastError: component.Health{State: component.Unhealthy, Message: "</script><script>alert(1)", Time: at}, DependsOn: []string{"d"}, SendsTo: []string{"d"}, Sources: func() []string { return []string{"x.lua"} }, Version: "abc", Builds: 2, Restarts: 1,
				Arguments: &arguments{"http://x", "hunter2", []*flow.Receiver{flow.NewReceiver("d", 0, nil, nil)}}, Debug: func() any { return map[string]int{"n": 1} }},
			{ID: "d", Name: "d", Debug: func() any { return make(chan int) }},
		},
	}
	s := run(t, h, http.Options{})
	c, base := owner(t, s), "http://"+s.Address()
	_, body := get(t, c, "GET", base+"/api/v0/status")
	if strings.Contains(body, "hunter2") {
		t.Error("the status has a secret")
	}
	var got map[string]any
	if err := json.Unmarshal([]byte(body), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"time": "2025-01-01T00:00:01Z", "version": "v1", "config": "c.alloy", "started": "2025-01-01T00:00:00Z", "ready": true, "stopping": false,
		"reload":   map[string]any{"time": "2025-01-01T00:00:00Z", "seconds": 0.012, "outcome": "applied", "message": "reloaded"},
		"allowed":  map[string]any{"live_data": true, "changes": true, "edit": true},
		"services": []any{},
		"components": []any{
			map[string]any{"id": "a.b.c", "name": "a.b", "health": map[string]any{"state": "healthy", "message": "running", "time": "2025-01-01T00:00:00Z"},
				"last_error": map[string]any{"state": "unhealthy", "message": "</script><script>alert(1)", "time": "2025-01-01T00:00:00Z"},
				"position":   "c.alloy:3", "depends_on": []any{"d"}, "sends_to": []any{"d"}, "sources": []any{"x.lua"}, "version": "abc", "builds": 2.0, "restarts": 1.0,
				"samples":   map[string]any{"in": 7.0, "out": 5.0, "dropped": map[string]any{"filtered": 2.0}},
				"arguments": map[string]any{"url": "http://x", "password": "(secret)", "to": []any{"d.receiver"}}, "exports": nil, "debug": map[string]any{"n": 1.0}},
			map[string]any{"id": "d", "name": "d", "health": map[string]any{"state": "unknown", "message": "", "time": "0001-01-01T00:00:00Z"},
				"last_error": nil, "position": "", "depends_on": []any{}, "sends_to": []any{}, "sources": []any{}, "version": "", "builds": 0.0, "restarts": 0.0, "samples": nil,
				"arguments": nil, "exports": nil, "debug": "cannot be shown: json: unsupported type: chan int"},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}

	// Without credentials, there are only states.
	_, body = get(t, client(t, nil), "GET", base+"/api/v0/status")
	got = nil
	if err := json.Unmarshal([]byte(body), &got); err != nil {
		t.Fatal(err)
	}
	want = map[string]any{
		"time": "2025-01-01T00:00:01Z", "version": "v1", "started": "2025-01-01T00:00:00Z", "ready": true, "stopping": false,
		"services": []any{},
		"components": []any{
			map[string]any{"id": "a.b.c", "name": "a.b", "health": map[string]any{"state": "healthy", "time": "2025-01-01T00:00:00Z"}},
			map[string]any{"id": "d", "name": "d", "health": map[string]any{"state": "unknown", "time": "0001-01-01T00:00:00Z"}},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("status without credentials (-want +got):\n%s", diff)
	}
}
