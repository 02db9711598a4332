package flow

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/weir-run/weir/engine/batch"
)

// Output is a node's fan-out: what an argument forward_to becomes. It counts
// what was accepted in the node's Stats. It is immutable, hence safe for
// concurrent use.
type Output struct {
	to    []*Receiver
	stats *Stats
}

// NewOutput returns the fan-out to receivers; duplicates are sent to once.
// stats may be nil.
func NewOutput(stats *Stats, to []*Receiver) *Output {
	if stats == nil {
		stats = new(Stats)
	}
	o := &Output{stats: stats}
	seen := map[*Receiver]bool{}
	for _, r := range to {
		if r != nil && !seen[r] {
			seen[r] = true
			o.to = append(o.to, r)
		}
	}
	return o
}

// Without returns the fan-out to those receivers of o that p does not have, nil
// when there are none. p may be nil.
func (o *Output) Without(p *Output) *Output {
	if p == nil {
		return o
	}
	left := &Output{stats: o.stats}
	for _, r := range o.to {
		if !slices.Contains(p.to, r) {
			left.to = append(left.to, r)
		}
	}
	if left.to == nil {
		return nil
	}
	return left
}

// leaving returns the fan-out to those receivers of o whose nodes leave the
// graph, nil when there are none. o may be nil.
func (o *Output) leaving() *Output {
	if o == nil {
		return nil
	}
	stay := &Output{}
	for _, r := range o.to {
		if !r.leaving.Load() {
			stay.to = append(stay.to, r)
		}
	}
	return o.Without(stay)
}

// SendMetrics hands b to every receiver that takes metrics, side by side, so that
// a branch that blocks delays no other, and returns when all have answered. An
// empty batch is not sent. What nobody takes is counted as dropped. The error is
// nil or a *Partial.
func (o *Output) SendMetrics(ctx context.Context, b *batch.Metrics) error {
	if b.Len() == 0 || len(o.to) == 0 {
		return nil
	}
	ps := o.address(samplesPayload{b})
	if len(ps) == 0 {
		o.stats.Drop(noReceiver, b.Len())
		return nil
	}
	o.stats.lastOut.Store(b)
	return send(ctx, ps)
}

// SendLogs is SendMetrics for log lines.
func (o *Output) SendLogs(ctx context.Context, b *batch.Logs) error {
	if b.Len() == 0 || len(o.to) == 0 {
		return nil
	}
	ps := o.address(linesPayload{b})
	if len(ps) == 0 {
		o.stats.DropLines(noReceiver, b.Len())
		return nil
	}
	o.stats.lastLogsOut.Store(b)
	return send(ctx, ps)
}

// noReceiver is why a node drops what none of its receivers takes: it sends
// both signals, and they take the other one.
const noReceiver = "no_receiver"

// address returns p for each receiver that takes its signal. One of which that
// is not known yet will say so.
func (o *Output) address(p payload) []pending {
	ps := make([]pending, 0, len(o.to))
	for _, r := range o.to {
		if accepts := r.Accepts(); accepts == 0 || accepts&p.signal() != 0 {
			ps = append(ps, pending{to: r, b: p.withReceiver(r.number), stats: o.stats})
		}
	}
	return ps
}

// Partial is a refusal: it holds what was not accepted, and by whom. Branches
// that are not in it have accepted the batch. errors.Is and errors.As see the
// branches' errors.
type Partial struct{ pending []pending }

// pending is one batch still to be accepted by one receiver.
type pending struct {
	to    *Receiver
	b     payload
	stats *Stats // of the node whose Output it left through
	err   error
}

// Retry sends again what was refused, to those who refused it. The error is
// nil or a *Partial of what is still refused.
func (p *Partial) Retry(ctx context.Context) error {
	return send(ctx, append([]pending(nil), p.pending...))
}

// Refused returns the IDs of the nodes that refused.
func (p *Partial) Refused() []string {
	var ids []string
	for _, q := range p.pending {
		ids = append(ids, q.to.node)
	}
	return ids
}

// WithoutStopped returns what is refused by nodes that are still in the graph,
// nil when that is nothing: those that left it will never take anything.
func (p *Partial) WithoutStopped() *Partial {
	var left Partial
	for _, q := range p.pending {
		if !errors.Is(q.err, ErrStopped) {
			left.pending = append(left.pending, q)
		}
	}
	if left.pending == nil {
		return nil
	}
	return &left
}

// StoppedBelow reports whether some of p is refused by a node that left the graph
// and that another node than o's sends to: that may send to others by now, which
// get what is sent through o again.
func (p *Partial) StoppedBelow(o *Output) bool {
	return slices.ContainsFunc(p.pending, func(q pending) bool { return q.stats != o.stats && errors.Is(q.err, ErrStopped) })
}

// Len returns the number of samples and lines refused, each counted once for
// each receiver that refused it.
func (p *Partial) Len() int { return p.Samples() + p.Lines() }

// Samples returns how many of Len are samples.
func (p *Partial) Samples() int { return p.count(batch.SignalMetrics) }

// Lines returns how many of Len are log lines.
func (p *Partial) Lines() int { return p.count(batch.SignalLogs) }

func (p *Partial) count(of batch.Signals) (n int) {
	for _, q := range p.pending {
		if q.b.signal() == of {
			n += q.b.Len()
		}
	}
	return n
}

func (p *Partial) Error() string {
	var msgs []string
	for _, q := range p.pending {
		msgs = append(msgs, fmt.Sprintf("%s refused %d %s: %v", q.to.node, q.b.Len(), q.b.unit(), q.err))
	}
	return strings.Join(msgs, "; ")
}

// Unwrap returns the branches' errors.
func (p *Partial) Unwrap() []error {
	var errs []error
	for _, q := range p.pending {
		errs = append(errs, q.err)
	}
	return errs
}

// Whole returns err, of a batch sent through o, as a refusal of the node itself
// if nobody took the batch: it may come again as a whole, and has not come in
// yet. It is for a node whose receivers are parts of itself.
func (o *Output) Whole(err error) error {
	p, ok := err.(*Partial)
	if !ok || len(p.pending) != len(o.to) {
		return err
	}
	for _, q := range p.pending {
		if q.stats != o.stats {
			return err // somebody took it and was refused further down
		}
	}
	return refusal{p}
}

// refusal is a Partial of all branches that is not to be retried by branch.
type refusal struct{ p *Partial }

func (r refusal) Error() string {
	if len(r.p.pending) == 1 {
		return r.p.pending[0].err.Error()
	}
	return r.p.Error()
}

// Unwrap returns the branches' errors.
func (r refusal) Unwrap() []error { return r.p.Unwrap() }

// send delivers all of ps.
func send(ctx context.Context, ps []pending) error {
	return sideBySide(ctx, ps, pending.send)
}

// sideBySide sends each of ps, of which there is one at least, the last one on
// the caller's goroutine, and returns when all have answered. send returns what
// is still pending; the error is nil or a *Partial of all that.
func sideBySide[T any](ctx context.Context, ps []T, send func(T, context.Context) []pending) error {
	refused := make([][]pending, len(ps))
	var wg sync.WaitGroup
	for i := range len(ps) - 1 {
		wg.Go(func() { refused[i] = send(ps[i], ctx) })
	}
	refused[len(ps)-1] = send(ps[len(ps)-1], ctx)
	wg.Wait()
	var p Partial
	for _, r := range refused {
		p.pending = append(p.pending, r...)
	}
	if len(p.pending) == 0 {
		return nil
	}
	return &p
}

// send returns what is still pending.
func (q pending) send(ctx context.Context) []pending {
	err := q.b.deliver(ctx, q.to)
	if err == nil {
		q.b.countOut(q.stats)
		return nil
	}
	if below, ok := errors.AsType[*Partial](err); ok {
		// The receiver made its own of the batch and some branch below refused
		// that. Sending b again would repeat it for the branches that took it.
		q.b.countOut(q.stats)
		return below.pending
	}
	q.err = err
	return []pending{q}
}
