package flow_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/flow/flowtest"
)

// seen returns the batches that a sink received, one per line.
func seen(s *flowtest.Sink) (lines []string) {
	for _, b := range s.Batches() {
		var cells []string
		for i, series := range b.Series {
			v := fmt.Sprint(b.V[i])
			if batch.IsStale(b.V[i]) {
				v = "stale"
			}
			cells = append(cells, fmt.Sprintf("%s=%s@%d", series.Name(), v, b.T[i]))
		}
		lines = append(lines, strings.Join(cells, " "))
	}
	return lines
}

func TestSenderEndsWhatWentElsewhere(t *testing.T) {
	left, stays, next := flowtest.NewSink("left"), flowtest.NewSink("stays"), flowtest.NewSink("next")
	to := func(sinks ...*flowtest.Sink) *flow.Output {
		var rs []*flow.Receiver
		for _, s := range sinks {
			rs = append(rs, s.Receiver())
		}
		return flow.NewOutput(nil, rs)
	}
	source := batch.NewSource()
	a := batch.NewSeries([]batch.Label{{Name: "__name__", Value: "a"}})
	s := flow.NewSender()
	send := func(at int64) {
		t.Helper()
		b := &batch.Metrics{Source: source, Series: []*batch.Series{a}, T: []int64{at}, V: []float64{1}}
		if err := s.Send(t.Context(), 1, b, at); err != nil {
			t.Fatal(err)
		}
	}
	s.To(to(left, stays))
	send(1000)

	// A node that stays in the graph gets the markers right before the next batch.
	s.To(to(stays, next))
	s.EndLeaving(t.Context())
	send(2000)
	if d := cmp.Diff([]string{"a=1@1000", "a=stale@1999"}, seen(left)); d != "" {
		t.Errorf("what was left (-want +got):\n%s", d)
	}

	// A node that leaves the graph cannot wait for it, and gets the markers once.
	s.To(to(stays, left))
	next.Receiver().SetLeaving(true)
	s.EndLeaving(t.Context())
	s.EndLeaving(t.Context())
	send(3000)
	if d := cmp.Diff([]string{"a=1@2000", "a=stale@2001"}, seen(next)); d != "" {
		t.Errorf("what left (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]string{"a=1@1000", "a=1@2000", "a=1@3000"}, seen(stays)); d != "" {
		t.Errorf("what stayed (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]string{"a=1@1000", "a=stale@1999", "a=1@3000"}, seen(left)); d != "" {
		t.Errorf("what came back (-want +got):\n%s", d)
	}
}

// TestSenderTellsWaysApart: the batches of a source reach a node over two paths
// that renamed its series differently. New rules, or a new receiver, end the
// series of each path, and do not end the series of the other path.
func TestSenderTellsWaysApart(t *testing.T) {
	sink, next := flowtest.NewSink("sink"), flowtest.NewSink("next")
	s := flow.NewSender()
	s.To(flow.NewOutput(nil, []*flow.Receiver{sink.Receiver()}))
	gen := uint64(1)
	node := flow.NewReceiver("node", batch.SignalMetrics, nil, nil)
	node.Set(consumer(func(ctx context.Context, b *batch.Metrics) error { return s.Send(ctx, gen, b, b.T[0]) }))
	names := map[string]*batch.Series{}
	by := func(way string) *flow.Receiver {
		r := flow.NewReceiver(way, batch.SignalMetrics, nil, nil)
		out := flow.NewOutput(nil, []*flow.Receiver{node})
		names[way] = named(way)
		r.Set(consumer(func(ctx context.Context, b *batch.Metrics) error {
			c := *b
			c.Series = []*batch.Series{names[way]}
			return out.SendMetrics(ctx, &c)
		}))
		return r
	}
	source := flow.NewOutput(nil, []*flow.Receiver{by("old"), by("new"), node})
	from := batch.NewSource()
	scrape := func(at int64) {
		t.Helper()
		b := &batch.Metrics{Source: from, Series: []*batch.Series{names["old"]}, T: []int64{at}, V: []float64{1}}
		b.Series[0] = named("direct")
		if err := source.SendMetrics(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	want := func(of *flowtest.Sink, want ...string) {
		t.Helper()
		got := seen(of)
		slices.Sort(got)
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
	}
	scrape(1000)
	gen = 2
	scrape(2000)
	want(sink, "direct=1@1000", "direct=1@2000", "new=1@1000", "new=1@2000", "old=1@1000", "old=1@2000")
	gen = 3
	names["old"] = named("older")
	s.To(flow.NewOutput(nil, []*flow.Receiver{next.Receiver()}))
	scrape(3000)
	want(next, "direct=1@3000", "new=1@3000", "older=1@3000 old=stale@3000")
	want(sink, "direct=1@1000", "direct=1@2000", "direct=stale@2999", "new=1@1000", "new=1@2000", "new=stale@2999", "old=1@1000", "old=1@2000", "old=stale@2999")
}

// TestSenderWaits: a batch of one source does not overtake an earlier batch of
// the same source.
func TestSenderWaits(t *testing.T) {
	block := make(chan struct{})
	entered := make(chan struct{}, 1)
	r := flow.NewReceiver("slow", batch.SignalMetrics, nil, nil)
	r.Set(consumer(func(context.Context, *batch.Metrics) error { entered <- struct{}{}; <-block; return nil }))
	s := flow.NewSender()
	s.To(flow.NewOutput(nil, []*flow.Receiver{r}))
	done := make(chan error, 1)
	go func() { done <- s.Send(t.Context(), 1, one(1, 1), 1) }()
	<-entered
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Send(ctx, 1, one(1, 2), 2); err == nil {
		t.Error("another batch of the source did not wait")
	}
	close(block)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestSenderForgets: nothing is left of a source whose series were all
// released.
func TestSenderForgets(t *testing.T) {
	before, after := flowtest.NewSink("before"), flowtest.NewSink("after")
	s := flow.NewSender()
	s.To(flow.NewOutput(nil, []*flow.Receiver{before.Receiver()}))
	a := batch.NewSeries([]batch.Label{{Name: "__name__", Value: "a"}})
	b := &batch.Metrics{Source: batch.NewSource(), Series: []*batch.Series{a}, T: []int64{1000}, V: []float64{1}}
	if err := s.Send(t.Context(), 1, b, 1000); err != nil {
		t.Fatal(err)
	}
	a.Release()
	s.Sweep()
	s.To(flow.NewOutput(nil, []*flow.Receiver{after.Receiver()}))
	before.Receiver().SetLeaving(true)
	s.EndLeaving(t.Context())
	if d := cmp.Diff([]string{"a=1@1000"}, seen(before)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
