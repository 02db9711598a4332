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

// Output is a node's fan-out: the value of an argument forward_to. It counts
// accepted data in the node's Stats. It is immutable and therefore safe for
// concurrent use.
type Output struct {
	to    []*Receiver
	stats *Stats
}

// NewOutput returns the fan-out to the receivers in to. Each receiver gets a
// batch once, even if it is listed twice. stats may be nil.
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

// Without returns the fan-out to the receivers of o that p does not have, or
// nil if there are none. p may be nil.
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

// leaving returns the fan-out to the receivers of o whose nodes leave the
// graph, or nil if there are none. o may be nil.
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

// SendMetrics sends b to every receiver that takes metrics and returns when all
// have answered. It calls the receivers concurrently, so that a branch that
// blocks does not delay the other branches. An empty batch is not sent. If no
// receiver takes metrics, the samples are counted as dropped. The error is nil
// or a *Partial.
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
	if m := o.stats.meter.Load(); m != nil {
		m.Out.add(b.Bytes())
	}
	if taps := o.stats.taps.Load(); taps != nil {
		o.stats.tapOut(ctx, *taps, Batches{Metrics: []*batch.Metrics{b}})
	}
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
	if m := o.stats.meter.Load(); m != nil {
		m.Out.add(b.Bytes())
	}
	if taps := o.stats.taps.Load(); taps != nil {
		o.stats.tapOut(ctx, *taps, Batches{Logs: []*batch.Logs{b}})
	}
	return send(ctx, ps)
}

// noReceiver is the drop reason of data whose signal none of the receivers
// takes, for a node that sends both signals.
const noReceiver = "no_receiver"

// address returns p for each receiver that takes its signal. A receiver that is
// not known yet gets p too and may refuse it.
func (o *Output) address(p payload) []pending {
	ps := make([]pending, 0, len(o.to))
	for _, r := range o.to {
		if accepts := r.Accepts(); accepts == 0 || accepts&p.signal() != 0 {
			ps = append(ps, pending{to: r, b: p.withReceiver(r.number), stats: o.stats})
		}
	}
	return ps
}

// Partial is a refusal. It holds the data that was not accepted and its
// receivers. All other branches have accepted the batch. errors.Is and
// errors.As find the errors of the branches.
type Partial struct{ pending []pending }

// pending is a batch that one receiver has not accepted yet.
type pending struct {
	to    *Receiver
	b     payload
	stats *Stats // of the node whose Output sent it
	err   error
}

// Retry sends the refused data again to the receivers that refused it. The
// error is nil or a *Partial of the data that is still refused.
func (p *Partial) Retry(ctx context.Context) error {
	return send(ctx, append([]pending(nil), p.pending...))
}

// Refused returns the IDs of the nodes that refused data.
func (p *Partial) Refused() []string {
	var ids []string
	for _, q := range p.pending {
		ids = append(ids, q.to.node)
	}
	return ids
}

// WithoutStopped returns the part of p that was refused by nodes still in the
// graph, or nil if there is none. Nodes that left the graph will never accept
// data.
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

// StoppedBelow reports whether a node that left the graph, and that is a
// receiver of another node than the owner of o, refused part of p. That other
// node may have new receivers now. They get the data if it is sent through o
// again.
func (p *Partial) StoppedBelow(o *Output) bool {
	return slices.ContainsFunc(p.pending, func(q pending) bool { return q.stats != o.stats && errors.Is(q.err, ErrStopped) })
}

// Len returns the number of refused samples and lines. Each is counted once per
// receiver that refused it.
func (p *Partial) Len() int { return p.Samples() + p.Lines() }

// Samples returns the number of refused samples, counted as in Len.
func (p *Partial) Samples() int { return p.count(batch.SignalMetrics) }

// Lines returns the number of refused log lines, counted as in Len.
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

// Whole converts err, the result of sending a batch through o. If no receiver
// took the batch, it returns a refusal by the node itself: the whole batch may
// be sent again and does not count as received. It is for a node whose
// receivers are parts of itself.
func (o *Output) Whole(err error) error {
	p, ok := err.(*Partial)
	if !ok || len(p.pending) != len(o.to) {
		return err
	}
	for _, q := range p.pending {
		if q.stats != o.stats {
			return err // a receiver took it and a node further down refused it
		}
	}
	return refusal{p}
}

// refusal is a Partial of all branches that must not be retried by branch.
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

// sideBySide calls send for each of ps concurrently, the last one on the
// caller's goroutine, and returns when all calls have returned. ps must not be
// empty. send returns the data that is still pending. The error is nil or a
// *Partial of all pending data.
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

// send returns the data that is still pending.
func (q pending) send(ctx context.Context) []pending {
	m := q.stats.meter.Load()
	err := q.b.deliver(ctx, q.to)
	m.resume()
	if err == nil {
		q.b.countOut(q.stats)
		return nil
	}
	if below, ok := errors.AsType[*Partial](err); ok {
		// The receiver changed the batch, and a branch further down refused the
		// changed batch. Sending b again would repeat it for the branches that
		// accepted it.
		q.b.countOut(q.stats)
		return below.pending
	}
	q.err = err
	return []pending{q}
}
