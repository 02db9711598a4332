package outbox_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/component/componenttest"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/flow/flowtest"
	"github.com/weir-run/weir/engine/outbox"
)

// endpoint accepts batches while it runs.
type endpoint struct {
	key     string
	gate    *flow.Receiver
	to      any // a consumer
	started chan struct{}
}

func (e *endpoint) Key() string            { return e.key }
func (e *endpoint) Gate() *flow.Receiver   { return e.gate }
func (e *endpoint) Problem() error         { return nil }
func (e *endpoint) Queue() component.Queue { return component.Queue{} }

func (e *endpoint) Run(ctx context.Context) {
	e.gate.Set(e.to)
	close(e.started)
	<-ctx.Done()
	<-e.gate.Set(nil)
}

type panics struct{}

func (panics) ConsumeLogs(context.Context, *batch.Logs) error { panic("boom") }

func lines() *batch.Logs {
	return &batch.Logs{Stream: []*batch.Stream{batch.NewSeries(nil)}, T: []int64{1}, Line: []string{"x"}}
}

// TestEndpoints: one endpoint stays, and one is removed and added again with
// the same gate.
func TestEndpoints(t *testing.T) {
	n := componenttest.New(t, "sink.default")
	o := n.Options()
	removed := flowtest.NewSink("removed")
	es := outbox.NewEndpoints[*endpoint](&o, batch.SignalLogs, removed, nil)
	made := func(key string, to any) *endpoint {
		return &endpoint{key: key, gate: es.Gate(key, key), to: to, started: make(chan struct{})}
	}
	set := func(next func() []*endpoint) {
		t.Helper()
		if err := es.Update(func(map[string]*endpoint) ([]*endpoint, error) { return next(), nil }); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	first, second := flowtest.NewSink("a"), flowtest.NewSink("b")
	var a, b, back *endpoint
	set(func() []*endpoint {
		a, b = made("a", first), made("b", second)
		return []*endpoint{a, b}
	})
	go func() { done <- es.Run(ctx) }()
	send := func() {
		t.Helper()
		if err := es.Output().SendLogs(t.Context(), lines()); err != nil {
			t.Error(err)
		}
	}
	send()
	gate := b.gate
	set(func() []*endpoint { return []*endpoint{a} })
	send()
	if err := gate.ConsumeLogs(t.Context(), lines()); err != nil { // the refused batch, whichever consumer is behind the gate
		t.Error(err)
	}

	// On an error, nothing changes.
	wrong := errors.New("wrong")
	if err := es.Update(func(map[string]*endpoint) ([]*endpoint, error) { return nil, wrong }); !errors.Is(err, wrong) {
		t.Errorf("got %v, want the error", err)
	}
	if all := es.Current(); len(all) != 1 || all[0] != a {
		t.Errorf("after an error there are %d endpoints, want the one", len(all))
	}

	third := flowtest.NewSink("b again")
	set(func() []*endpoint {
		back = made("b", third)
		return []*endpoint{a, back}
	})
	if back.gate != gate {
		t.Error("an endpoint that came back has another gate")
	}
	<-back.started
	send()
	got := func(s *flowtest.Sink) int { return len(s.Logs()) }
	if got(first) != 3 || got(second)+got(removed) != 2 || got(third) != 1 {
		t.Errorf("got %d, %d and %d removed, %d batches", got(first), got(second), got(removed), got(third))
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}

	// A panic behind a gate fails the component that owns the gate now.
	next := outbox.NewEndpoints(&o, batch.SignalLogs, removed, es)
	bad := &endpoint{key: "a", gate: next.Gate("a", "a"), to: panics{}, started: make(chan struct{})}
	if bad.gate != a.gate {
		t.Error("the next component's endpoint has another gate")
	}
	if err := next.Update(func(map[string]*endpoint) ([]*endpoint, error) { return []*endpoint{bad}, nil }); err != nil {
		t.Fatal(err)
	}
	go func() { done <- next.Run(t.Context()) }()
	<-bad.started
	if err := bad.gate.ConsumeLogs(t.Context(), lines()); err == nil {
		t.Error("a panic was taken for accepted")
	}
	if _, ok := errors.AsType[*flow.PanicError](<-done); !ok {
		t.Error("Run did not end with the panic")
	}
}

// TestUpdateThatHangs: while an update does not return, the endpoints, the queues and the
// health can be asked for. They are asked for in the status.
func TestUpdateThatHangs(t *testing.T) {
	n := componenttest.New(t, "sink.default")
	o := n.Options()
	es := outbox.NewEndpoints[*endpoint](&o, batch.SignalLogs, flowtest.NewSink("removed"), nil)
	began, hang, updated := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		updated <- es.Update(func(map[string]*endpoint) ([]*endpoint, error) {
			close(began)
			<-hang
			return []*endpoint{{key: "a", gate: es.Gate("a", "a"), started: make(chan struct{})}}, nil
		})
	}()
	<-began
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		es.Current()
		es.Backlog()
		es.Report()
	}()
	select {
	case <-asked:
	case <-time.After(10 * time.Second):
		t.Error("the status waits for the update")
	}
	close(hang)
	if err := <-updated; err != nil {
		t.Error(err)
	}
	<-asked
	if all := es.Current(); len(all) != 1 {
		t.Errorf("there are %d endpoints, want 1", len(all))
	}
}
