package flow_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/flow/flowtest"
)

// relay returns a node that changes a batch and sends the result to its
// receivers.
func relay(node string, stats *flow.Stats, change func(*batch.Metrics) *batch.Metrics, to ...*flow.Receiver) *flow.Receiver {
	out := flow.NewOutput(stats, to)
	r := flow.NewReceiver(node, batch.SignalMetrics, stats, nil)
	r.Set(consumer(func(ctx context.Context, b *batch.Metrics) error { return out.SendMetrics(ctx, change(b)) }))
	return r
}

func unchanged(b *batch.Metrics) *batch.Metrics { return b }

func TestFanOut(t *testing.T) {
	var stats flow.Stats
	a, b := flowtest.NewSink("a"), flowtest.NewSink("b")
	out := flow.NewOutput(&stats, []*flow.Receiver{a.Receiver(), b.Receiver(), nil, a.Receiver()})
	in := one(1, 1)
	if err := out.SendMetrics(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	if err := out.SendMetrics(t.Context(), &batch.Metrics{}); err != nil {
		t.Fatal(err)
	}
	for _, s := range []*flowtest.Sink{a, b} {
		if got := s.Batches(); len(got) != 1 || &got[0].Series[0] != &in.Series[0] || got[0].Source != in.Source {
			t.Errorf("got %v, want the batch's own columns, once", got)
		}
	}
	if a.Last().Way == b.Last().Way || in.Way != 0 {
		t.Error("the ways of a fan-out cannot be told apart")
	}
	if got := stats.Out.Load(); got != 2 {
		t.Errorf("%d samples out, want 2", got)
	}
	if stats.LastOut() != in || stats.LastIn() != nil {
		t.Errorf("got %v out and %v in, want the last batch that was not empty", stats.LastOut(), stats.LastIn())
	}
	if err := flow.NewOutput(nil, nil).SendMetrics(t.Context(), in); err != nil {
		t.Errorf("sending to nobody: %v", err)
	}
}

func TestABlockedBranchDelaysNoOther(t *testing.T) {
	stuck := flow.NewReceiver("stuck", batch.SignalMetrics, nil, nil) // no component
	free := flowtest.NewSink("free")
	for _, to := range [][]*flow.Receiver{{stuck, free.Receiver()}, {free.Receiver(), stuck}} {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		before := len(free.Batches())
		go func() { done <- flow.NewOutput(nil, to).SendMetrics(ctx, one(1, 1)) }()
		if _, err := free.Wait(t.Context(), before+1); err != nil {
			t.Fatal(err)
		}
		cancel()
		err := <-done
		p, ok := errors.AsType[*flow.Partial](err)
		if !ok || !errors.Is(err, context.Canceled) {
			t.Fatalf("got %v", err)
		}
		if diff := cmp.Diff([]string{"stuck"}, p.Refused()); diff != "" {
			t.Errorf("refused (-want +got):\n%s", diff)
		}
	}
}

// source → a
//
//	→ relay (doubles) → b
//	                  → c, which refuses, twice
func TestPartialRetriesOnlyWhatWasRefused(t *testing.T) {
	a, b, c := flowtest.NewSink("a"), flowtest.NewSink("b"), flowtest.NewSink("c")
	var srcStats, relayStats flow.Stats
	double := func(in *batch.Metrics) *batch.Metrics {
		out := *in
		out.V = []float64{2 * in.V[0]}
		return &out
	}
	out := flow.NewOutput(&srcStats, []*flow.Receiver{a.Receiver(), relay("relay", &relayStats, double, b.Receiver(), c.Receiver())})

	c.Refuse(flowtest.ErrRefused)
	err := out.SendMetrics(t.Context(), one(1, 21))
	for range 2 {
		p, ok := errors.AsType[*flow.Partial](err)
		if !ok {
			t.Fatalf("got %v", err)
		}
		if !errors.Is(err, flowtest.ErrRefused) || p.Len() != 1 || err.Error() != "c refused 1 samples: refused" {
			t.Errorf("got %d: %v", p.Len(), err)
		}
		err = p.Retry(t.Context())
	}
	if srcStats.Out.Load() != 2 || relayStats.In.Load() != 1 || relayStats.Out.Load() != 1 {
		t.Errorf("source sent %d, relay got %d and sent %d", srcStats.Out.Load(), relayStats.In.Load(), relayStats.Out.Load())
	}
	c.Refuse(nil)
	p, _ := errors.AsType[*flow.Partial](err)
	if err := p.Retry(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, f := range map[string]struct {
		s    *flowtest.Sink
		want float64
	}{"a": {a, 21}, "b": {b, 42}, "c": {c, 42}} {
		if got := f.s.Batches(); len(got) != 1 || got[0].V[0] != f.want {
			t.Errorf("%s got %v, want %v once", name, got, f.want)
		}
	}
	if relayStats.Out.Load() != 2 {
		t.Errorf("relay sent %d, want 2", relayStats.Out.Load())
	}
}

// In any tree, whatever the branches refuse, retrying until nothing is refused
// delivers every batch exactly once to every leaf.
func TestRetryInAnyTree(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 1))
		leaves := map[string]int{}
		refusals := make(chan bool, 1000)
		for range cap(refusals) {
			refusals <- r.IntN(3) == 0
		}
		got := make(chan string, 1000)
		var grow func(name string, depth int) *flow.Receiver
		grow = func(name string, depth int) *flow.Receiver {
			n := r.IntN(4)
			if depth == 3 || n == 0 {
				leaves[name] = 1
				leaf := flow.NewReceiver(name, batch.SignalMetrics, nil, nil)
				leaf.Set(consumer(func(context.Context, *batch.Metrics) error {
					if <-refusals {
						return flowtest.ErrRefused
					}
					got <- name
					return nil
				}))
				return leaf
			}
			var to []*flow.Receiver
			for i := range n {
				to = append(to, grow(fmt.Sprintf("%s.%d", name, i), depth+1))
			}
			return relay(name, nil, unchanged, to...)
		}
		root := flow.NewOutput(nil, []*flow.Receiver{grow("x", 0), grow("y", 0)})
		err := root.SendMetrics(t.Context(), one(1, 1))
		for tries := 0; err != nil; tries++ {
			p, ok := errors.AsType[*flow.Partial](err)
			if !ok || tries > 100 {
				t.Fatalf("seed %d, try %d: %v", seed, tries, err)
			}
			err = p.Retry(t.Context())
		}
		close(got)
		have := map[string]int{}
		for name := range got {
			have[name]++
		}
		if diff := cmp.Diff(leaves, have); diff != "" {
			t.Fatalf("seed %d: arrivals (-want +got):\n%s", seed, diff)
		}
	}
}

func TestStatsDrop(t *testing.T) {
	var s flow.Stats
	s.Drop("filtered", 0)
	s.Drop("filtered", 2)
	s.Drop("filtered", 3)
	s.Drop("late", 1)
	got := s.Dropped()
	if diff := cmp.Diff(map[string]uint64{"filtered": 5, "late": 1}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	got["late"] = 9
	if s.Dropped()["late"] != 1 {
		t.Error("the caller's map is the counter itself")
	}
}

func ExampleOutput() {
	// An argument forward_to holds the gates of other nodes.
	sink := flowtest.NewSink("prometheus.echo.default")
	out := flow.NewOutput(nil, []*flow.Receiver{sink.Receiver()})

	b, _ := batch.ParseText(`up{job="api"} 1`, batch.TextOptions{T: 1700000000000, Source: batch.NewSource()})
	sink.Refuse(errors.New("the disk is full"))
	err := out.SendMetrics(context.Background(), b)
	fmt.Println(err)

	// The source decides to retry. Only the refused batch is sent.
	sink.Refuse(nil)
	if p, ok := errors.AsType[*flow.Partial](err); ok {
		err = p.Retry(context.Background())
	}
	fmt.Println(err, sink.Last().Len())
	// Output:
	// prometheus.echo.default refused 1 samples: the disk is full
	// <nil> 1
}

func TestWithout(t *testing.T) {
	a, b, c := flow.NewReceiver("a", batch.SignalMetrics, nil, nil), flow.NewReceiver("b", batch.SignalMetrics, nil, nil), flow.NewReceiver("c", batch.SignalMetrics, nil, nil)
	refused := func(o *flow.Output) string {
		if o == nil {
			return "nil"
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // nothing is behind the gates
		var p *flow.Partial
		if !errors.As(o.SendMetrics(ctx, one(1, 1)), &p) {
			t.Fatal("nobody refused")
		}
		return strings.Join(p.Refused(), " ")
	}
	f := func(want string, o, without *flow.Output) {
		t.Helper()
		if got := refused(o.Without(without)); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	ab := flow.NewOutput(nil, []*flow.Receiver{a, b})
	f("a b", ab, nil)
	f("a", ab, flow.NewOutput(nil, []*flow.Receiver{b, c}))
	f("nil", ab, flow.NewOutput(nil, []*flow.Receiver{c, b, a}))
	f("a b", ab, flow.NewOutput(nil, nil))
}

// TestWhole: a batch that no part of a node took does not count as received,
// and is sent again as a whole. A batch that some parts took is retried by
// branch.
func TestWhole(t *testing.T) {
	bad, good := flowtest.NewSink("bad"), flowtest.NewSink("good")
	broken := errors.New("no space left on device")
	worse := flowtest.NewSink("worse")
	bad.Refuse(broken)
	worse.Refuse(broken)
	gate := func(sinks ...*flowtest.Sink) (*flow.Receiver, *flow.Stats) {
		var to []*flow.Receiver
		for _, s := range sinks {
			to = append(to, s.Receiver())
		}
		stats := new(flow.Stats)
		out := flow.NewOutput(nil, to)
		r := flow.NewReceiver("node", batch.SignalMetrics, stats, nil)
		r.Set(consumer(func(ctx context.Context, b *batch.Metrics) error { return out.Whole(out.SendMetrics(ctx, b)) }))
		return r, stats
	}
	f := func(in uint64, partial bool, sinks ...*flowtest.Sink) {
		t.Helper()
		r, stats := gate(sinks...)
		err := r.ConsumeMetrics(t.Context(), one(1, 1))
		if _, ok := errors.AsType[*flow.Partial](err); ok != partial || !errors.Is(err, broken) || stats.In.Load() != in {
			t.Errorf("got %v, %d in; want partial %v, %d in", err, stats.In.Load(), partial, in)
		}
	}
	f(0, false, bad)
	f(0, false, bad, worse)
	f(1, true, bad, good)
}
