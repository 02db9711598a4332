package flow_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/flow"
)

// consumer is a function as a component behind a gate.
type consumer func(ctx context.Context, b *batch.Metrics) error

func (f consumer) ConsumeMetrics(ctx context.Context, b *batch.Metrics) error { return f(ctx, b) }

func one(source uint64, v float64) *batch.Metrics {
	return &batch.Metrics{Source: source, Series: []*batch.Series{shared}, T: []int64{0}, V: []float64{v}}
}

var shared = batch.NewSeries([]batch.Label{{Name: batch.NameLabel, Value: "up"}})

func newGate(onPanic func(*flow.PanicError)) *flow.Receiver {
	return flow.NewReceiver("a.b.c", batch.SignalMetrics, nil, onPanic)
}

// Eight sources send through a gate whose component changes a thousand times.
// Each batch arrives once, each source's batches arrive in order, and a
// replaced component gets no calls.
func TestSwapUnderLoadLosesNothing(t *testing.T) {
	const sources, each, swaps = 8, 3000, 1000
	var stats flow.Stats
	r := flow.NewReceiver("a.b.c", batch.SignalMetrics, &stats, nil)

	var mu sync.Mutex
	next := make([]int, sources)
	version := func() (flow.MetricsConsumer, func()) {
		left := false
		return consumer(func(_ context.Context, b *batch.Metrics) error {
				mu.Lock()
				defer mu.Unlock()
				if left {
					t.Error("a call on a component that was left")
				}
				if got := int(b.V[0]); got != next[b.Source] {
					t.Errorf("source %d: got batch %d, want %d", b.Source, got, next[b.Source])
				}
				next[b.Source]++
				return nil
			}), func() {
				mu.Lock()
				defer mu.Unlock()
				left = true
			}
	}

	var wg sync.WaitGroup
	for src := range sources {
		wg.Go(func() {
			for i := range each {
				if err := r.ConsumeMetrics(t.Context(), one(uint64(src), float64(i))); err != nil {
					t.Errorf("source %d, batch %d: %v", src, i, err)
					return
				}
			}
		})
	}
	sent := make(chan struct{})
	go func() { wg.Wait(); close(sent) }()
	retire := func() {}
	for i := 0; i < swaps || !isClosed(sent); i++ {
		c, end := version()
		if i%2 == 1 {
			<-r.Set(nil) // no component for a while
		}
		<-r.Set(c)
		retire()
		retire = end
	}
	<-sent
	for src, n := range next {
		if n != each {
			t.Errorf("source %d: %d of %d arrived", src, n, each)
		}
	}
	if got := stats.In.Load(); got != sources*each {
		t.Errorf("stats say %d came in, want %d", got, sources*each)
	}
}

func TestCallsWaitForAComponent(t *testing.T) {
	r := newGate(nil)
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("enough")
	cancel(cause)
	err := r.ConsumeMetrics(ctx, one(1, 1))
	if !errors.Is(err, cause) || !strings.Contains(err.Error(), "a.b.c has no running component") {
		t.Errorf("got %v", err)
	}

	accepted := make(chan error)
	go func() { accepted <- r.ConsumeMetrics(t.Context(), one(1, 1)) }()
	got := make(chan *batch.Metrics, 1)
	r.Set(consumer(func(_ context.Context, b *batch.Metrics) error { got <- b; return nil }))
	if err := <-accepted; err != nil {
		t.Error(err)
	}
	if b := <-got; b.V[0] != 1 {
		t.Errorf("got %v", b)
	}
}

func TestSetTellsWhenTheOldComponentIsLeft(t *testing.T) {
	r := newGate(nil)
	entered, release := make(chan bool), make(chan bool)
	slow := consumer(func(context.Context, *batch.Metrics) error { entered <- true; <-release; return nil })
	fast := consumer(func(context.Context, *batch.Metrics) error { return nil })
	if !isClosed(r.Set(slow)) {
		t.Error("there was nothing to leave")
	}
	done := make(chan error)
	go func() { done <- r.ConsumeMetrics(t.Context(), one(1, 1)) }()
	<-entered
	left := r.Set(fast)
	if isClosed(left) {
		t.Error("left with a call in flight")
	}
	if err := r.ConsumeMetrics(t.Context(), one(2, 1)); err != nil { // does not wait for the slow call
		t.Error(err)
	}
	release <- true
	<-left
	if err := <-done; err != nil {
		t.Errorf("the call in flight: %v", err)
	}
}

func TestStop(t *testing.T) {
	r := newGate(nil)
	waiting := make(chan error)
	go func() { waiting <- r.ConsumeMetrics(t.Context(), one(1, 1)) }()
	entered, release := make(chan bool), make(chan bool)
	slow := consumer(func(context.Context, *batch.Metrics) error { entered <- true; <-release; return nil })
	r.Set(slow)
	<-entered // the waiting call is in flight, on the first component
	r.Set(slow)
	done := make(chan error)
	go func() { done <- r.ConsumeMetrics(t.Context(), one(2, 1)) }()
	<-entered // and one on the second

	stopped := r.Stop()
	if err := r.ConsumeMetrics(t.Context(), one(3, 1)); !errors.Is(err, flow.ErrStopped) {
		t.Errorf("after Stop: %v", err)
	}
	r.Set(slow) // a stopped gate stays stopped
	if err := r.ConsumeMetrics(t.Context(), one(3, 1)); !errors.Is(err, flow.ErrStopped) {
		t.Errorf("after Stop and Set: %v", err)
	}
	release <- true
	if isClosed(stopped) {
		t.Error("stopped with a call in flight")
	}
	release <- true
	<-stopped
	if err := errors.Join(<-waiting, <-done); err != nil {
		t.Errorf("calls in flight: %v", err)
	}
	if !isClosed(r.Stop()) {
		t.Error("a second Stop has something to wait for")
	}

	idle := newGate(nil)
	go func() { waiting <- idle.ConsumeMetrics(t.Context(), one(1, 1)) }()
	if !isClosed(idle.Stop()) {
		t.Error("a gate without calls is not stopped at once")
	}
	if err := <-waiting; !errors.Is(err, flow.ErrStopped) {
		t.Errorf("a waiting call: %v", err)
	}
}

func TestPanicStopsAtTheGate(t *testing.T) {
	var r *flow.Receiver
	panics := make(chan *flow.PanicError, 10)
	r = newGate(func(p *flow.PanicError) {
		r.Accepts() // no lock is held
		panics <- p
	})
	var both sync.WaitGroup // two calls panic at once
	both.Add(2)
	r.Set(consumer(func(context.Context, *batch.Metrics) error {
		both.Done()
		both.Wait()
		panic("boom")
	}))
	errs := make(chan error)
	for range 2 {
		go func() { errs <- r.ConsumeMetrics(t.Context(), one(1, 1)) }()
	}
	for range 2 {
		err := <-errs
		p, ok := errors.AsType[*flow.PanicError](err)
		if !ok || p.Value != "boom" || p.Error() != "a.b.c panicked: boom" || !strings.Contains(string(p.Stack), "receiver_test.go") {
			t.Errorf("got %v", err)
		}
	}
	if p := <-panics; p.Node != "a.b.c" || len(panics) != 0 {
		t.Errorf("reported %v and %d more", p, len(panics))
	}
	// The component was removed: calls wait for the next component.
	go func() { errs <- r.ConsumeMetrics(t.Context(), one(1, 1)) }()
	r.Set(consumer(func(context.Context, *batch.Metrics) error { return nil }))
	if err := <-errs; err != nil {
		t.Error(err)
	}
}

// A panic in a component that has been replaced does not remove its successor.
func TestPanicOfAReplacedComponent(t *testing.T) {
	r := newGate(func(p *flow.PanicError) { t.Errorf("reported %v", p) })
	entered, release := make(chan bool), make(chan bool)
	r.Set(consumer(func(context.Context, *batch.Metrics) error { entered <- true; <-release; panic("late") }))
	done := make(chan error)
	go func() { done <- r.ConsumeMetrics(t.Context(), one(1, 1)) }()
	<-entered
	left := r.Set(consumer(func(context.Context, *batch.Metrics) error { return nil }))
	release <- true
	if _, ok := errors.AsType[*flow.PanicError](<-done); !ok {
		t.Error("the panic was not returned")
	}
	<-left
	if err := r.ConsumeMetrics(t.Context(), one(1, 1)); err != nil {
		t.Errorf("the successor: %v", err)
	}
}

func TestComponentWithoutMetrics(t *testing.T) {
	var stats flow.Stats
	r := flow.NewReceiver("a.b.c", batch.SignalLogs, &stats, nil)
	r.Set(struct{}{})
	b := one(1, 1)
	if err := r.ConsumeMetrics(t.Context(), b); err == nil || err.Error() != "a.b.c does not accept metrics" {
		t.Errorf("got %v", err)
	}
	if stats.LastIn() != b {
		t.Errorf("got last batch %v, want the one that was refused", stats.LastIn())
	}
	if r.Accepts() != batch.SignalLogs || r.Node() != "a.b.c" || stats.In.Load() != 0 {
		t.Errorf("got %v, %s, %d in", r.Accepts(), r.Node(), stats.In.Load())
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
