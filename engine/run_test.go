package engine_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
)

const chain = `
test.source "a" {
  forward_to = [test.pass.b.receiver]
}
test.pass "b" {
  forward_to = [test.sink.c.receiver]
}
test.sink "c" { }
`

// A component learns from the cause of its context whether its node was removed
// or weir stops.
func TestCauseOfStop(t *testing.T) {
	bubble(t, func(l *harness) {
		removed := map[string]bool{}
		l.onRun = func(ctx context.Context, f *fake) error {
			<-ctx.Done()
			l.mu.Lock()
			defer l.mu.Unlock()
			removed[f.id] = errors.Is(context.Cause(ctx), component.ErrRemoved)
			return nil
		}
		each := func(items string) string {
			return `
foreach "f" {
  collection = [` + items + `]
  var        = "v"
  template {
    test.source "s" {
      forward_to = [test.pass.b.receiver]
    }
  }
}
`
		}
		l.start(chain + each(`"x", "y"`) + "test.source \"gone\" {\n  forward_to = [test.pass.b.receiver]\n}\n")
		if err := l.reload(chain + each(`"x"`)); err != nil {
			t.Fatal(err)
		}
		if err := l.end(); err != nil {
			t.Errorf("Run returned %v", err)
		}
		want := map[string]bool{
			"test.source.gone": true, "foreach.f/foreach_y_1/test.source.s": true,
			"test.source.a": false, "test.pass.b": false, "test.sink.c": false, "foreach.f/foreach_x_1/test.source.s": false,
		}
		if d := cmp.Diff(want, removed); d != "" {
			t.Errorf("ended because the node was removed (-want +got)\n%s", d)
		}
	})
}

func TestStopOrder(t *testing.T) {
	bubble(t, func(l *harness) {
		l.start(chain)
		// The source ends what it has begun, and everything below still takes it.
		l.onRun = func(ctx context.Context, f *fake) error {
			if f.id != "test.source.a" {
				return nil
			}
			<-ctx.Done()
			_, out := f.get()
			if err := out.SendMetrics(context.WithoutCancel(ctx), samples(3)); err != nil {
				t.Errorf("the last batch was not accepted: %v", err)
			}
			return nil
		}
		if err := l.reload(strings.Replace(chain, `"a" {`, "\"a\" {\n  value = \"2\"", 1)); err != nil {
			t.Fatal(err)
		}
		l.takeEvents()
		for id, want := range map[string]uint64{"test.source.a": 2, "test.pass.b": 1} {
			if got := l.info(id).Builds; got != want {
				t.Errorf("%s was built %d times, want %d", id, got, want)
			}
		}
		if err := l.end(); err != nil {
			t.Errorf("Run returned %v", err)
		}
		l.wantEvents("stop test.source.a\nstop test.pass.b\nstop test.sink.c")
		if got := l.info("test.sink.c").Stats.In.Load(); got != 3 {
			t.Errorf("the sink got %d samples of the last batch, want 3", got)
		}
		if err := l.e.Reload(context.Background()); err == nil {
			t.Error("Reload of a stopped engine succeeded")
		}
	})
}

func TestShutdownTimeout(t *testing.T) {
	f := func(name string, run func(ctx context.Context, f *fake) error, want string, wantAfter time.Duration) {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(l *harness) {
				l.options.ShutdownTimeout = 10 * time.Second
				l.onRun = run
				l.start(chain)
				start := time.Now()
				err := l.end()
				if err == nil || err.Error() != want {
					t.Errorf("Run returned %v, want %q", err, want)
				}
				if took := time.Since(start); took != wantAfter {
					t.Errorf("it took %s, want %s", took, wantAfter)
				}
				time.Sleep(2 * time.Hour) // what was left behind returns
			})
		})
	}
	// One that takes too long but ends once everything is told to.
	f("slow", func(ctx context.Context, f *fake) error {
		if f.id == "test.source.a" {
			<-ctx.Done()
			time.Sleep(7*time.Second + 500*time.Millisecond)
		}
		return nil
	}, "calls in flight were cut short, not everything stopped by itself within 10s", 7*time.Second+500*time.Millisecond)
	// One that does not return at all is left behind.
	f("never returns", func(ctx context.Context, f *fake) error {
		if f.id == "test.pass.b" {
			<-ctx.Done()
			time.Sleep(time.Hour)
		}
		return nil
	}, "1 node was abandoned: test.pass.b: stop has not returned since 2000-01-01T00:00:00Z (limit 15s)", 8*time.Second)
}

func TestStopWhileBuilding(t *testing.T) {
	bubble(t, func(l *harness) {
		l.options.ShutdownTimeout = 10 * time.Second
		l.onBuild = func(id string, _ *arguments, _ component.Options) error {
			if id == "test.pass.b" {
				time.Sleep(time.Hour)
			}
			return nil
		}
		l.start(chain)
		if l.e.Ready() {
			t.Error("the engine is ready while it builds")
		}
		start := time.Now()
		if err := l.end(); err == nil {
			t.Error("Run returned nil though a component did not return")
		}
		if took := time.Since(start); took > 12*time.Second {
			t.Errorf("it took %s", took)
		}
		// When it returns at last, nothing of it is run.
		l.takeEvents()
		time.Sleep(time.Hour)
		l.wantEvents("")
	})
}

// TestRestart has a component that fails again and again, then runs well.
func TestRestart(t *testing.T) {
	for _, how := range []string{"error", "panic"} {
		t.Run(how, func(t *testing.T) {
			bubble(t, func(l *harness) {
				var runs []time.Duration
				start := time.Now()
				l.onRun = func(ctx context.Context, f *fake) error {
					l.mu.Lock()
					runs = append(runs, time.Since(start))
					n := len(runs)
					l.mu.Unlock()
					if n == 9 {
						select {
						case <-time.After(2 * time.Minute):
						case <-ctx.Done():
						}
					}
					if n > 10 {
						<-ctx.Done()
						return nil
					}
					if how == "panic" {
						panic("port is taken")
					}
					return errors.New("port is taken")
				}
				l.start(`test.source "a" { }`)
				l.wantHealth("test.source.a", component.Unhealthy, "port is taken")
				time.Sleep(time.Hour)
				l.wantHealth("test.source.a", component.Healthy, "running")
				if i := l.info("test.source.a"); i.Restarts != 10 || !strings.Contains(i.LastError.Message, "port is taken") {
					t.Errorf("got %d restarts, last error %q", i.Restarts, i.LastError.Message)
				}
				l.mu.Lock()
				defer l.mu.Unlock()
				want := "[0s 1s 3s 7s 15s 31s 1m3s 2m3s 3m3s 5m4s 5m6s]" // doubled up to 1m; from 1s after running for 2m
				if got := fmt.Sprint(runs); got != want {
					t.Errorf("it ran at %s, want %s", got, want)
				}
			})
		})
	}
}

// TestGatePanic has a transform that panics in a call: the call returns with
// the error, later ones wait and are served by the next component.
func TestGatePanic(t *testing.T) {
	bubble(t, func(l *harness) {
		var calls int
		l.onTake = func(f *fake, _ *batch.Metrics) error {
			if f.id == "test.pass.b" {
				if calls++; calls == 1 {
					panic("index out of range")
				}
			}
			return nil
		}
		l.start(chain)
		_, out := l.fake("test.source.a").get()
		err := out.SendMetrics(context.Background(), samples(2))
		if p, ok := errors.AsType[*flow.PanicError](err); !ok || p.Node != "test.pass.b" {
			t.Fatalf("got %v, want the panic", err)
		}
		synctest.Wait()
		l.wantHealth("test.pass.b", component.Unhealthy, "panicked: index out of range")
		l.takeEvents()
		start := time.Now()
		partial, _ := errors.AsType[*flow.Partial](err)
		if err := partial.Retry(context.Background()); err != nil {
			t.Fatalf("the retry: %v", err)
		}
		if took := time.Since(start); took != time.Second {
			t.Errorf("the retry waited %s, want the back-off of 1s", took)
		}
		synctest.Wait()
		l.wantEvents("build test.pass.b\nrun test.pass.b")
		l.wantHealth("test.pass.b", component.Healthy, "running")
		if got := l.info("test.sink.c").Stats.In.Load(); got != 2 {
			t.Errorf("the sink got %d samples, want 2", got)
		}
	})
}

// TestPrevious: a component gets the one that it is about to replace, as long
// as that runs.
func TestPrevious(t *testing.T) {
	bubble(t, func(l *harness) {
		var previous []any
		r, _ := l.catalog.Lookup("test.source")
		build := r.Build
		r.Build = func(o component.Options, args any, p component.Component) (component.Component, error) {
			if f, ok := p.(*fake); ok {
				a, _ := f.get()
				previous = append(previous, a.Value)
			} else {
				previous = append(previous, p)
			}
			return build(o, args, p)
		}
		l.catalog.regs["test.source"] = r
		l.onRun = func(ctx context.Context, f *fake) error {
			if a, _ := f.get(); a.Value == "fails" && f.o.Clock.Now().Sub(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)) < 10*time.Second {
				return errors.New("no")
			}
			return nil
		}
		source := func(value string) string { return fmt.Sprintf("test.source \"a\" {\n value = %q\n}", value) }
		l.start(source("1"))
		for _, v := range []string{"2", "cannot build", "3", "fails"} {
			if err := l.reload(source(v)); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(20 * time.Second) // tries after 1, 2, 4 and 8 seconds, the last one runs
		synctest.Wait()
		if err := l.reload(source("4")); err != nil {
			t.Fatal(err)
		}
		want := "[<nil> 1 2 2 3 <nil> <nil> <nil> <nil> fails]"
		if got := fmt.Sprint(previous); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}

func TestExited(t *testing.T) {
	bubble(t, func(l *harness) {
		l.onRun = func(ctx context.Context, f *fake) error {
			time.Sleep(time.Second)
			return nil
		}
		l.start(`test.source "a" { }`)
		time.Sleep(time.Hour)
		l.wantHealth("test.source.a", component.Exited, "component exited")
		l.wantEvents("build test.source.a\nrun test.source.a\nreturned test.source.a")
	})
}

func TestOwnHealth(t *testing.T) {
	bubble(t, func(l *harness) {
		l.start(`test.source "a" { }`)
		o := l.fake("test.source.a").o
		o.Health(component.Health{State: component.Unhealthy, Message: "no targets"})
		l.wantHealth("test.source.a", component.Unhealthy, "no targets")
		o.Health(component.Health{State: component.Healthy, Message: "3 targets"})
		l.wantHealth("test.source.a", component.Healthy, "")
		// That of a replaced component is nobody's.
		if err := l.reload("test.source \"a\" {\n value = \"2\"\n}"); err != nil {
			t.Fatal(err)
		}
		o.Health(component.Health{State: component.Unhealthy, Message: "old"})
		l.wantHealth("test.source.a", component.Healthy, "")
	})
}

// TestBuildRetry has a build that fails for a reason that goes away.
func TestBuildRetry(t *testing.T) {
	bubble(t, func(l *harness) {
		var there atomic.Bool
		l.onBuild = func(id string, _ *arguments, _ component.Options) error {
			if !there.Load() {
				return errors.New("file is missing")
			}
			return nil
		}
		l.start(`test.source "a" { }`)
		l.wantHealth("test.source.a", component.Unhealthy, "cannot build: file is missing")
		l.wantSaid("started c.alloy (… ms), 1 node, 1 failed\ncannot run test.source.a: cannot build: file is missing")
		there.Store(true)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		l.wantHealth("test.source.a", component.Healthy, "running")
	})
}

// TestSequential: of a component without a receiver, the old one has returned
// before the new one runs; it is told that it is replaced.
func TestSequential(t *testing.T) {
	bubble(t, func(l *harness) {
		l.onRun = func(ctx context.Context, f *fake) error {
			<-ctx.Done()
			time.Sleep(3 * time.Second) // ends what it does
			return nil
		}
		l.start(`test.source "a" { }`)
		l.takeEvents()
		if err := l.reload("test.source \"a\" {\n value = \"2\"\n}"); err != nil {
			t.Fatal(err)
		}
		l.wantEvents("build test.source.a")
		time.Sleep(4 * time.Second)
		synctest.Wait()
		l.wantEvents("replaced test.source.a\nrun test.source.a")
	})
}

// TestInFlight: a call that has begun on the old component ends there, while
// the next goes to the new one; the old one runs until then.
func TestInFlight(t *testing.T) {
	bubble(t, func(l *harness) {
		release := make(chan struct{})
		var seen []string
		l.onTake = func(f *fake, _ *batch.Metrics) error {
			if f.id == "test.pass.b" {
				a, _ := f.get()
				if a.Value == "" {
					<-release
				}
				l.mu.Lock()
				seen = append(seen, "taken by "+a.Value)
				l.mu.Unlock()
			}
			return nil
		}
		l.start(chain)
		_, out := l.fake("test.source.a").get()
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := out.SendMetrics(context.Background(), samples(1)); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		l.takeEvents()
		if err := l.reload(strings.Replace(chain, `"b" {`, "\"b\" {\n  value = \"new\"", 1)); err != nil {
			t.Fatal(err)
		}
		if err := out.SendMetrics(context.Background(), samples(1)); err != nil {
			t.Error(err)
		}
		l.wantEvents("build test.pass.b\nrun test.pass.b")
		close(release)
		wg.Wait()
		synctest.Wait()
		l.wantEvents("replaced test.pass.b")
		if got := fmt.Sprint(seen); got != "[taken by new taken by ]" {
			t.Errorf("got %s", got)
		}
	})
}

// TestCoalesced: exports that come while the worker is busy are one
// evaluation, and the last one wins.
func TestCoalesced(t *testing.T) {
	bubble(t, func(l *harness) {
		release := make(chan struct{})
		l.onUpdate = func(id string, a *arguments) error {
			if a.Value == "wait" {
				<-release
			}
			return nil
		}
		config := `
test.value "a" { }
test.uvalue "b" {
  value = test.value.a.value
}
test.uvalue "c" {
  value = test.uvalue.b.value
}
test.uvalue "busy" {
  value = "%s"
}`
		l.start(fmt.Sprintf(config, "1"))
		before := evaluations(t, l.registry)
		l.write(fmt.Sprintf(config, "wait"))
		done := make(chan error)
		go func() { done <- l.e.Reload(context.Background()) }()
		synctest.Wait()
		l.takeEvents()
		export := l.fake("test.value.a").o.Export
		for i := range 100 {
			export(valueExports{Value: fmt.Sprint(i)})
		}
		close(release)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		l.wantEvents("update test.uvalue.b\nupdate test.uvalue.c")
		if got := l.info("test.uvalue.c").Exports.(valueExports).Value; got != "99" {
			t.Errorf("the last node has %q, want that of the last export", got)
		}
		if got := evaluations(t, l.registry) - before; got != 2 {
			t.Errorf("%v evaluations, want 2 for 100 exports and none for the reload, which the plan has done", got)
		}
		// Equal exports are nothing.
		before = evaluations(t, l.registry)
		export(valueExports{Value: "99"})
		synctest.Wait()
		if got := evaluations(t, l.registry) - before; got != 0 {
			t.Errorf("%v evaluations for equal exports", got)
		}
	})
}

// TestNotBlocked: while a component is stuck in Update, status and the others
// go on.
func TestNotBlocked(t *testing.T) {
	bubble(t, func(l *harness) {
		release := make(chan struct{})
		l.onUpdate = func(string, *arguments) error {
			<-release
			return nil
		}
		l.start(`test.uvalue "a" { }` + chain)
		l.write("test.uvalue \"a\" {\n value = \"2\"\n}\n" + chain)
		done := make(chan error)
		go func() { done <- l.e.Reload(context.Background()) }()
		synctest.Wait()
		if got := len(l.e.ListComponents()); got != 4 {
			t.Errorf("got %d nodes", got)
		}
		if _, ok := l.e.GetComponent("test.uvalue.a"); !ok {
			t.Error("the component is not to be found")
		}
		l.e.Overview()
		evaluations(t, l.registry)
		l.fake("test.uvalue.a").o.Export(valueExports{Value: "x"})
		l.fake("test.uvalue.a").o.Health(component.Health{State: component.Healthy})
		_, out := l.fake("test.source.a").get()
		if err := out.SendMetrics(context.Background(), samples(1)); err != nil {
			t.Error(err)
		}
		close(release)
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestUnderLoad sends all the time while transforms are rebuilt, put in and
// taken out: each sample arrives exactly once.
func TestUnderLoad(t *testing.T) {
	l := newHarness(t)
	var mu sync.Mutex
	arrived := map[int64]int{}
	l.onTake = func(f *fake, b *batch.Metrics) error {
		if f.id == "test.sink.c" {
			mu.Lock()
			defer mu.Unlock()
			for _, ts := range b.T {
				arrived[ts]++
			}
		} else {
			runtime.Gosched()
		}
		return nil
	}
	const senders, rounds = 4, 200
	var ids atomic.Int64
	finish := make(chan struct{})
	end := sync.OnceFunc(func() { close(finish) })
	l.onRun = func(ctx context.Context, f *fake) error {
		if f.id != "test.source.a" {
			return nil
		}
		series := samples(1)
		send := func() {
			b := *series
			b.T = []int64{ids.Add(1)}
			_, out := f.get()
			err := out.SendMetrics(context.Background(), &b)
			for err != nil {
				partial, ok := errors.AsType[*flow.Partial](err)
				if !ok || errors.Is(err, flow.ErrStopped) {
					t.Errorf("a source cannot retry: %v", err)
					return
				}
				err = partial.Retry(context.Background())
			}
		}
		var wg sync.WaitGroup
		for range senders {
			wg.Go(func() {
				for {
					select {
					case <-finish:
						return
					default:
						send()
					}
				}
			})
		}
		wg.Wait()
		return nil
	}
	l.write(chain)
	l.options.Announce = nil
	e := l.newEngine()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx, l.config) }()
	if err := e.FilesChanged(ctx, nil); err != nil { // returns after the start
		t.Fatal(err)
	}
	var watchers sync.WaitGroup
	watchers.Go(func() { // somebody has the page open
		for {
			select {
			case <-finish:
				return
			default:
			}
			if n := len(e.ListComponents()); n < 3 {
				t.Errorf("the page shows %d nodes", n)
			}
			e.Overview()
			if _, err := l.registry.Gather(); err != nil {
				t.Error(err)
			}
			runtime.Gosched()
		}
	})
	defer watchers.Wait()
	defer end()
	for round := range rounds {
		for n := ids.Load(); ids.Load() == n; { // on one CPU the senders may be late
			runtime.Gosched()
		}
		switch round % 4 {
		case 0, 2: // a save of the script
			l.catalog.add(component.Registration{Name: "test.pass", Version: fmt.Sprint(round), Accepts: metricsSignal, Sends: metricsSignal, Exports: receiverExports{}})
			if err := e.FilesChanged(ctx, nil); err != nil {
				t.Fatal(err)
			}
		case 1, 3: // other arguments, and a node more or less below
			config := chain
			if round%4 == 1 {
				config = `
test.source "a" {
  forward_to = [test.pass.b.receiver]
}
test.pass "b" {
  forward_to = [test.pass.more.receiver]
}
test.pass "more" {
  forward_to = [test.sink.c.receiver]
}
test.sink "c" { }
`
			}
			l.write(config)
			if err := e.Reload(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
	cancel()
	end()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if ids.Load() < rounds {
		t.Errorf("only %d samples were sent", ids.Load())
	}
	for id := int64(1); id <= ids.Load(); id++ {
		if arrived[id] != 1 {
			t.Fatalf("sample %d arrived %d times", id, arrived[id])
		}
	}
	t.Logf("%d reloads, %d samples", rounds, len(arrived))
}

// TestManyReloads: a thousand reloads leave nothing behind.
func TestManyReloads(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	bubble(t, func(l *harness) {
		l.options.Logger = slog.New(slog.DiscardHandler) // the test would keep it all
		l.onBuild = func(id string, _ *arguments, o component.Options) error {
			c := prometheus.NewCounter(prometheus.CounterOpts{Name: "test_built_total", Help: "Builds."})
			o.Registerer.MustRegister(c)
			c.Inc()
			return nil
		}
		l.start(chain)
		measure := func() (goroutines int, heap uint64) {
			synctest.Wait()
			l.takeEvents()
			l.takeLines()
			runtime.GC()
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return runtime.NumGoroutine(), m.HeapAlloc
		}
		round := func(i int) {
			if err := l.reload(strings.Replace(chain, `"b" {`, fmt.Sprintf("\"b\" {\n  number = %d", i+1), 1)); err != nil {
				t.Fatal(err)
			}
			if i%10 == 0 {
				l.takeEvents()
				l.takeLines()
			}
		}
		for i := range 50 {
			round(i)
		}
		goroutines, heap := measure()
		for i := range 1000 {
			round(50 + i)
		}
		goroutines2, heap2 := measure()
		if goroutines2 > goroutines+10 { // some may be about to end
			t.Errorf("%d goroutines before, %d after", goroutines, goroutines2)
		}
		if heap2 > heap+512<<10 {
			t.Errorf("%d bytes of heap before, %d after", heap, heap2)
		}
		t.Logf("1000 reloads: goroutines %d, then %d; heap %d, then %d", goroutines, goroutines2, heap, heap2)
	})
}

func evaluations(t *testing.T, r *prometheus.Registry) float64 {
	t.Helper()
	return value(t, r, "weir_engine_evaluations_total", "")
}

// value returns that of one metric; component is its component_id.
func value(t *testing.T, r prometheus.Gatherer, name, component string) float64 {
	t.Helper()
	fams, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range fams {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.Metric {
			id := ""
			for _, l := range m.Label {
				if l.GetName() == "component_id" {
					id = l.GetValue()
				}
			}
			if id == component {
				return m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	t.Fatalf("no metric %s of %q", name, component)
	return 0
}

// TestGatePanicOfAReplacedComponent: a component panics in a call while its
// successor is built; the successor is not taken for the one that failed.
func TestGatePanicOfAReplacedComponent(t *testing.T) {
	bubble(t, func(l *harness) {
		l.start(chain)
		_, out := l.fake("test.source.a").get()
		l.onBuild = func(id string, _ *arguments, _ component.Options) error {
			err := out.SendMetrics(context.Background(), samples(1))
			if _, ok := errors.AsType[*flow.PanicError](err); !ok {
				t.Errorf("got %v, want the panic", err)
			}
			l.mu.Lock()
			defer l.mu.Unlock()
			l.onTake = nil
			return nil
		}
		l.onTake = func(*fake, *batch.Metrics) error { panic("index out of range") }
		l.takeEvents()
		if err := l.reload(strings.Replace(chain, `test.pass "b" {`, `test.pass "b" {`+"\n value = \"2\"", 1)); err != nil {
			t.Fatal(err)
		}
		// The two run at once: in any order.
		if got := strings.Split(l.takeEvents(), "\n"); len(got) != 3 || slices.Contains(got, "stop test.pass.b") {
			t.Errorf("got events %q, want one component built and run, and one replaced", got)
		}
		l.wantHealth("test.pass.b", component.Healthy, "running")
	})
}

// TestPartsDuringPlan: a node that was removed and is wanted again takes data, also if
// it was ready to stop while the config that has it again was planned.
func TestPartsDuringPlan(t *testing.T) {
	bubble(t, func(l *harness) {
		const config = "test.sink \"a\" { }\ntest.upass \"p\" {\n  forward_to = [test.sink.a.receiver]\n}\ntest.source \"s\" {\n  forward_to = [test.upass.p.receiver]\n}\n"
		release := make(chan struct{})
		taken := 0
		l.onTake = func(f *fake, _ *batch.Metrics) error {
			switch f.id {
			case "test.upass.p":
				<-release
			case "test.sink.a":
				taken++
			}
			return nil
		}
		l.catalog.add(component.Registration{Name: "test.slow", Version: "1", Trial: func(context.Context, component.Trial) *component.Rejection {
			close(release)
			time.Sleep(time.Millisecond) // of the bubble
			return nil
		}})
		l.start(config)
		_, out := l.fake("test.source.s").get()
		var wg sync.WaitGroup
		wg.Go(func() { _ = out.SendMetrics(context.Background(), samples(1)) }) // which test.sink.a refuses or takes
		synctest.Wait()
		if err := l.reload("test.upass \"p\" { }\ntest.source \"s\" {\n  forward_to = [test.upass.p.receiver]\n}\n"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute) // p keeps its old receivers for a while
		if err := l.reload(config + "test.slow \"t\" { }\n"); err != nil {
			t.Fatal(err)
		}
		wg.Wait()
		taken = 0
		if err := out.SendMetrics(context.Background(), samples(1)); err != nil || taken != 1 {
			t.Errorf("got %v, and the sink took %d batches, want 1", err, taken)
		}
	})
}
