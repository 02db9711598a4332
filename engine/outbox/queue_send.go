package outbox

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/weir-run/weir/engine/backoff"
	"github.com/weir-run/weir/engine/flow"
)

// Deliver delivers an offer. shard is below 2 × MaxInFlight; calls of one shard do
// not overlap. ctx ends when there is no time left: the offer stays in the
// journal then, unless the outcome says that it is done.
type Deliver func(ctx context.Context, shard int, o *Offer) Outcome

// Outcome is what became of an offer: what is neither lost nor left was delivered.
type Outcome struct {
	// Lost is how many records are lost for good, by reason: see QueueOptions.Reasons.
	Lost map[string]int
	// Left are the rows that are offered again, ascending, after back-off or After.
	Left  []int
	After time.Duration // 0: after back-off
	// Again is how many records were sent again in parts of the offer.
	Again int
}

// Retry is the outcome of an offer of which nothing was delivered or lost.
func Retry(o *Offer, after time.Duration) Outcome {
	left := make([]int, o.Len())
	for i := range left {
		left[i] = i
	}
	return Outcome{Left: left, After: after}
}

// Lose is the outcome of an offer that is lost.
func Lose(o *Offer, reason string) Outcome {
	return Outcome{Lost: map[string]int{reason: o.Len()}}
}

// Stop says how a session ends.
type Stop struct {
	// Replaced: another session goes on, so nothing more is offered.
	Replaced bool
	// Grace is how long what is under way may take.
	Grace time.Duration
}

// Send offers what is in the journal until ctx ends, and then, if stop says that
// nobody goes on with it, as long as there is any and it is delivered. While
// another session sends, it waits. The error is a *flow.PanicError of deliver's,
// or of the queue's.
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
			return Stop{Replaced: true} // by the component that is built in its place
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

// send offers what is in the shard.
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

// deliver returns when the offer is done or gone; false: ctx ended, and it is
// still there.
func (l *shard) deliver(ctx, posting context.Context, deliver Deliver) bool {
	q, o := l.q, l.offer
	for l.pauses.Reset(); ; {
		back := q.Comeback() // before the attempt, during which it may come back
		if o.Attempt++; o.Attempt > 1 {
			q.Retried.Add(int64(o.Len()))
		}
		out := deliver(posting, l.number, o)
		q.Retried.Add(int64(out.Again))
		if len(out.Left) == o.Len() && posting.Err() != nil {
			o.Attempt-- // weir stops; nobody is to blame
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
			l.pauses.Reset() // it delivers
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

// The back-off of an offer, and the bounds of what a sink may ask for: beyond
// them a mistake would look like a stop, or be a flood.
const (
	minBackoff = time.Second
	maxBackoff = 30 * time.Second
	minAfter   = 100 * time.Millisecond
	maxAfter   = 10 * time.Minute
)
