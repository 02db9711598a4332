package outbox

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/weir-run/weir/engine/backoff"
	"github.com/weir-run/weir/engine/flow"
)

// Deliver delivers an offer. shard is below 2 × MaxInFlight. Calls for one
// shard do not overlap. When ctx ends, no time is left, and the offer stays in
// the journal unless the outcome reports it as done.
type Deliver func(ctx context.Context, shard int, o *Offer) Outcome

// Outcome is the result of delivering an offer. Records that are neither in
// Lost nor in Left were delivered.
type Outcome struct {
	// Lost is the number of permanently lost records by reason; see
	// QueueOptions.Reasons.
	Lost map[string]int
	// Left contains the rows that must be offered again after After or the
	// back-off, ascending.
	Left  []int
	After time.Duration // 0 means the back-off
	// Again is the number of records that were sent again in parts of the offer.
	Again int
}

// Retry returns the outcome of an offer of which nothing was delivered or lost.
func Retry(o *Offer, after time.Duration) Outcome {
	left := make([]int, o.Len())
	for i := range left {
		left[i] = i
	}
	return Outcome{Left: left, After: after}
}

// Lose returns the outcome of an offer whose records are all lost.
func Lose(o *Offer, reason string) Outcome {
	return Outcome{Lost: map[string]int{reason: o.Len()}}
}

// Stop specifies how a session ends.
type Stop struct {
	// Replaced means that another session continues, so no further offers are
	// made.
	Replaced bool
	// Grace is the maximum time for offers in flight.
	Grace time.Duration
}

// Send offers the records in the journal until ctx ends. Then, if no other
// session continues (see stop), it goes on as long as there are records and
// they are delivered. It waits while another session sends. The error is a
// *flow.PanicError of deliver or of the queue.
func (s *Session) Send(ctx context.Context, deliver Deliver, stop func() Stop) error {
	q := s.q
	select {
	case q.sending <- struct{}{}:
		defer func() { <-q.sending }()
	case <-ctx.Done():
		return nil
	}
	_, opened := q.current()
	select {
	case <-opened:
	case <-ctx.Done():
		return nil
	}
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var failed atomic.Pointer[flow.PanicError]
	ends := func() Stop {
		if failed.Load() != nil {
			return Stop{Replaced: true} // by the component that replaces this one
		}
		return stop()
	}
	send := startSenders(ctx, journalShards, func(posting context.Context, shard int) {
		q.shards[shard].send(ctx, posting, s.s, deliver, ends)
	}, func(p *flow.PanicError) {
		failed.Store(p)
		fail(p)
	})
	<-ctx.Done()
	send.drain(q.Clock, ends().Grace)
	if p := failed.Load(); p != nil {
		return p
	}
	return nil
}

// send offers the records in the shard.
func (l *shard) send(ctx, posting context.Context, s *QueueSettings, deliver Deliver, stop func() Stop) {
	if l.reader == nil {
		l.reader = NewReader(l.q.Journal, l.q.Clock, l.number)
	}
	for ctx.Err() == nil || !stop().Replaced {
		if !l.next(ctx, s) || !l.deliver(ctx, posting, deliver) {
			return
		}
	}
}

// deliver returns true when the offer is done or was removed. It returns false
// if ctx ended and the offer still exists.
func (l *shard) deliver(ctx, posting context.Context, deliver Deliver) bool {
	q, o := l.q, l.offer
	for l.pauses.Reset(); ; {
		back := q.Comeback() // before the attempt, because deliveries may succeed again during it
		if o.Attempt++; o.Attempt > 1 {
			q.Retried.Add(int64(o.Len()))
		}
		out := deliver(posting, l.number, o)
		q.Retried.Add(int64(out.Again))
		if len(out.Left) == o.Len() && posting.Err() != nil {
			o.Attempt-- // weir stops; the attempt does not count
			return false
		}
		sent := o.Len() - len(out.Left)
		for reason, n := range out.Lost {
			if slices.Contains(q.reasons, reason) {
				q.CountLost(o.Signal(), reason, n)
			}
			sent -= n
		}
		q.CountSent(o.Signal(), sent)
		l.done(o.Len() - len(out.Left))
		if len(out.Left) > 0 {
			q.comeback.fail()
		}
		if len(out.Left) < o.Len() {
			q.comeback.succeed()
			l.pauses.Reset() // the shard delivers again
		}
		if len(out.Left) == 0 {
			l.finish()
			return true
		}
		o.setRows(out.Left)
		if ctx.Err() != nil {
			return false
		}
		r := backoff.Reasons{Min: minBackoff, Max: maxBackoff, Back: back}
		if out.After > 0 {
			r.RetryAfter = min(max(out.After, minAfter), maxAfter)
		}
		l.pauses.Pause(ctx, q.Clock, r)
		if ctx.Err() != nil {
			return false
		}
		if !l.keeps() {
			return true
		}
	}
}

// Limits of the back-off and of the pauses that a sink may ask for. A longer
// pause would look as if sending had stopped, a shorter one would flood the
// receiver.
const (
	minBackoff = time.Second
	maxBackoff = 30 * time.Second
	minAfter   = 100 * time.Millisecond
	maxAfter   = 10 * time.Minute
)
