package file

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/flow"
)

// maxHeld is how many bytes of lines that receivers refused are kept. While
// there are more, nothing is read.
const maxHeld = 32 << 20

// shipment is a batch that was not accepted by all receivers.
type shipment struct {
	b       *batch.Logs
	to      *flow.Output // that it was sent to
	pending []*flow.Partial
	bytes   int64
	since   time.Time // it is refused
	why     string    // the last time

	replaced bool // the receivers were others at first
	whole    bool // a node farther down left the graph, which accepts nothing any more
}

// pendingAcks are those of batches under way.
type pendingAcks struct {
	mu      sync.Mutex
	open    map[*batch.Ack]struct{}
	flushed bool
	changed chan struct{} // holds a signal when one was done
}

func newPendingAcks() *pendingAcks {
	return &pendingAcks{open: map[*batch.Ack]struct{}{}, changed: make(chan struct{}, 1)}
}

// add returns an Ack that calls done.
func (rs *pendingAcks) add(done func()) *batch.Ack {
	var r *batch.Ack
	r = batch.NewAck(func() {
		done()
		rs.mu.Lock()
		delete(rs.open, r)
		rs.mu.Unlock()
		select {
		case rs.changed <- struct{}{}:
		default:
		}
	})
	rs.mu.Lock()
	rs.open[r] = struct{}{}
	rs.mu.Unlock()
	return r
}

// wait asks all who keep lines to send them and returns when nobody does, or
// ctx ends.
func (rs *pendingAcks) wait(ctx context.Context) {
	for {
		rs.mu.Lock()
		var all []*batch.Ack
		for r := range rs.open {
			all = append(all, r)
		}
		flush := !rs.flushed
		rs.flushed = true
		rs.mu.Unlock()
		if len(all) == 0 {
			return
		}
		for _, r := range all {
			if flush {
				r.Flush()
			}
		}
		select {
		case <-rs.changed:
		case <-ctx.Done():
			return
		}
	}
}

// send makes a batch of a range and sends it. It reports whether all receivers
// accepted it.
func (f *follower) send(ctx context.Context, lf *logFile, c chunk) bool {
	if !c.again {
		c.base = max(f.c.opts.Clock.Now().UnixNano(), f.last+1)
		c.span.lines = int64(len(c.lines))
		if head, grown := lf.grownHead(c.to); grown {
			f.c.positions.head(lf.pos, head)
		}
		f.c.positions.sent(lf.pos, c.span, c.tail, lf.written.UnixNano())
	}
	f.last = max(f.last, c.base+int64(len(c.lines))-1)
	lf.sent(c)
	p, from := lf.pos, c.from
	b := f.batch(c)
	b.Ack = f.c.acks.add(func() { f.c.positions.done(p, from) })
	f.c.metrics.counted(c)
	to := f.c.out.Load()
	f.c.flying.Add(c.to - c.from)
	err := f.sendWithTimeout(ctx, func(ctx context.Context) error { return to.SendLogs(ctx, b) })
	f.c.flying.Add(c.from - c.to)
	if err == nil {
		b.Ack.Accepted()
		f.hold, f.patient = minHold, minPatience
		return true
	}
	s := &shipment{b: b, to: to, bytes: int64(b.Bytes()), since: f.c.opts.Clock.Now()}
	s.keepRefused(err, false)
	f.refused = s
	f.c.held.Add(s.bytes)
	return false
}

// sendWithTimeout calls send with a context that ends when a receiver takes too long.
func (f *follower) sendWithTimeout(ctx context.Context, send func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, f.patient)
	defer cancel()
	f.endFileCalls()
	err := send(ctx)
	f.beginFileCalls()
	if err != nil && ctx.Err() != nil {
		f.patient = min(2*f.patient, maxPatience)
	}
	return err
}

// batch returns the lines of a range as a batch.
func (f *follower) batch(c chunk) *batch.Logs {
	n := len(c.lines)
	b := &batch.Logs{Source: f.source, Line: c.lines, Stream: make([]*batch.Stream, n), T: make([]int64, n)}
	for i := range n {
		b.Stream[i], b.T[i] = f.stream, c.base+int64(i)
	}
	return b
}

// keepRefused keeps what is still to be sent; with replaced but for what is for nodes
// that left the graph, because others have taken their places.
func (s *shipment) keepRefused(err error, replaced bool) {
	if p, ok := errors.AsType[*flow.Partial](err); ok {
		s.why = p.Error()
		s.whole = s.whole || p.StoppedBelow(s.to)
		if replaced {
			p = p.WithoutStopped()
		}
		if p != nil {
			s.pending = append(s.pending, p)
		}
	}
}

// resendRefused sends what was refused to those who refused it and to receivers that
// came since; all of it to all, some of whom have it, when a node farther down
// has left the graph. It reports whether all is accepted.
func (f *follower) resendRefused(ctx context.Context) bool {
	s := f.refused
	pending := s.pending
	s.pending = nil
	if to := f.c.out.Load(); to != s.to {
		if left := to.Without(s.to); left != nil {
			s.keepRefused(f.sendWithTimeout(ctx, func(ctx context.Context) error { return left.SendLogs(ctx, s.b) }), true)
		}
		s.to, s.replaced = to, true
	}
	for _, p := range pending {
		s.keepRefused(f.sendWithTimeout(ctx, p.Retry), s.replaced)
	}
	if s.whole {
		s.whole, s.pending = false, nil
		s.keepRefused(f.sendWithTimeout(ctx, func(ctx context.Context) error { return s.to.SendLogs(ctx, s.b) }), s.replaced)
	}
	if len(s.pending) > 0 {
		return false
	}
	f.forgetRefused()
	s.b.Ack.Accepted()
	return true
}

// forgetRefused forgets what was refused.
func (f *follower) forgetRefused() {
	if f.refused != nil {
		f.c.held.Add(-f.refused.bytes)
		f.refused = nil
	}
}
