package discovery_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	sd "github.com/prometheus/prometheus/discovery"
	"github.com/prometheus/prometheus/discovery/targetgroup"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/component/componenttest"
	"github.com/weir-run/weir/natives/discovery/internal/discovery"
)

// script is a discovery whose discoverer is controlled by the test.
type script struct {
	run func(ctx context.Context, log *slog.Logger, up chan<- []*targetgroup.Group)
	err error
}

// theirs are the metrics of a script.
type theirs struct {
	reg      prometheus.Registerer
	failures prometheus.Counter
}

func (m *theirs) Register() error { return m.reg.Register(m.failures) }
func (m *theirs) Unregister()     { m.reg.Unregister(m.failures) }

type scripted struct {
	script
	log     *slog.Logger
	metrics *theirs
}

func (script) Name() string { return "script" }

func (script) NewDiscovererMetrics(r prometheus.Registerer, _ sd.RefreshMetricsInstantiator) sd.DiscovererMetrics {
	return &theirs{r, prometheus.NewCounter(prometheus.CounterOpts{Name: "script_failures_total"})}
}

func (s script) NewDiscoverer(o sd.DiscovererOptions) (sd.Discoverer, error) {
	return &scripted{s, o.Logger, o.Metrics.(*theirs)}, s.err
}

func (s *scripted) Run(ctx context.Context, up chan<- []*targetgroup.Group) {
	s.run(context.WithValue(ctx, failuresKey{}, s.metrics.failures), s.log, up)
}

type failuresKey struct{}

// sendUpdates returns a discovery that sends updates and then waits until it is
// stopped.
func sendUpdates(updates ...[]*targetgroup.Group) script {
	return script{run: func(ctx context.Context, _ *slog.Logger, up chan<- []*targetgroup.Group) {
		for _, u := range updates {
			select {
			case up <- u:
			case <-ctx.Done():
			}
		}
		<-ctx.Done()
	}}
}

func one(source, address string) []*targetgroup.Group {
	return []*targetgroup.Group{targets(source, nil, at(address))}
}

// harness is a component under test in a bubble.
type harness struct {
	*testing.T
	n *componenttest.Node
	c *discovery.Component
}

func kind(k discovery.Kind) discovery.Kind {
	k.Config = func(args any) (sd.Config, error) { return args.(script), nil }
	return k
}

// start runs a component.
func start(t *testing.T, k discovery.Kind, s script) *harness {
	n := componenttest.New(t, "discovery.script.default")
	c, err := discovery.New(n.Options(), kind(k), s, nil)
	if err != nil {
		t.Fatal(err)
	}
	n.Run(t, c)
	synctest.Wait()
	return &harness{t, n, c}
}

func (b *harness) want(addresses ...string) {
	b.Helper()
	synctest.Wait()
	var got []string
	if e, ok := b.n.Exports().(discovery.Exports); ok {
		for _, t := range e.Targets {
			got = append(got, t["__address__"])
		}
	}
	if diff := cmp.Diff(addresses, got); diff != "" {
		b.Errorf("targets (-want +got):\n%s", diff)
	}
}

func (b *harness) wantHealth(state component.HealthState, text string) {
	b.Helper()
	synctest.Wait()
	if h := b.n.Health(); h.State != state || !strings.Contains(h.Message, text) {
		b.Errorf("got health %s: %q, want %s: %q", h.State, h.Message, state, text)
	}
}

func (b *harness) pass(d time.Duration) {
	synctest.Wait()
	b.n.Clock.Advance(d)
	synctest.Wait()
}

func (b *harness) update(s script) {
	b.Helper()
	if err := b.c.Update(s); err != nil {
		b.Fatal(err)
	}
	synctest.Wait()
}

func TestUpdates(t *testing.T) { synctest.Test(t, testUpdates) }

func testUpdates(t *testing.T) {
	say := make(chan []*targetgroup.Group)
	b := start(t, discovery.Kind{}, script{run: func(ctx context.Context, _ *slog.Logger, up chan<- []*targetgroup.Group) {
		for {
			select {
			case u := <-say:
				up <- u
			case <-ctx.Done():
				return
			}
		}
	}})
	b.want()

	// The first update immediately, then at most every 250 ms, and the last one.
	say <- one("a", "a:1")
	b.want("a:1")
	b.wantHealth(component.Healthy, "found 1 target")
	say <- append(one("a", "a:2"), one("b", "b:1")...)
	say <- append(one("a", "a:3"), one("b", "b:1")...)
	b.want("a:1")
	b.pass(249 * time.Millisecond)
	b.want("a:1")
	b.pass(time.Millisecond)
	b.want("a:3", "b:1")

	// After a pause, immediately again; targets that are not in an update are
	// removed.
	b.pass(time.Second)
	say <- one("b", "b:1")
	b.want("b:1")
	b.pass(time.Second)
	say <- nil
	b.want()
	b.wantHealth(component.Healthy, "found 0 targets")

	// The same targets are not exported again.
	b.pass(time.Second)
	say <- one("b", "b:1")
	b.pass(time.Second)
	say <- one("b", "b:1")
	b.pass(time.Second)
	if got, want := testutil.ToFloat64(gauge(b, "weir_discovery_updates_total")), 5.0; got != want {
		t.Errorf("got %v exports, want %v", got, want)
	}
	info := b.c.DebugInfo().(discovery.Info)
	if info.Targets != 1 || info.Groups != 1 || info.LastUpdate.IsZero() || info.LastError != "" {
		t.Errorf("got debug info %+v", info)
	}
}

// gauge returns the only metric of a family as a collector.
func gauge(b *harness, name string) prometheus.Collector {
	b.Helper()
	fams, err := b.n.Registry.Gather()
	if err != nil {
		b.Fatal(err)
	}
	for _, f := range fams {
		if f.GetName() == name {
			m := f.Metric[0]
			return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "x"}, func() float64 {
				return m.GetGauge().GetValue() + m.GetCounter().GetValue()
			})
		}
	}
	b.Fatalf("there is no metric %s", name)
	return nil
}

// TestRefreshFails: a refresh of Prometheus's package fails completely or partly.
func TestRefreshFails(t *testing.T) { synctest.Test(t, testRefreshFails) }

func testRefreshFails(t *testing.T) {
	do := make(chan func(*slog.Logger, chan<- []*targetgroup.Group))
	b := start(t, discovery.Kind{}, script{run: func(ctx context.Context, log *slog.Logger, up chan<- []*targetgroup.Group) {
		for {
			select {
			case f := <-do:
				f(log, up)
			case <-ctx.Done():
				return
			}
		}
	}})
	ok := func(_ *slog.Logger, up chan<- []*targetgroup.Group) {
		up <- append(one("a", "a:1"), one("b", "b:1")...)
	}
	fails := func(log *slog.Logger, _ chan<- []*targetgroup.Group) {
		log.Error("Unable to refresh target groups", "err", errors.New("connection refused"))
	}
	partly := func(log *slog.Logger, up chan<- []*targetgroup.Group) {
		log.With("ignored", 1).Error("Error refreshing", "name", "b", "err", "no such name")
		up <- one("a", "a:2")
	}

	do <- fails
	b.wantHealth(component.Unhealthy, "cannot discover all targets: connection refused")
	b.want()
	do <- ok
	b.wantHealth(component.Healthy, "found 2 targets")
	b.want("a:1", "b:1")
	do <- fails
	do <- fails
	b.wantHealth(component.Unhealthy, "connection refused")
	b.want("a:1", "b:1")
	if got := b.c.DebugInfo().(discovery.Info); got.LastError != "connection refused" || got.Targets != 2 {
		t.Errorf("got debug info %+v", got)
	}
	b.pass(time.Second)

	// The part that fails keeps its targets.
	do <- partly
	b.wantHealth(component.Unhealthy, "cannot discover all targets: name b: no such name")
	b.want("a:2", "b:1")
	b.pass(time.Second)
	do <- ok
	b.wantHealth(component.Healthy, "found 2 targets")
	b.want("a:1", "b:1")

	if got := strings.Count(b.n.Logs(), "connection refused"); got != 2 {
		t.Errorf("the error was logged %d times, want once each time it began:\n%s", got, b.n.Logs())
	}
	if got := testutil.ToFloat64(gauge(b, "weir_discovery_errors_total")); got != 4 {
		t.Errorf("got %v errors counted, want 4", got)
	}
}

// TestChange: known targets stay until the new discoverer has found its targets.
func TestChange(t *testing.T) { synctest.Test(t, testChange) }

func testChange(t *testing.T) {
	b := start(t, discovery.Kind{}, sendUpdates(append(one("a", "a:1"), one("b", "b:1")...)))
	b.want("a:1", "b:1")
	b.pass(time.Second)

	silent := make(chan struct{})
	b.update(script{run: func(ctx context.Context, log *slog.Logger, up chan<- []*targetgroup.Group) {
		log.Error("Unable to refresh target groups", "err", "not yet")
		<-silent
		up <- one("b", "b:2")
		<-ctx.Done()
	}})
	b.want("a:1", "b:1")
	b.wantHealth(component.Unhealthy, "not yet")
	close(silent)
	b.want("b:2")
	b.wantHealth(component.Healthy, "")

	// Arguments for which no discoverer can be created change nothing.
	if err := b.c.Update(script{err: errors.New("no such file")}); err == nil || err.Error() != "cannot set up discovery script: no such file" {
		t.Errorf("got %v", err)
	}
	b.want("b:2")
}

// TestOldDiscovererIsNotHeard: messages of a stopped discoverer are ignored.
func TestOldDiscovererIsNotHeard(t *testing.T) { synctest.Test(t, testOldDiscovererIsNotHeard) }

func testOldDiscovererIsNotHeard(t *testing.T) {
	b := start(t, discovery.Kind{}, script{run: func(ctx context.Context, log *slog.Logger, up chan<- []*targetgroup.Group) {
		up <- one("a", "a:1")
		<-ctx.Done()
		log.Error("Unable to refresh target groups", "err", ctx.Err())
	}})
	b.update(sendUpdates(one("a", "a:2")))
	b.pass(time.Second)
	b.want("a:2")
	b.wantHealth(component.Healthy, "")
	if logs := b.n.Logs(); logs != "" {
		t.Errorf("got logs:\n%s", logs)
	}
}

func TestStream(t *testing.T) { synctest.Test(t, testStream) }

func testStream(t *testing.T) {
	k := discovery.Kind{Stream: true, Forget: time.Minute}
	b := start(t, k, sendUpdates(one("a", "a:1"), one("b", "b:1"), one("c", "c:1"), []*targetgroup.Group{{Source: "c"}}))
	b.want("a:1")
	b.pass(time.Second)
	b.want("a:1", "b:1")

	// The next one is slow: targets that it has not sent yet stay until it has
	// been quiet for a second.
	next := make(chan []*targetgroup.Group)
	b.update(script{run: func(ctx context.Context, _ *slog.Logger, up chan<- []*targetgroup.Group) {
		for {
			select {
			case u := <-next:
				up <- u
			case <-ctx.Done():
				return
			}
		}
	}})
	b.pass(3 * time.Second)
	b.want("a:1", "b:1")
	next <- one("b", "b:2")
	b.want("a:1", "b:2")
	b.pass(time.Second)
	b.want("b:2")
	b.pass(time.Second)
	next <- one("d", "d:1")
	b.want("b:2", "d:1")
	b.pass(10 * time.Second)
	b.want("b:2", "d:1")
}

// TestStreamFindsNothing: if there are no targets, there is no update.
func TestStreamFindsNothing(t *testing.T) { synctest.Test(t, testStreamFindsNothing) }

func testStreamFindsNothing(t *testing.T) {
	b := start(t, discovery.Kind{Stream: true, Forget: time.Minute}, sendUpdates())
	for range 11 {
		b.pass(time.Second)
	}
	b.wantHealth(component.Healthy, "found 0 targets")
	if e := b.n.Exports().(discovery.Exports); e.Targets == nil || len(e.Targets) != 0 {
		t.Errorf("got exports %+v, want an empty list", e)
	}

	b.update(sendUpdates(one("a", "a:1")))
	b.want("a:1")
	b.update(sendUpdates())
	for range 9 {
		b.pass(time.Second)
	}
	b.want("a:1")
	b.pass(time.Second)
	b.want()
}

// TestStreamFails: errors of a stream are not part of an update, so they are
// removed when none occurred for long enough. Until then, no targets are dropped.
func TestStreamFails(t *testing.T) { synctest.Test(t, testStreamFails) }

func testStreamFails(t *testing.T) {
	k := discovery.Kind{Stream: true, Forget: time.Minute, Failures: "script_failures_total"}
	b := start(t, k, sendUpdates(one("a", "a:1"), one("b", "b:1")))
	b.pass(time.Second)
	b.want("a:1", "b:1")

	b.update(script{run: func(ctx context.Context, log *slog.Logger, up chan<- []*targetgroup.Group) {
		log.Error("Error refreshing service", "service", "s", "err", "timeout")
		up <- one("a", "a:2")
		<-ctx.Done()
	}})
	b.pass(time.Second)
	b.want("a:2", "b:1")
	b.wantHealth(component.Unhealthy, "service s: timeout")
	for range 58 {
		b.pass(time.Second)
	}
	b.want("a:2", "b:1")
	b.wantHealth(component.Unhealthy, "service s: timeout")
	b.pass(2 * time.Second)
	b.pass(time.Second)
	b.wantHealth(component.Healthy, "found 1 target")
	b.want("a:2")

	// Errors that are only counted.
	b.update(script{run: func(ctx context.Context, _ *slog.Logger, up chan<- []*targetgroup.Group) {
		ctx.Value(failuresKey{}).(prometheus.Counter).Add(2)
		<-ctx.Done()
	}})
	b.pass(time.Second)
	b.wantHealth(component.Unhealthy, "2 requests failed, the log says why")
	b.want("a:2")
}

func TestNoSuchCounter(t *testing.T) { synctest.Test(t, testNoSuchCounter) }

func testNoSuchCounter(t *testing.T) {
	n := componenttest.New(t, "x")
	c, err := discovery.New(n.Options(), kind(discovery.Kind{Stream: true, Failures: "nobody_has_this"}), sendUpdates(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Run(t.Context()); err == nil || !strings.HasPrefix(err.Error(), "BUG: ") {
		t.Errorf("got %v, want a BUG", err)
	}
}

// TestEnds: if the discovery ends or panics, the component ends and is built
// again. Its targets are passed on.
func TestEnds(t *testing.T) { synctest.Test(t, testEnds) }

func testEnds(t *testing.T) {
	f := func(s script, want string) {
		t.Helper()
		n := componenttest.New(t, "x")
		c, err := discovery.New(n.Options(), kind(discovery.Kind{}), s, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Run(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	f(script{run: func(context.Context, *slog.Logger, chan<- []*targetgroup.Group) {}}, "the discovery ended by itself")
	f(script{run: func(context.Context, *slog.Logger, chan<- []*targetgroup.Group) { panic("ouch") }}, "the discovery panicked: ouch")
}

// TestStopIsNoEnd: it is not a failure if the discovery ends because the
// component is stopped.
func TestStopIsNoEnd(t *testing.T) { synctest.Test(t, testStopIsNoEnd) }

func testStopIsNoEnd(t *testing.T) {
	for range 100 { // which of the two is detected first is random
		n := componenttest.New(t, "x")
		c, err := discovery.New(n.Options(), kind(discovery.Kind{}), sendUpdates(), nil)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- c.Run(ctx) }()
		synctest.Wait()
		cancel()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
}

// TestReplaced: a component that replaces another one continues with its targets
// and its counters.
func TestReplaced(t *testing.T) { synctest.Test(t, testReplaced) }

func testReplaced(t *testing.T) {
	n := componenttest.New(t, "x")
	k := kind(discovery.Kind{Stream: true})
	first, err := discovery.New(n.Options(), k, sendUpdates(one("a", "a:1"), one("b", "b:1")), nil)
	if err != nil {
		t.Fatal(err)
	}
	stop := n.Run(t, first)
	b := &harness{t, n, first}
	b.pass(time.Second)
	stop()

	n.Registry = prometheus.NewRegistry()
	second, err := discovery.New(n.Options(), k, sendUpdates(one("a", "a:2")), first)
	if err != nil {
		t.Fatal(err)
	}
	n.Run(t, second)
	b.want("a:2", "b:1")
	b.pass(time.Second)
	b.want("a:2")
	if got := testutil.ToFloat64(gauge(b, "weir_discovery_updates_total")); got != 4 {
		t.Errorf("got %v updates, want those of both components, 4", got)
	}
}

// TestSleeper: the component does not wait for a discoverer that ignores its
// context, such as Consul's.
func TestSleeper(t *testing.T) { synctest.Test(t, testSleeper) }

func testSleeper(t *testing.T) {
	n := componenttest.New(t, "x")
	awake := make(chan struct{})
	c, err := discovery.New(n.Options(), kind(discovery.Kind{}), script{run: func(_ context.Context, _ *slog.Logger, up chan<- []*targetgroup.Group) {
		up <- one("a", "a:1")
		<-awake
	}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	(&harness{t, n, c}).want("a:1")
	cancel()
	synctest.Wait()
	select {
	case <-done:
		t.Fatal("Run did not wait at all")
	default:
	}
	n.Clock.Advance(2 * time.Second)
	if err := <-done; err != nil {
		t.Error(err)
	}
	close(awake)
}
