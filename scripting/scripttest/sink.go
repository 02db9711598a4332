package scripttest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/node"
)

// Sinks under test. They have no journal: what a test sends is handed to send at
// once, and what is to be sent again waits for the clock, with all that came
// behind it.

// waiting is a batch that is to be sent, again if it was.
type waiting struct {
	in      input
	before  *node.Undelivered // the last attempt; nil: there was none
	due     time.Time
	backoff time.Duration
}

// The back-off of a sink under test, without the part that a real one draws.
const (
	minBackoff = time.Second
	maxBackoff = 30 * time.Second
)

// delivery is what became of records in a sink.
type delivery struct {
	delivered, waiting int
	after              time.Duration
	lost               map[string]int // by reason
	reason             string
}

func (d *delivery) countLost(reason string, n int) {
	if n == 0 {
		return
	}
	if d.lost == nil {
		d.lost = map[string]int{}
	}
	d.lost[reason] += n
}

// waits notes what waits.
func (d *delivery) waits(ws []*waiting, now time.Time) {
	for _, w := range ws {
		d.waiting += w.in.len()
	}
	if len(ws) > 0 {
		d.after = ws[0].due.Sub(now)
	}
}

// sendInput hands a batch to the component.
func (n *testNode) sendInput(ctx context.Context, in input) error {
	if n.sends != 0 {
		// Of what is held the test sees the error, and that nothing came.
		if err := n.consume(node.Observe(ctx, n.failed), in); err != nil && !errors.Is(err, node.ErrHeld) {
			return fmt.Errorf("%s did not take the batch: %w", n.name, err)
		}
		return nil
	}
	n.waiting = append(n.waiting, &waiting{in: in})
	if len(n.waiting) > 1 {
		return nil
	}
	return n.deliver(ctx, false)
}

func (n *testNode) consume(ctx context.Context, in input) error {
	if in.logs != nil {
		return n.in.ConsumeLogs(ctx, in.logs)
	}
	return n.in.ConsumeMetrics(ctx, in.metrics)
}

// nextSend is when a sink is to send again; zero for never.
func (n *testNode) nextSend() time.Time {
	if len(n.waiting) == 0 {
		return time.Time{}
	}
	return n.waiting[0].due
}

// deliver sends what waits in a sink and is due, or with all what is not, until
// something is to wait.
func (n *testNode) deliver(ctx context.Context, all bool) error {
	ctx = node.Observe(ctx, n.failed)
	for len(n.waiting) > 0 {
		w := n.waiting[0]
		if w.due.After(n.clock.Now()) && !all {
			return nil
		}
		again, err := n.attempt(ctx, w)
		if err != nil {
			return err
		}
		if again {
			return nil
		}
		n.waiting = n.waiting[1:]
	}
	return nil
}

// attempt sends a batch once, and says whether it is to be sent again.
func (n *testNode) attempt(ctx context.Context, w *waiting) (again bool, err error) {
	if w.before != nil {
		ctx = node.Again(ctx, w.before)
	}
	d, dropped := &n.delivery, n.dropped()["script"]
	err = n.consume(ctx, w.in)
	u, ok := errors.AsType[*node.Undelivered](err)
	switch {
	case err != nil && !ok:
		return false, fmt.Errorf("%s did not take the batch: %w", n.name, err)
	case !ok:
		lost := int(n.dropped()["script"] - dropped)
		d.countLost("script", lost)
		d.delivered += w.in.len() - lost
		return false, nil
	}
	sent := u.Records - len(u.Left)
	for reason, lost := range u.Lost {
		d.countLost(reason, lost)
		sent -= lost
	}
	d.delivered += sent
	d.reason = scripting.AsError(u.Err).Err.Error()
	if len(u.Left) == 0 {
		return false, nil
	}
	w.in, w.before = w.in.rows(u.Left), u
	w.backoff = min(max(2*w.backoff, minBackoff), maxBackoff)
	w.due = n.clock.Now().Add(w.backoff)
	if u.After > 0 {
		w.due = n.clock.Now().Add(u.After)
	}
	return true, nil
}

func (in input) rows(rows []int) input {
	if in.logs != nil {
		return input{logs: in.logs.Rows(rows)}
	}
	return input{metrics: in.metrics.Rows(rows)}
}

// drain sends all that waits, once.
func (n *testNode) drain(ctx context.Context) (*output, error) {
	before := n.begin()
	if err := n.deliver(ctx, true); err != nil {
		return nil, err
	}
	if _, err := n.awaitIdle(ctx); err != nil {
		return nil, err
	}
	return n.output(&batch.Metrics{}, before), nil
}

func (s *session) drainMethod() scripting.Function {
	return scripting.Function{
		Name: "drain", Doc: "Sends the records of a sink that wait for a retry at once, due or not, as when weir stops. An error in the script fails the test.",
		Result: scripting.Result{Kind: scripting.KindObject, Type: batchType},
		Fn: func(a []scripting.Value) (scripting.Value, error) {
			n := a[0].(*testNode)
			if err := s.ready(n); err != nil {
				return nil, err
			}
			return s.outputBatch(n.drain(s.ctx))
		},
	}
}

// lossReasons are why a sink loses records.
var lossReasons = []string{"rejected", "script", "script_error", "quarantine"}

// outcomeMethod is the method of what came out that tells what became of the
// records, of a sink.
var outcomeMethod = scripting.Function{
	Name: "outcome",
	Doc: "The outcome for the records sent to a sink: how many were delivered, how many wait for a retry (ctx.retry, or an error with on_error = \"hold\") " +
		"and after how many seconds, how many were lost, by reason, and why. While records wait, records that are sent later wait behind them, as in a journal. calls() of the mocks returns the requests.",
	Result: scripting.Result{Kind: scripting.KindMap, Fields: []scripting.Param{
		{Name: "delivered", Kind: scripting.KindInt, Doc: "Number of delivered records."},
		{Name: "waiting", Kind: scripting.KindInt, Doc: "Number of records that wait for a retry."},
		{Name: "after", Kind: scripting.KindNumber, Optional: true, Doc: "Seconds until the retry."},
		{Name: "lost", Kind: scripting.KindMap, Of: &scripting.Param{Kind: scripting.KindInt}, Doc: "Number of records that will not be delivered, by reason: rejected, script (dropped), script_error, quarantine."},
		{Name: "reason", Kind: scripting.KindString, Optional: true, Doc: "Why some records were not delivered."},
	}},
	Fn: func(a []scripting.Value) (scripting.Value, error) {
		d := a[0].(*output).delivery
		m, lost := scripting.NewMap(), scripting.NewMap()
		m.Set("delivered", int64(d.delivered))
		m.Set("waiting", int64(d.waiting))
		if d.waiting > 0 {
			m.Set("after", d.after.Seconds())
		}
		for _, reason := range lossReasons {
			if n := d.lost[reason]; n > 0 {
				lost.Set(reason, int64(n))
			}
		}
		m.Set("lost", lost)
		if d.reason != "" {
			m.Set("reason", d.reason)
		}
		return m, nil
	},
}
