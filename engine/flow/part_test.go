package flow_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/flow/flowtest"
)

// way is a Sender to its own sink.
type way struct {
	*flow.Sender
	sink *flowtest.Sink
}

func newWay(node string) way {
	w := way{flow.NewSender(), flowtest.NewSink(node)}
	w.To(flow.NewOutput(nil, []*flow.Receiver{w.sink.Receiver()}))
	return w
}

// part returns a Part with the given series at one time.
func (w way) part(source uint64, at int64, ss ...*batch.Series) flow.Part {
	b := &batch.Metrics{Source: source}
	for _, s := range ss {
		b.Series, b.T, b.V = append(b.Series, s), append(b.T, at), append(b.V, 1)
	}
	return flow.Part{Sender: w.Sender, Batch: b}
}

func (w way) want(t *testing.T, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, seen(w.sink)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", w.sink.Receiver().Node(), diff)
	}
}

func named(name string) *batch.Series {
	return batch.NewSeries([]batch.Label{{Name: batch.NameLabel, Value: name}})
}

// TestSendParts: each part is sent to its own sink. If a part is refused, only
// that part is retried.
func TestSendParts(t *testing.T) {
	left, right := newWay("left"), newWay("right")
	a, b, c := named("a"), named("b"), named("c")
	source := batch.NewSource()
	if err := flow.SendParts(t.Context(), 1, nil, 1000); err != nil {
		t.Errorf("no parts: got %v", err)
	}
	if err := flow.SendParts(t.Context(), 1, []flow.Part{left.part(source, 1000, a), right.part(source, 1000, b, c)}, 1000); err != nil {
		t.Fatal(err)
	}

	right.sink.Refuse(flowtest.ErrRefused)
	err := flow.SendParts(t.Context(), 1, []flow.Part{left.part(source, 2000, a), right.part(source, 2000, b)}, 2000)
	p, ok := errors.AsType[*flow.Partial](err)
	if !ok || p.Len() != 1 || !errors.Is(err, flowtest.ErrRefused) {
		t.Fatalf("got %v", err)
	}
	if diff := cmp.Diff([]string{"right"}, p.Refused()); diff != "" {
		t.Errorf("refused (-want +got):\n%s", diff)
	}
	right.sink.Refuse(nil)
	if err := p.Retry(t.Context()); err != nil {
		t.Fatal(err)
	}
	left.want(t, "a=1@1000", "a=1@2000")
	right.want(t, "b=1@1000 c=1@1000", "b=1@2000")

	// The routes change: an empty part sends the staleness markers that are
	// pending there.
	if err := flow.SendParts(t.Context(), 2, []flow.Part{left.part(source, 3000, a, b), right.part(source, 3000)}, 3000); err != nil {
		t.Fatal(err)
	}
	left.want(t, "a=1@1000", "a=1@2000", "a=1@3000 b=1@3000")
	right.want(t, "b=1@1000 c=1@1000", "b=1@2000", "b=stale@3000")
	// Nothing is sent after the markers were accepted.
	if err := flow.SendParts(t.Context(), 2, []flow.Part{left.part(source, 4000), right.part(source, 4000)}, 4000); err != nil {
		t.Fatal(err)
	}
	right.want(t, "b=1@1000 c=1@1000", "b=1@2000", "b=stale@3000")
}

// TestSendPartsSideBySide: a receiver that blocks does not delay the other
// parts.
func TestSendPartsSideBySide(t *testing.T) {
	for _, first := range []bool{true, false} {
		slow, quick := newWay("slow"), newWay("quick")
		slow.sink.Receiver().Set(nil) // calls wait
		source := batch.NewSource()
		parts := []flow.Part{slow.part(source, 1, named("a")), quick.part(source, 1, named("b"))}
		if !first {
			parts[0], parts[1] = parts[1], parts[0]
		}
		done := make(chan error)
		go func() { done <- flow.SendParts(t.Context(), 1, parts, 1) }()
		if _, err := quick.sink.Wait(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		slow.sink.Receiver().Set(slow.sink)
		if err := <-done; err != nil {
			t.Error(err)
		}
		slow.want(t, "a=1@1")
	}
}

// TestSendPartsInTurn: a part that is still waiting for its turn when ctx ends
// is not accepted, and can be retried.
func TestSendPartsInTurn(t *testing.T) {
	busy, free := newWay("busy"), newWay("free")
	entered, block := make(chan struct{}, 1), make(chan struct{})
	busy.sink.Receiver().Set(consumer(func(ctx context.Context, b *batch.Metrics) error {
		entered <- struct{}{}
		<-block
		return busy.sink.ConsumeMetrics(ctx, b)
	}))
	source := batch.NewSource()
	a, b := named("a"), named("b")
	done := make(chan error)
	go func() { done <- busy.Send(t.Context(), 1, busy.part(source, 1, a).Batch, 1) }()
	<-entered
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		if _, err := free.sink.Wait(t.Context(), 1); err == nil {
			cancel()
		}
	}()
	err := flow.SendParts(ctx, 1, []flow.Part{busy.part(source, 2, a), free.part(source, 2, b)}, 2)
	p, ok := errors.AsType[*flow.Partial](err)
	if !ok || !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	if diff := cmp.Diff([]string{"busy"}, p.Refused()); diff != "" {
		t.Errorf("refused (-want +got):\n%s", diff)
	}
	close(block)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if err := p.Retry(t.Context()); err != nil {
		t.Fatal(err)
	}
	busy.want(t, "a=1@1", "a=1@2")
	free.want(t, "b=1@2")
}

// TestSendPartsBelow: if a receiver changed a part, a retry sends only the
// changed data that the next node refused.
func TestSendPartsBelow(t *testing.T) {
	deep := flowtest.NewSink("deep")
	out := flow.NewOutput(nil, []*flow.Receiver{deep.Receiver()})
	middle := flow.NewReceiver("middle", batch.SignalMetrics, nil, nil)
	calls := 0
	middle.Set(consumer(func(ctx context.Context, b *batch.Metrics) error {
		calls++
		return out.SendMetrics(ctx, b)
	}))
	w := newWay("unused")
	w.To(flow.NewOutput(nil, []*flow.Receiver{middle}))
	deep.Refuse(flowtest.ErrRefused)
	err := flow.SendParts(t.Context(), 1, []flow.Part{w.part(batch.NewSource(), 1, named("a"))}, 1)
	p, ok := errors.AsType[*flow.Partial](err)
	if !ok {
		t.Fatalf("got %v", err)
	}
	if diff := cmp.Diff([]string{"deep"}, p.Refused()); diff != "" {
		t.Errorf("refused (-want +got):\n%s", diff)
	}
	deep.Refuse(nil)
	if err := p.Retry(t.Context()); err != nil || calls != 1 || len(deep.Batches()) != 1 {
		t.Errorf("got %v, %d calls, %d batches", err, calls, len(deep.Batches()))
	}
}
