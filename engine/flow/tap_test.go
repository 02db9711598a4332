package flow_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/flow"
)

// tapped is a node with a tap of each side. It sends to next.
type tapped struct {
	stats          flow.Stats
	gate           *flow.Receiver
	out            *flow.Output
	in, sent, call *flow.Tap
}

func newTapped(name string, next ...*flow.Receiver) *tapped {
	now := func() time.Time { return time.Unix(7, 0) }
	n := &tapped{in: flow.NewTap(flow.In, now), sent: flow.NewTap(flow.Out, now), call: flow.NewTap(flow.Calls, now)}
	n.gate = flow.NewReceiver(name, batch.SignalMetrics|batch.SignalLogs, &n.stats, nil)
	n.out = flow.NewOutput(&n.stats, next)
	for _, t := range []*flow.Tap{n.in, n.sent, n.call} {
		n.stats.Attach(t)
	}
	return n
}

// taken is what a tap has in its queue: the values in > out, and the error.
func taken(t *flow.Tap) string {
	var s []string
	queue, missed := t.Take()
	for _, o := range queue {
		text := fmt.Sprintf("%v > %v", values(o.In), values(o.Out))
		if o.Err != nil {
			text += " " + o.Err.Error()
		}
		if o.Time != time.Unix(7, 0) {
			text += " at another time"
		}
		s = append(s, text)
	}
	if missed > 0 {
		s = append(s, fmt.Sprint("missed ", missed))
	}
	return strings.Join(s, "; ")
}

func values(b flow.Batches) (vs []any) {
	for _, m := range b.Metrics {
		for _, v := range m.V {
			vs = append(vs, v)
		}
	}
	for _, l := range b.Logs {
		for _, line := range l.Line {
			vs = append(vs, line)
		}
	}
	return vs
}

func wantSeen(t *testing.T, tap *flow.Tap, want string) {
	t.Helper()
	if got := taken(tap); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Taps see the input and the outputs of a call. Two tapped nodes in a row do not
// mix up their calls.
func TestTap(t *testing.T) {
	sink := newGate(nil)
	sink.Set(consumer(func(context.Context, *batch.Metrics) error { return nil }))
	below := newTapped("below", sink)
	below.gate.Set(consumer(func(ctx context.Context, b *batch.Metrics) error {
		return below.out.SendMetrics(ctx, one(1, b.V[0]+0.5))
	}))
	n := newTapped("node", below.gate)
	n.gate.Set(consumer(func(ctx context.Context, b *batch.Metrics) error {
		return errors.Join(n.out.SendMetrics(ctx, one(1, 2)), n.out.SendMetrics(ctx, one(1, 3)))
	}))
	if err := n.gate.ConsumeMetrics(t.Context(), one(1, 1)); err != nil {
		t.Fatal(err)
	}
	wantSeen(t, n.in, "[1] > []")
	wantSeen(t, n.sent, "[] > [2]; [] > [3]")
	wantSeen(t, n.call, "[1] > [2 3]")
	wantSeen(t, below.call, "[2] > [2.5]; [3] > [3.5]")

	// The outputs of a node further down are not outputs of this one.
	below.stats.Detach(below.call)
	below.stats.Detach(below.in)
	if err := n.gate.ConsumeMetrics(t.Context(), one(1, 1)); err != nil {
		t.Fatal(err)
	}
	wantSeen(t, n.call, "[1] > [2 3]")
	// Nor are outputs part of a call that began before the tap.
	later := flow.NewTap(flow.Calls, time.Now)
	n.gate.Set(consumer(func(ctx context.Context, b *batch.Metrics) error {
		n.stats.Attach(later)
		defer n.stats.Detach(later)
		return n.out.SendMetrics(ctx, b)
	}))
	if err := n.gate.ConsumeMetrics(t.Context(), one(1, 1)); err != nil {
		t.Fatal(err)
	}
	wantSeen(t, n.call, "[1] > [1]")
	if queue, _ := later.Take(); len(queue) != 1 || len(queue[0].In.Metrics) != 0 || len(queue[0].Out.Metrics) != 1 {
		t.Errorf("got %v, want an output alone", queue)
	}

	// Without a call, and after it has returned, outputs are alone.
	if err := n.out.SendMetrics(t.Context(), one(1, 4)); err != nil {
		t.Fatal(err)
	}
	wantSeen(t, n.call, "[] > [4]")
	var late context.Context
	n.gate.Set(consumer(func(ctx context.Context, _ *batch.Metrics) error { late = ctx; return nil }))
	if err := n.gate.ConsumeMetrics(t.Context(), one(1, 5)); err != nil {
		t.Fatal(err)
	}
	if err := n.out.SendMetrics(late, one(1, 6)); err != nil {
		t.Fatal(err)
	}
	wantSeen(t, n.call, "[5] > []; [] > [6]")

	// The tap stays when the component is replaced, and sees why a node refuses.
	n.gate.Set(consumer(func(context.Context, *batch.Metrics) error { return errors.New("no") }))
	if err := n.gate.ConsumeMetrics(t.Context(), one(1, 7)); err == nil {
		t.Error("the batch was accepted")
	}
	wantSeen(t, n.call, "[7] > [] no")
	// A refusal further down is not one of this node.
	sink.Set(consumer(func(context.Context, *batch.Metrics) error { return errors.New("no") }))
	n.gate.Set(consumer(func(ctx context.Context, b *batch.Metrics) error { return n.out.SendMetrics(ctx, b) }))
	if err := n.gate.ConsumeMetrics(t.Context(), one(1, 8)); err == nil {
		t.Error("the batch was accepted")
	}
	wantSeen(t, n.call, "[8] > [8]")
	n.gate.Set(consumer(func(context.Context, *batch.Metrics) error { panic("oops") }))
	if err := n.gate.ConsumeMetrics(t.Context(), one(1, 9)); err == nil {
		t.Error("the batch was accepted")
	}
	wantSeen(t, n.call, "[9] > [] node panicked: oops")

	taken(n.sent)
	n.stats.Detach(n.sent)
	n.stats.Detach(n.sent)
	if err := n.out.SendMetrics(t.Context(), one(1, 10)); err == nil {
		t.Error("the batch was accepted")
	}
	wantSeen(t, n.sent, "")
	wantSeen(t, n.call, "[] > [10]")
}

func TestTapLogs(t *testing.T) {
	b, err := batch.ParseLogsText("{a=\"1\"} short\n{a=\"1\"} long enough\n", batch.TextOptions{Source: batch.NewSource()})
	if err != nil {
		t.Fatal(err)
	}
	n := newTapped("node")
	sink := newTapped("sink")
	sink.gate.Set(logsConsumer(func(context.Context, *batch.Logs) error { return nil }))
	n.out = flow.NewOutput(&n.stats, []*flow.Receiver{sink.gate})
	n.gate.Set(logsConsumer(func(ctx context.Context, b *batch.Logs) error { return n.out.SendLogs(ctx, b.Rows([]int{1})) }))
	if err := n.gate.ConsumeLogs(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	wantSeen(t, n.in, "[short long enough] > []")
	wantSeen(t, n.sent, "[] > [long enough]")
	wantSeen(t, n.call, "[short long enough] > [long enough]")
	wantSeen(t, sink.call, "[long enough] > []")
}

// A tap that nobody reads does not delay the node. It counts the rows for which
// it has no room.
func TestTapQueueIsBounded(t *testing.T) {
	n := newTapped("node")
	n.gate.Set(consumer(func(context.Context, *batch.Metrics) error { return nil }))
	for range 300 {
		if err := n.gate.ConsumeMetrics(t.Context(), one(1, 1)); err != nil {
			t.Fatal(err)
		}
	}
	queue, missed := n.in.Take()
	if len(queue) != 256 || missed != 44 {
		t.Errorf("got %d batches and %d missed rows, want 256 and 44", len(queue), missed)
	}
	wantSeen(t, n.in, "")

	big := &batch.Metrics{Source: 1, Series: make([]*batch.Series, 60_000), T: make([]int64, 60_000), V: make([]float64, 60_000)}
	for i := range big.Series {
		big.Series[i] = shared
	}
	for range 3 {
		if err := n.gate.ConsumeMetrics(t.Context(), big); err != nil {
			t.Fatal(err)
		}
	}
	if queue, missed = n.in.Take(); len(queue) != 1 || missed != 120_000 {
		t.Errorf("got %d batches and %d missed rows, want 1 and 120000", len(queue), missed)
	}
}

// Taps come and go while batches pass. Each call that a tap sees is complete.
func TestTapWhileBatchesPass(t *testing.T) {
	sink := newGate(nil)
	sink.Set(consumer(func(context.Context, *batch.Metrics) error { return nil }))
	n := newTapped("node", sink)
	n.gate.Set(consumer(func(ctx context.Context, b *batch.Metrics) error { return n.out.SendMetrics(ctx, b) }))
	ctx, cancel := context.WithCancel(t.Context())
	var senders sync.WaitGroup
	for source := range 2 {
		senders.Go(func() {
			for v := 1.0; ctx.Err() == nil; v++ {
				if err := n.gate.ConsumeMetrics(t.Context(), one(uint64(source)+1, v)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	complete := 0
	for complete < 100 {
		tap := flow.NewTap(flow.Calls, time.Now)
		n.stats.Attach(tap)
		<-tap.Ready()
		n.stats.Detach(tap)
		queue, _ := tap.Take()
		for _, o := range queue {
			// A call that began before the tap has only its output here.
			if len(o.In.Metrics) == 0 {
				continue
			}
			if in, out := fmt.Sprint(values(o.In)), fmt.Sprint(values(o.Out)); in != out {
				t.Errorf("got output %s of input %s", out, in)
			}
			complete++
		}
	}
	cancel()
	senders.Wait()
}
