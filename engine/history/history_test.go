package history_test

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/engine/clock/clocktest"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/history"
	"github.com/weir-run/weir/engine/service"
)

// host is an engine with nodes of the test.
type host struct {
	service.Host
	clock    *clocktest.Fake
	nodes    []service.Info
	services []service.Info
	reloads  []service.Reload
}

func newHost() (*host, *history.Recorder) {
	h := &host{clock: clocktest.New(time.Unix(1_000_000, 0))}
	return h, history.New(h.clock)
}

func (h *host) ListComponents() []service.Info { return append([]service.Info{}, h.nodes...) }
func (h *host) Reloads() []service.Reload      { return h.reloads }
func (h *host) Overview() service.Overview {
	return service.Overview{Time: h.clock.Now(), Services: h.services}
}

// take takes a point after 10 seconds.
func (h *host) take(r *history.Recorder) {
	h.clock.Advance(history.Step)
	r.Take(h)
}

func shown(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func ask(t *testing.T, r *history.Recorder, since time.Time, ids ...string) history.History {
	t.Helper()
	h, missing := r.Since(since, ids)
	if missing != "" {
		t.Fatalf("there is no %s", missing)
	}
	return h
}

func healthy(id string, to ...string) service.Info {
	return service.Info{ID: id, Stats: new(flow.Stats), SendsTo: to, Health: component.Health{State: component.Healthy}}
}

// TestRates: rates per second, the queue, and the totals, which count what sources sent
// and what sinks delivered.
func TestRates(t *testing.T) {
	h, r := newHost()
	h.nodes = []service.Info{healthy("source", "mid"), healthy("mid", "sink"), healthy("sink")}
	source, mid, sink := h.nodes[0].Stats, h.nodes[1].Stats, &h.nodes[2]
	r.Take(h)
	source.Out.Store(100)
	mid.In.Store(100)
	mid.LinesIn.Store(20)
	mid.Drop("filtered", 30)
	mid.DropLines("filtered", 20)
	sink.Stats.Out.Store(50)
	sink.Backlog = component.Backlog{Samples: 7, Lines: 1, Oldest: h.clock.Now()}
	h.take(r)
	h.take(r)

	got := ask(t, r, time.Time{}, "mid", "sink")
	want := `{"step":10,"times":[1000000,1000010,1000020],` +
		`"total":{"in":[null,10,0],"out":[null,5,0],"dropped":[null,5,0],"waiting":[null,8,8],"oldest":[null,10,20]},` +
		`"nodes":[{"id":"mid","in":[null,12,0],"dropped":[null,5,0]},` +
		`{"id":"sink","out":[null,5,0],"waiting":[null,8,8],"oldest":[null,10,20]}],"health":[]}`
	if diff := cmp.Diff(want, shown(t, got)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if got := ask(t, r, time.Unix(1_000_010, 0)); fmt.Sprint(got.Times) != "[1.00002e+06]" || len(got.Nodes) != 0 {
		t.Errorf("got %v and %v since the second point", got.Times, got.Nodes)
	}
	if _, missing := r.Since(time.Time{}, []string{"mid", "nowhere"}); missing != "nowhere" {
		t.Errorf("got missing node %q", missing)
	}
}

// TestRatesOfMinute: rates are those of the last minute until now, or since the node
// exists.
func TestRatesOfMinute(t *testing.T) {
	h, r := newHost()
	a, b := healthy("a"), healthy("b")
	f := func(want string) {
		t.Helper()
		if got := fmt.Sprint(r.Rates([]service.Info{a, b}, h.clock.Now())); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	f("[{0 0 0} {0 0 0}]")
	h.nodes = []service.Info{a}
	r.Take(h)
	f("[{0 0 0} {0 0 0}]")
	a.Stats.In.Add(100)
	a.Stats.Drop("x", 50)
	h.clock.Advance(5 * time.Second)
	f("[{20 0 10} {0 0 0}]")
	h.clock.Advance(5 * time.Second)
	r.Take(h)
	f("[{10 0 5} {0 0 0}]")
	for range 9 {
		h.take(r)
	}
	f("[{0 0 0} {0 0 0}]")
	a.Stats.Out.Add(110)
	h.clock.Advance(5 * time.Second)
	f("[{0 2 0} {0 0 0}]")
	a.Stats = new(flow.Stats) // it was removed and added again
	a.Stats.Out.Add(7)
	f("[{0 0 0} {0 0 0}]")
}

// TestChanges: a node that was rebuilt goes on. A node that was removed has no values from
// then on, begins at 0 when it is added again, and is forgotten after an hour.
func TestChanges(t *testing.T) {
	h, r := newHost()
	h.nodes = []service.Info{healthy("a")}
	a := h.nodes[0].Stats
	step := func(n uint64) {
		a.In.Add(n)
		h.take(r)
	}
	r.Take(h)
	step(10)
	nodes := h.nodes
	h.nodes = nil
	step(0)
	h.nodes = nodes
	a = new(flow.Stats)
	h.nodes[0].Stats = a
	step(1000)
	step(20)
	a = new(flow.Stats) // between two points
	h.nodes[0].Stats = a
	step(30)
	if got, want := shown(t, ask(t, r, time.Time{}, "a").Nodes[0].In), "[null,1,null,null,2,3]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	h.nodes = nil
	for range history.Points - 1 {
		step(0)
	}
	if got := ask(t, r, time.Time{}, "a"); len(got.Times) != history.Points || !strings.HasPrefix(shown(t, got.Nodes[0].In), "[3,null,") {
		t.Errorf("got %d points: %s", len(got.Times), shown(t, got.Nodes[0].In))
	}
	step(0)
	if _, missing := r.Since(time.Time{}, []string{"a"}); missing != "a" {
		t.Error("a node is known an hour after it was removed")
	}
}

// TestHealth: changes of health with their time and message, also of a node that was
// unhealthy between two points, and of services.
func TestHealth(t *testing.T) {
	h, r := newHost()
	h.nodes, h.services = []service.Info{healthy("a"), healthy("b")}, []service.Info{healthy("http")}
	is := func(i *service.Info, state component.HealthState, message string) {
		i.Health = component.Health{State: state, Message: message, Time: h.clock.Now()}
		if state > component.Healthy {
			i.LastError = i.Health
		}
	}
	r.Take(h)
	is(&h.nodes[0], component.Unhealthy, "no target")
	h.take(r)
	is(&h.nodes[0], component.Unhealthy, "no target answers")
	h.take(r)
	is(&h.nodes[0], component.Healthy, "")
	is(&h.nodes[1], component.Exited, strings.Repeat("é", 1000))
	h.clock.Advance(time.Second)
	is(&h.nodes[1], component.Healthy, "")
	is(&h.services[0], component.Unhealthy, "no certificate")
	h.take(r)
	h.take(r)
	var got []string
	for _, e := range ask(t, r, time.Time{}).Health {
		got = append(got, fmt.Sprintf("%d %s %s-%s %.20s %d", e.Time.Unix()-1_000_000, e.Node, e.From, e.State, e.Message, len(e.Message)))
	}
	want := []string{
		"0 a healthy-unhealthy no target 9",
		"20 a unhealthy-unhealthy no target answers 17",
		"20 a unhealthy-healthy  0",
		"20 b healthy-exited " + strings.Repeat("é", 20) + " 1027",
		"21 b exited-healthy  0",
		"21 http healthy-unhealthy no certificate 14",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if n := len(ask(t, r, time.Time{}, "b").Health); n != 2 {
		t.Errorf("got %d changes of b, want 2", n)
	}
	// One node does not displace the changes of others, and old changes go.
	for n := range 200 {
		is(&h.nodes[1], component.Unhealthy, fmt.Sprint(n))
		h.take(r)
	}
	if n, b := len(ask(t, r, time.Time{}).Health), len(ask(t, r, time.Time{}, "b").Health); b != 50 || n != 54 {
		t.Errorf("got %d changes, %d of b, want 54 and 50", n, b)
	}
	h.nodes, h.services = nil, nil
	for range history.Points + 1 {
		h.take(r)
	}
	if n := len(ask(t, r, time.Time{}).Health); n != 0 {
		t.Errorf("%d changes are kept for longer than an hour", n)
	}
}

// TestSize: the history of 500 nodes, in which everything happens, has at most 10 MB, and
// nodes that come and go do not need more.
func TestSize(t *testing.T) {
	h, r := newHost()
	heap := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	nodes := func(prefix string) {
		h.nodes = nil
		for n := range 500 {
			i := healthy(fmt.Sprint(prefix, n))
			i.Backlog = component.Backlog{Samples: 5, Oldest: h.clock.Now()}
			h.nodes = append(h.nodes, i)
		}
	}
	nodes("prometheus.relabel.node_")
	before := heap()
	for p := range history.Points + 5 {
		for n := range h.nodes {
			i := &h.nodes[n]
			i.Stats.In.Add(uint64(p))
			i.Stats.Out.Add(uint64(p))
			i.Stats.Drop("filtered", p)
			i.Health = component.Health{State: component.Unhealthy, Time: h.clock.Now(), Message: strings.Repeat("x", 2000)}
		}
		h.take(r)
	}
	for n := range h.nodes {
		h.nodes[n].Health.Message = ""
	}
	size := heap() - before
	t.Logf("500 nodes: %.1f MB", float64(size)/1e6)
	if size > 10<<20 {
		t.Errorf("the history of 500 nodes has %d bytes, want at most 10 MB", size)
	}
	for c := range 50 {
		nodes(fmt.Sprint("churn", c, "."))
		h.take(r)
		h.take(r)
	}
	size = heap() - before
	t.Logf("and 25000 that came and went: %.1f MB", float64(size)/1e6)
	if size > 40<<20 {
		t.Errorf("nodes that come and go leave %d bytes", size)
	}
	if got := ask(t, r, time.Time{}, "churn49.7"); got.Omitted != 0 {
		t.Errorf("%d nodes that run have no history", got.Omitted)
	}
	nodes("x")
	for n := range 2000 {
		h.nodes = append(h.nodes, healthy(fmt.Sprint("many", n)))
	}
	h.take(r)
	h.take(r)
	if got := ask(t, r, time.Time{}); got.Omitted != 500 {
		t.Errorf("got %d nodes without history of 2500, want 500", got.Omitted)
	}
	runtime.KeepAlive(r)
}

// TestRun takes a point at once and every 10 seconds, and ends with its context.
func TestRun(t *testing.T) {
	h, r := newHost()
	h.nodes = []service.Info{healthy("a")}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); r.Run(ctx, h) }()
	for range 3 {
		if err := h.clock.WaitTimers(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		h.clock.Advance(history.Step)
	}
	if err := h.clock.WaitTimers(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	cancel()
	<-done
	if n := len(ask(t, r, time.Time{}).Times); n != 4 {
		t.Errorf("got %d points, want 4", n)
	}
}
