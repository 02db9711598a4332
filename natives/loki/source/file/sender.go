package file

import (
	"context"
	"errors"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/flow"
)

const (
	// maxHeld is the size in bytes of refused lines above which a component reads
	// nothing more.
	maxHeld = 32 << 20
	// The pauses between attempts to send a refused batch double from
	// minRetryPause to maxRetryPause.
	minRetryPause = 100 * time.Millisecond
	maxRetryPause = 5 * time.Second
	// A receiver that does not respond is cancelled after minPatience, which
	// doubles up to maxPatience, because a follower that waits for it does not
	// detect rotations.
	minPatience = 5 * time.Second
	maxPatience = time.Minute
)

// sender sends the batches of one follower in order. It has two states: it
// accepts batches, or it keeps one that a receiver refused (refused is not nil)
// until all receivers accept it. In the second state its owner must not call
// send.
type sender struct {
	c       *Component
	calls   *fileCalls // of the turn; suspended while a receiver processes the batch
	stream  *batch.Stream
	source  uint64
	last    int64 // the timestamp of the last line
	refused *refusedBatch
	retry   retry
}

// retry determines when a refused batch is sent again, and how long an attempt
// may take.
type retry struct {
	at       time.Time
	pause    time.Duration // between at and the attempt after it
	patience time.Duration // the time limit for a receiver
}

func newRetry() retry { return retry{pause: minRetryPause, patience: minPatience} }

// reset resets both times after a success.
func (r *retry) reset() { r.pause, r.patience = minRetryPause, minPatience }

// postpone sets the time of the next attempt.
func (r *retry) postpone(now time.Time) {
	r.at = now.Add(r.pause)
	r.pause = min(2*r.pause, maxRetryPause)
}

func newSender(c *Component, calls *fileCalls, t *target) sender {
	return sender{c: c, calls: calls, stream: newStream(t), source: batch.NewSource(), retry: newRetry()}
}

func newStream(t *target) *batch.Stream { return batch.NewSeries(t.labels) }

// setTarget sets the labels of the following lines to those of t.
func (s *sender) setTarget(t *target) {
	s.stream.Release()
	s.stream = newStream(t)
}

// close drops a refused batch. Its lines are read again after a restart.
func (s *sender) close() {
	s.dropRefused()
	s.stream.Release()
}

// isRefused reports whether a refused batch waits for its receivers.
func (s *sender) isRefused() bool { return s.refused != nil }

// raiseLast makes the following lines later than t.
func (s *sender) raiseLast(t int64) { s.last = max(s.last, t) }

// send records a range of lf in the positions log and sends it as a batch. It
// reports whether all receivers accepted it; if not, the batch is kept.
func (s *sender) send(ctx context.Context, lf *logFile, c chunk, now time.Time) bool {
	if !c.again {
		c.base = max(s.c.opts.Clock.Now().UnixNano(), s.last+1)
		c.span.lines = int64(len(c.lines))
		if head, grown := lf.extendHead(c.to); grown {
			s.c.positions.recordHead(lf.pos, head)
		}
		s.c.positions.recordSent(lf.pos, c.span, c.tail, lf.seen.written.UnixNano())
	}
	s.raiseLast(c.base + int64(len(c.lines)) - 1)
	lf.cursor.advance(c)
	p, from := lf.pos, c.from
	b := s.newBatch(c)
	b.Ack = s.c.acks.add(func() { s.c.positions.recordDone(p, from) })
	s.c.metrics.countChunk(c)
	to := s.c.out.Load()
	s.c.flying.Add(c.to - c.from)
	err := s.sendWithTimeout(ctx, func(ctx context.Context) error { return to.SendLogs(ctx, b) })
	s.c.flying.Add(c.from - c.to)
	if err == nil {
		b.Ack.Accepted()
		s.retry.reset()
		return true
	}
	s.refused = &refusedBatch{b: b, to: to, bytes: int64(b.Bytes()), since: s.c.opts.Clock.Now()}
	s.refused.addRefusal(err, false)
	s.c.held.Add(s.refused.bytes)
	s.postpone(now)
	return false
}

// resend sends the refused batch again if it is due. It reports whether it made
// an attempt, and whether all receivers have accepted the batch.
func (s *sender) resend(ctx context.Context, now time.Time) (tried, accepted bool) {
	if now.Before(s.retry.at) {
		return false, false
	}
	if s.sendRefused(ctx) {
		s.retry.reset()
		return true, true
	}
	s.postpone(now)
	return true, false
}

func (s *sender) postpone(now time.Time) {
	s.c.metrics.refusals.Inc()
	s.retry.postpone(now)
}

// sendRefused sends the refused batch to the receivers that refused it and to
// those that were added since. If a node further downstream has left the graph,
// it sends the whole batch to all receivers, and some of them receive it twice.
// It reports whether every receiver has accepted it.
func (s *sender) sendRefused(ctx context.Context) bool {
	r := s.refused
	pending := r.pending
	r.pending = nil
	if to := s.c.out.Load(); to != r.to {
		if left := to.Without(r.to); left != nil {
			r.addRefusal(s.sendWithTimeout(ctx, func(ctx context.Context) error { return left.SendLogs(ctx, r.b) }), true)
		}
		r.to, r.replaced = to, true
	}
	for _, p := range pending {
		r.addRefusal(s.sendWithTimeout(ctx, p.Retry), r.replaced)
	}
	if r.whole {
		r.whole, r.pending = false, nil
		r.addRefusal(s.sendWithTimeout(ctx, func(ctx context.Context) error { return r.to.SendLogs(ctx, r.b) }), r.replaced)
	}
	if len(r.pending) > 0 {
		return false
	}
	s.dropRefused()
	r.b.Ack.Accepted()
	return true
}

func (s *sender) dropRefused() {
	if s.refused != nil {
		s.c.held.Add(-s.refused.bytes)
		s.refused = nil
	}
}

// sendWithTimeout calls send with a context that ends if a receiver takes too
// long.
func (s *sender) sendWithTimeout(ctx context.Context, send func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, s.retry.patience)
	defer cancel()
	s.calls.end()
	err := send(ctx)
	s.calls.begin()
	if err != nil && ctx.Err() != nil {
		s.retry.patience = min(2*s.retry.patience, maxPatience)
	}
	return err
}

// newBatch returns the lines of a range as a batch.
func (s *sender) newBatch(c chunk) *batch.Logs {
	n := len(c.lines)
	b := &batch.Logs{Source: s.source, Line: c.lines, Stream: make([]*batch.Stream, n), T: make([]int64, n)}
	for i := range n {
		b.Stream[i], b.T[i] = s.stream, c.base+int64(i)
	}
	return b
}

// refusedBatch is a batch that at least one receiver refused.
type refusedBatch struct {
	b       *batch.Logs
	to      *flow.Output // the receivers of the last attempt
	pending []*flow.Partial
	bytes   int64
	since   time.Time
	why     string // the last refusal

	replaced bool // the receivers have changed since the first attempt
	whole    bool // the whole batch must be sent again: a node further downstream left the graph and never accepts anything
}

// addRefusal keeps the part of the batch that was refused according to err. If
// replaced is true, it excludes the part for nodes that left the graph, because
// other nodes have replaced them.
func (r *refusedBatch) addRefusal(err error, replaced bool) {
	if p, ok := errors.AsType[*flow.Partial](err); ok {
		r.why = p.Error()
		r.whole = r.whole || p.StoppedBelow(r.to)
		if replaced {
			p = p.WithoutStopped()
		}
		if p != nil {
			r.pending = append(r.pending, p)
		}
	}
}
