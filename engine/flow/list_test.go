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

// TestSendLists refuses a batch in the middle of a list. Only it and the batches after it
// are sent again, in order.
func TestSendLists(t *testing.T) {
	series := []*batch.Series{batch.NewSeries([]batch.Label{{Name: batch.NameLabel, Value: "a"}})}
	sample := func(v float64) *batch.Metrics {
		return &batch.Metrics{Source: 1, Series: series, T: []int64{0}, V: []float64{v}}
	}
	line := &batch.Logs{Source: 1, Stream: series, T: []int64{0}, Line: []string{"x"}}
	good := flowtest.NewSink("good")
	var got []float64
	refuse := map[float64]bool{2: true, 3: true}
	picky := flow.NewReceiver("picky", batch.SignalMetrics, nil, nil)
	picky.Set(consume(func(_ context.Context, b *batch.Metrics) error {
		if v := b.V[0]; refuse[v] {
			delete(refuse, v)
			return errors.New("full")
		}
		got = append(got, b.V[0])
		return nil
	}))
	var stats flow.Stats
	lists := []flow.List{
		{To: good.Receiver(), Batches: flow.Batches{Metrics: []*batch.Metrics{sample(1), sample(2)}, Logs: []*batch.Logs{line}}},
		{To: picky, Batches: flow.Batches{Metrics: []*batch.Metrics{sample(1), sample(2), sample(3), sample(4)}, Logs: []*batch.Logs{line}}},
	}
	err := flow.SendLists(t.Context(), &stats, lists)
	for _, left := range []int{3, 2} {
		p, ok := errors.AsType[*flow.Partial](err)
		if !ok || p.Len() != left || p.Samples() != left || len(p.Refused()) != 1 {
			t.Fatalf("got %v, want %d refused samples", err, left)
		}
		err = p.Retry(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]float64{1, 2, 3, 4}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(good.Batches()) != 2 || len(good.Logs()) != 1 {
		t.Errorf("got %d and %d batches", len(good.Batches()), len(good.Logs()))
	}
	if stats.Out.Load() != 6 || stats.LinesOut.Load() != 1 || stats.DroppedLines()["no_receiver"] != 1 {
		t.Errorf("got %d samples, %d lines, %v", stats.Out.Load(), stats.LinesOut.Load(), stats.DroppedLines())
	}
	if err := flow.SendLists(t.Context(), nil, nil); err != nil {
		t.Error(err)
	}
}

type consume func(context.Context, *batch.Metrics) error

func (f consume) ConsumeMetrics(ctx context.Context, b *batch.Metrics) error { return f(ctx, b) }
