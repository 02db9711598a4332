package route

import (
	"testing"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/flow/flowtest"
	"github.com/weir-run/weir/natives/expr/clause"
)

// TestClosedExitsAreForgotten looks inside: what is kept of receivers that no
// route leads to cannot be seen from outside.
func TestClosedExitsAreForgotten(t *testing.T) {
	sink := flowtest.NewSink("sink")
	e := &exits{by: map[*flow.Receiver]*flow.Sender{}}
	args := func(to ...*flow.Receiver) *Arguments {
		return &Arguments{Routes: []*Route{{Name: "a", When: clause.Predicate("true"), ForwardTo: to}}}
	}
	s := batch.NewSeries([]batch.Label{{Name: "a", Value: "b"}})
	b := &batch.Metrics{Source: 1, Series: []*batch.Series{s}, T: []int64{1}, V: []float64{1}}
	send := func(gen uint64, parts []flow.Part) {
		t.Helper()
		if err := flow.SendParts(t.Context(), gen, e.withClosed(parts, b), 1); err != nil {
			t.Fatal(err)
		}
	}
	send(1, []flow.Part{{Sender: e.open(new(flow.Stats), args(sink.Receiver()))[0].sender, Batch: b}})
	e.open(new(flow.Stats), args())
	if e.Sweep(); len(e.by) != 1 || len(e.closed) != 1 {
		t.Fatalf("%d senders, %d closed; want one that owes a marker", len(e.by), len(e.closed))
	}
	send(2, nil)
	if last := sink.Last(); !batch.IsStale(last.V[0]) {
		t.Errorf("got %v, want the marker", last.V)
	}
	if e.Sweep(); len(e.by) != 0 || len(e.closed) != 0 {
		t.Errorf("%d senders, %d closed; want none", len(e.by), len(e.closed))
	}
}
