package node_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/component/componenttest"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/flow/flowtest"
	"github.com/weir-run/weir/scripting/internal/registrytest"
)

// harness is a graph node whose script is saved again and again.
type harness struct {
	*componenttest.Node
	t       testing.TB
	f       registrytest.Folder
	cat     component.Catalog
	sink    *flowtest.Sink // nil: the component sends nothing on
	gate    *flow.Receiver
	c       component.Component
	stop    func()
	replace func() // stop, since another takes over
	remove  func() // stop, since the node leaves the graph
	real    bool   // the clock is the real one, of a synctest bubble
	args    any    // of c

	overlaps bool // c does with the one that runs next
}

func newHarness(t testing.TB) *harness {
	n := &harness{Node: componenttest.New(t, "a.b.default"), t: t, f: registrytest.NewFolder(t), sink: flowtest.NewSink("sink")}
	n.cat = n.f.Catalog(nil)
	n.gate = flow.NewReceiver("a.b.default", batch.SignalMetrics, nil, nil)
	return n
}

// save writes the script and swaps the component as the engine does.
func (n *harness) save(src, attrs string) {
	n.t.Helper()
	path := n.f.Write("a/b.lua", "local weir = require \"weir\"\n"+src)
	n.cat.Refresh([]string{path})
	r, _ := n.cat.Lookup("a.b")
	if r.Err != nil {
		n.t.Fatal(r.Err)
	}
	n.swap(r, attrs)
}

func (n *harness) swap(r component.Registration, attrs string) {
	n.t.Helper()
	args := r.NewArgs()
	decode := func() error { return registrytest.Decode(args, attrs, n.sink) }
	if n.sink == nil {
		decode = func() error { return registrytest.Evaluate(args, registrytest.Patient(attrs), nil) }
	}
	if err := decode(); err != nil {
		n.t.Fatal(err)
	}
	o := n.Options()
	if n.real {
		o.Clock = clock.System{}
	}
	// The engine registers what a component registers on its own.
	registry := prometheus.NewRegistry()
	o.Registerer = prometheus.WrapRegistererWith(prometheus.Labels{"component_id": n.ID}, registry)
	n.Registry = registry
	c, err := r.Build(o, args, n.c)
	if err != nil {
		n.t.Fatal(err)
	}
	if r.Accepts == 0 && !(r.Overlaps && n.overlaps) && n.replace != nil {
		n.replace() // a source's Run has returned before the next one's is called
		n.replace = nil
	}
	stop := n.run(c)
	<-n.gate.Set(c)
	if n.replace != nil {
		n.replace()
	}
	n.c, n.args, n.overlaps = c, args, r.Overlaps
	n.stop, n.replace = func() { stop(context.Canceled) }, func() { stop(component.ErrReplaced) }
	n.remove = func() { stop(component.ErrRemoved) }
}

// run is componenttest's Run, and says why it ends as the engine does.
func (n *harness) run(c component.Component) (stop func(cause error)) {
	ctx, cancel := context.WithCancelCause(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := c.Run(ctx); err != nil {
			n.t.Errorf("%s ended with %v", n.ID, err)
		}
	}()
	stop = func(cause error) {
		cancel(cause)
		<-done
	}
	n.t.Cleanup(func() { stop(context.Canceled) })
	return stop
}

func (n *harness) send(b *batch.Metrics) string {
	n.t.Helper()
	before := len(n.sink.Batches())
	if err := n.gate.ConsumeMetrics(context.Background(), b); err != nil {
		n.t.Fatal(err)
	}
	got := n.sink.Batches()
	if len(got) == before {
		return ""
	}
	return string(batch.AppendTextAt(nil, got[len(got)-1], b.T[0]))
}

// at returns the batch at another time.
func at(b *batch.Metrics, t int64) *batch.Metrics {
	out := *b
	out.T = make([]int64, len(b.T))
	for i := range out.T {
		out.T[i] = t
	}
	return &out
}

func text(t testing.TB, source uint64, s string) *batch.Metrics {
	t.Helper()
	return registrytest.Text(t, source, s)
}

func same(t testing.TB, got, want string) {
	t.Helper()
	registrytest.Same(t, got, want)
}

const label = `return weir.transform { series = function(s) s.labels.v = "%s" end }`

// After a save, series that do not come again get a marker at their source's
// next batch, once.
func TestReloadMarksSeriesStale(t *testing.T) {
	n := newHarness(t)
	n.save(fmt.Sprintf(label, "1"), "")
	x, y := text(t, 1, "a 1\nb 2\n"), text(t, 2, "a{i=\"2\"} 3\n")
	same(t, n.send(x), "a{v=\"1\"} 1\nb{v=\"1\"} 2\n")
	same(t, n.send(y), "a{i=\"2\",v=\"1\"} 3\n")

	n.save(`return weir.transform { series = function(s) if s.name == "a" then s.labels.v = "2" else s:drop() end end }`, "")
	same(t, n.send(at(x, 2000)), "a{v=\"2\"} 1\na{v=\"1\"} stale\nb{v=\"1\"} stale\n")
	same(t, n.send(at(x, 3000)), "a{v=\"2\"} 1\n")
	same(t, n.send(at(y, 2000)), "a{i=\"2\",v=\"2\"} 3\na{i=\"2\",v=\"1\"} stale\n")

	// A refused batch owes its markers still.
	n.save(fmt.Sprintf(label, "3"), "")
	n.sink.Refuse(flowtest.ErrRefused)
	if err := n.gate.ConsumeMetrics(context.Background(), at(y, 4000)); !errors.Is(err, flowtest.ErrRefused) {
		t.Fatalf("got %v, want a refusal", err)
	}
	n.sink.Refuse(nil)
	same(t, n.send(at(y, 5000)), "a{i=\"2\",v=\"3\"} 3\na{i=\"2\",v=\"2\"} stale\n")

	// A save that changes nothing for a series marks nothing.
	n.save(fmt.Sprintf(label, "3")+" -- the same", "")
	same(t, n.send(at(y, 6000)), "a{i=\"2\",v=\"3\"} 3\n")
	// Emitted series as well, and what a batch operation made.
	n.save(`return weir.transform { metrics = function(batch, ctx) batch:set_label("op", "1") ctx.emit { name = "extra", value = 1 } end }`, "")
	same(t, n.send(at(y, 7000)), "a{i=\"2\",op=\"1\"} 3\nextra 1\na{i=\"2\",v=\"3\"} stale\n")
	n.save(fmt.Sprintf(label, "4"), "")
	same(t, n.send(at(y, 8000)), "a{i=\"2\",v=\"4\"} 3\na{i=\"2\",op=\"1\"} stale\nextra stale\n")
}

// A source sends the same column of series in every batch: what a script makes
// of it by labels is the same column again, and no VM is asked for it.
func TestColumnAgain(t *testing.T) {
	n := newHarness(t)
	n.save(`return weir.transform { series = function(s)
		if s.name == "go" then return s:drop() end
		if s.name == "bad" then error("bad") end
		s.labels.v = "1"
		s.labels.twin = nil
	end }`, "")
	values := func(b *batch.Metrics, vs ...float64) *batch.Metrics {
		next := at(b, b.T[0]+1000)
		next.V = vs
		return next
	}
	b := text(t, 1, "a{twin=\"1\"} 1\ngo 2\na{twin=\"2\"} 3\nb 4\n")
	var column **batch.Series
	for i := range 5 {
		b = values(b, float64(i), 2, batch.Stale(), 4)
		same(t, n.send(b), fmt.Sprintf("a{v=\"1\"} %d\na{v=\"1\"} stale\nb{v=\"1\"} 4\n", i))
		if got := &n.sink.Last().Series[0]; i < 2 {
			column = got
		} else if got != column {
			t.Error("another column of series")
		}
	}
	for name, want := range map[string]float64{
		"weir_script_calls_total": 4, "weir_script_errors_total": 0, "weir_script_samples_collided_total": 5,
	} {
		if got := gathered(t, n.Registry, name); got != want {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
	if got := n.Stats.Dropped()["script"]; got != 5 {
		t.Errorf("%d dropped, want 5", got)
	}

	// A series that the hook fails on is asked again in every batch, and its
	// source is well when it no longer comes.
	bad := text(t, 1, "a 1\nbad 2\n")
	for i := range 4 {
		bad = values(bad, float64(i), 2)
		same(t, n.send(bad), fmt.Sprintf("a{v=\"1\"} %d\nbad 2\n", i))
		if got := gathered(t, n.Registry, "weir_script_errors_total"); got != float64(i+1) {
			t.Errorf("%v errors after %d batches", got, i+1)
		}
		if got := n.Health().State; got != component.Unhealthy {
			t.Errorf("%s while the hook fails", got)
		}
	}
	n.send(b)
	if got := n.Health().State; got != component.Healthy {
		t.Errorf("%s after the hook failed", got)
	}
}

// Arguments are part of what is remembered.
func TestChangedArguments(t *testing.T) {
	n := newHarness(t)
	n.save(`return weir.transform { args = { v = weir.arg.string{} }, series = function(s, ctx) s.labels.v = ctx.args.v end, metrics = function(batch) batch:drop_where("labels.v == args.v && value > 5") end }`, `v = "1"`)
	b := text(t, 1, "a 1\nb 9\n")
	same(t, n.send(b), "a{v=\"1\"} 1\n")
	if err := n.c.(component.Updater).Update(nil); !errors.Is(err, component.ErrRebuild) {
		t.Errorf("got %v, want a rebuild", err)
	}
	r, _ := n.cat.Lookup("a.b")
	n.swap(r, `v = "2"`)
	same(t, n.send(at(b, 2000)), "a{v=\"2\"} 1\na{v=\"1\"} stale\n")
}

// A call that is under way when the script is saved ends on the old version,
// and its series are marked at the next batch.
func TestCallInFlight(t *testing.T) {
	n := newHarness(t)
	entered, leave := make(chan struct{}), make(chan struct{})
	blocking := flow.NewReceiver("blocking", batch.SignalMetrics, nil, nil)
	enter := sync.OnceFunc(func() { close(entered) })
	blocking.Set(consumer(func(ctx context.Context, b *batch.Metrics) error {
		enter()
		<-leave
		return n.sink.ConsumeMetrics(ctx, b)
	}))
	n.f.Write("a/b.lua", "local weir = require \"weir\"\n"+fmt.Sprintf(label, "1"))
	r, _ := n.cat.Lookup("a.b")
	args := r.NewArgs()
	if err := registrytest.Evaluate(args, "forward_to = [sink]\n"+registrytest.Patient(""), blocking); err != nil {
		t.Fatal(err)
	}
	old := n.Build(t, r, args)
	n.c, n.stop = old, n.Run(t, old)
	n.gate.Set(old)
	b := text(t, 1, "a 1\n")
	done := make(chan error, 1)
	go func() { done <- n.gate.ConsumeMetrics(context.Background(), b) }()
	<-entered

	path := n.f.Write("a/b.lua", "local weir = require \"weir\"\n"+fmt.Sprintf(label, "2"))
	n.cat.Refresh([]string{path})
	r, _ = n.cat.Lookup("a.b")
	args = r.NewArgs()
	if err := registrytest.Decode(args, "", n.sink); err != nil {
		t.Fatal(err)
	}
	o := n.Options()
	o.Registerer = prometheus.NewRegistry()
	c, err := r.Build(o, args, old)
	if err != nil {
		t.Fatal(err)
	}
	n.Run(t, c)
	left := n.gate.Set(c)
	// Another source meets the new version while the call is under way.
	same(t, n.send(text(t, 2, "other 1\n")), "other{v=\"2\"} 1\n")
	select {
	case <-left:
		t.Fatal("the old component has no call any more")
	default:
	}
	n.stop() // Run of the old one may end before its call
	close(leave)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	<-left
	// The receiver of the old version learns that its series ended, before the
	// new one gets what continues.
	same(t, n.send(at(b, 2000)), "a{v=\"2\"} 1\n")
	before := n.sink.Batches()[len(n.sink.Batches())-2]
	same(t, string(batch.AppendTextAt(nil, before, 1999)), "a{v=\"1\"} stale\n")
}

type consumer func(context.Context, *batch.Metrics) error

func (f consumer) ConsumeMetrics(ctx context.Context, b *batch.Metrics) error { return f(ctx, b) }

// TestThousandReloads saves a thousand times under load: no sample is missing
// or doubled, and nothing is left behind.
func TestThousandReloads(t *testing.T) {
	reloads := 1000
	if testing.Short() || raceDetector {
		reloads = 100
	}
	n := newHarness(t)
	n.save(fmt.Sprintf(label, "0"), "")
	stop := make(chan struct{})
	var wg sync.WaitGroup
	sent := make([]int, 4)
	for s := range sent {
		b := text(t, uint64(s+1), fmt.Sprintf("a{s=\"%d\"} 1\nb{s=\"%d\"} 2\n", s, s))
		wg.Go(func() {
			for i := 1; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				if err := n.gate.ConsumeMetrics(context.Background(), at(b, int64(i)*1000)); err != nil {
					t.Error(err)
					return
				}
				sent[s] = i
				runtime.Gosched()
			}
		})
	}
	measure := func() (heap uint64, goroutines int) {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc, runtime.NumGoroutine()
	}
	for i := range reloads {
		n.save(fmt.Sprintf(label, fmt.Sprint(i%7))+fmt.Sprintf(" -- %d", i), "")
		n.Clock.Advance(2 * time.Minute) // sweeps
	}
	close(stop)
	wg.Wait()

	rows := map[string][]int64{}
	var markers int
	for _, b := range n.sink.Batches() {
		for i, s := range b.Series {
			if batch.IsStale(b.V[i]) {
				markers++
				continue
			}
			k := s.Name() + s.Label("s")
			rows[k] = append(rows[k], b.T[i])
		}
	}
	for s := range sent {
		for _, name := range []string{"a", "b"} {
			got := rows[fmt.Sprintf("%s%d", name, s)]
			if len(got) != sent[s] {
				t.Errorf("%s of source %d: got %d samples, want %d", name, s, len(got), sent[s])
				continue
			}
			for i, ts := range got {
				if ts != int64(i+1)*1000 {
					t.Errorf("%s of source %d: sample %d has time %d", name, s, i, ts)
					break
				}
			}
		}
	}
	if markers == 0 {
		t.Error("no series was marked stale")
	}

	// The same again, measured, without the sink's memory of all batches.
	n.sink = flowtest.NewSink("sink")
	n.save(fmt.Sprintf(label, "x"), "")
	b := text(t, 1, "a 1\n")
	n.send(b)
	heap, goroutines := measure()
	for i := range reloads {
		n.sink = flowtest.NewSink("sink")
		n.save(fmt.Sprintf(label, fmt.Sprint(i%7))+fmt.Sprintf(" -- %d", i), "")
		n.send(b)
		n.Clock.Advance(2 * time.Minute)
	}
	heapAfter, goroutinesAfter := measure()
	if goroutinesAfter > goroutines+10 { // some may be about to end
		t.Errorf("%d goroutines before, %d after", goroutines, goroutinesAfter)
	}
	if grown := int64(heapAfter) - int64(heap); grown > int64(reloads)*4<<10 {
		t.Errorf("the heap grew by %d KiB in %d reloads", grown>>10, reloads)
	} else {
		t.Logf("the heap grew by %d KiB in %d reloads", grown>>10, reloads)
	}
}

// Several sources run side by side on several VMs.
func TestConcurrentSources(t *testing.T) {
	n := newHarness(t)
	n.save(`
		return weir.transform {
			args = { keep = weir.arg.list { default = { "x", "y" } } },
			series = function(s, ctx) s.labels.n = s.name .. #ctx.args.keep end,
			metrics = function(batch, ctx)
				batch:drop_where("value > 900 && labels.job in args.keep")
				batch:map_label("job", function(j) return j:upper() end)
				batch:each(function(m) if m.name == "bad" then error("bad") end m.labels.e = ("%d"):format(m.value) end)
				for i, v in batch:rows("value") do batch:set(i, "value", v + 1) end
				ctx.emit { name = "count", value = #batch }
			end,
		}`, "")
	var wg sync.WaitGroup
	for s := range 8 {
		var in strings.Builder
		for i := range 50 {
			fmt.Fprintf(&in, "m{job=\"%c\",i=\"%d\",s=\"%d\"} %d\n", 'x'+rune(i%3), i, s, i*20)
		}
		in.WriteString("bad 1\n")
		b := text(t, uint64(s+1), in.String())
		wg.Go(func() {
			for range 50 {
				if err := n.gate.ConsumeMetrics(context.Background(), b); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for _, b := range n.sink.Batches() {
		if b.Len() < 48 || b.Len() > 52 {
			t.Fatalf("got %d rows", b.Len())
		}
		for i, s := range b.Series {
			if j := s.Label("job"); s.Name() == "m" && (strings.ToUpper(j) != j || s.Label("n") != "m2" || s.Label("e") == "" || b.V[i] != float64(int(b.V[i]))) {
				t.Fatalf("got %s %v", s, b.V[i])
			}
		}
	}
	if got := len(n.sink.Batches()); got != 400 {
		t.Errorf("got %d batches, want 400", got)
	}
}

// A pool that is used up makes callers wait within their context.
func TestPoolIsBackpressure(t *testing.T) {
	n := newHarness(t)
	n.save(`return weir.transform { metrics = function(batch) local x = 0 while batch[1].name == "slow" do x = x + 1 end end }`, "script {\nlimits { time = \"300ms\" }\n}")
	vms := 2 * runtime.GOMAXPROCS(0)
	var wg sync.WaitGroup
	started := make(chan struct{}, vms)
	for s := range vms {
		b := text(t, uint64(s+1), "slow 1\n")
		wg.Go(func() {
			started <- struct{}{}
			if err := n.gate.ConsumeMetrics(context.Background(), b); err != nil {
				t.Error(err)
			}
		})
	}
	for range vms {
		<-started
	}
	wg.Wait()
	if got := n.Health(); got.State != component.Unhealthy || !strings.Contains(got.Message, "the call ran longer than 300.02ms") {
		t.Errorf("got %+v", got)
	}
	// All of them were thrown away; new ones serve.
	same(t, n.send(text(t, 100, "a 1\n")), "a 1\n")
	if got := gathered(t, n.Registry, "weir_script_vms_discarded_total"); got != float64(vms) {
		t.Errorf("got %v VMs discarded, want %d", got, vms)
	}
}

func TestOwnMetrics(t *testing.T) {
	n := newHarness(t)
	n.save(`return weir.transform {
		series = function(s) end,
		metrics = function(batch, ctx)
			ctx.emit { name = "e", value = 1 }
			batch:each(function(m) if m.name == "bad" then error("x") end m.labels = {} m.name = "same" end)
		end }`, "")
	b := text(t, 1, "a 1\nb 2\nbad 3\n")
	n.send(b)
	n.send(b)
	for name, want := range map[string]float64{
		"weir_script_calls_total": 5, "weir_script_errors_total": 2, "weir_script_samples_emitted_total": 2,
		"weir_script_samples_collided_total": 2, "weir_script_vms": 1,
	} {
		if got := gathered(t, n.Registry, name); got != want {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
	if got := gathered(t, n.Registry, "weir_script_seconds_total"); got <= 0 {
		t.Errorf("got %v seconds", got)
	}
	n.save(fmt.Sprintf(label, "1"), "")
	n.send(b)
	if got := gathered(t, n.Registry, "weir_script_errors_total"); got != 2 {
		t.Errorf("a reload resets the counters: %v errors", got)
	}
}

// gathered is the sum of a metric over its labels.
func gathered(t testing.TB, g prometheus.Gatherer, name string) (sum float64) {
	t.Helper()
	families, err := g.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return sum
}

// A source that failed and is gone does not keep the node unhealthy.
func TestHealthOfAGoneSource(t *testing.T) {
	n := newHarness(t)
	n.save(`return weir.transform { metrics = function(batch) if batch[1].name == "bad" then error("x") end end }`, "")
	n.send(text(t, 1, "bad 1\n"))
	n.send(text(t, 2, "good 1\n"))
	if h := n.Health(); h.State != component.Unhealthy {
		t.Errorf("got %v while one of two sources fails, want unhealthy", h.State)
	}
	advanceUntil(t, n, time.Minute, func() bool { return n.Health().State == component.Healthy })
}
