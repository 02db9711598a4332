package flow

import (
	"context"
	"testing"

	"github.com/weir-run/weir/engine/batch"
)

// last keeps the last batch that it received.
type last struct{ b *batch.Metrics }

func (l *last) ConsumeMetrics(_ context.Context, b *batch.Metrics) error {
	l.b = b
	return nil
}

// TestClosedExitsAreForgotten looks at internal state, because the exits of
// receivers without a route are not visible from outside.
func TestClosedExitsAreForgotten(t *testing.T) {
	sink := new(last)
	to := NewReceiver("sink", batch.SignalMetrics, nil, nil)
	to.Set(sink)
	e := NewExits()
	s := batch.NewSeries([]batch.Label{{Name: "a", Value: "b"}})
	b := &batch.Metrics{Source: 1, Series: []*batch.Series{s}, T: []int64{1}, V: []float64{1}}
	send := func(gen uint64, parts []Part) {
		t.Helper()
		if err := SendParts(t.Context(), gen, e.WithClosed(parts, b), 1); err != nil {
			t.Fatal(err)
		}
	}
	send(1, []Part{{Sender: e.Open(new(Stats), []*Receiver{to})[0].Sender, Batch: b}})
	e.Open(new(Stats))
	if e.Sweep(); len(e.by) != 1 || len(e.closed) != 1 {
		t.Fatalf("%d senders, %d closed; want one that owes a marker", len(e.by), len(e.closed))
	}
	send(2, nil)
	if !batch.IsStale(sink.b.V[0]) {
		t.Errorf("got %v, want the marker", sink.b.V)
	}
	if e.Sweep(); len(e.by) != 0 || len(e.closed) != 0 {
		t.Errorf("%d senders, %d closed; want none", len(e.by), len(e.closed))
	}
}

// A receiver with several routes is one exit.
func TestOpenExits(t *testing.T) {
	a, b := NewReceiver("a", batch.SignalMetrics, nil, nil), NewReceiver("b", batch.SignalMetrics, nil, nil)
	got := NewExits().Open(new(Stats), []*Receiver{a, nil, a}, nil, []*Receiver{b, a})
	if len(got) != 2 || got[0].Ways != 0b101 || got[1].Ways != 0b100 {
		t.Errorf("got %+v, want a on ways 0 and 2 and b on 2", got)
	}
}
