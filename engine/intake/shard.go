package intake

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/flow"
)

// Shards is the number of Sources over which the records are spread. It equals
// the number of shards in sinks.
const Shards = 8

// maxJoined is the maximum number of records of several requests in one batch.
const maxJoined = 10_000

// Signal contains the operations on batches of one signal that a Desk needs.
type Signal[B any] struct {
	// Len returns the number of records.
	Len func(B) int
	// Join joins one or more batches into one batch of a Source.
	Join func(source uint64, bs []B) B
	// Send sends a batch to the receivers, like Output.SendMetrics.
	Send func(*flow.Output, context.Context, B) error
	// Track returns the function to call after a batch was accepted: done itself,
	// or a function that calls done once no component keeps records of the batch
	// in memory. If Track is nil, done is used.
	Track func(b B, done func()) (accepted func())
}

// shard sends the records of its series or streams, one batch after another.
// Records that arrive while a batch is being sent are joined into the next
// batch. Therefore, requests do not wait for each other's journal writes, and
// the order of a series is the order of arrival.
type shard[A, B any] struct {
	signal Signal[B]
	clock  clock.Clock
	output func() *flow.Output
	source uint64
	kick   chan struct{} // capacity 1

	mu      sync.Mutex
	waiting []part[A, B]
	flying  []part[A, B]
	out     *flow.Output // of the batch that is being sent
	since   time.Time    // when it was sent
	cancel  context.CancelCauseFunc
}

// part contains the records of one request for one shard.
type part[A, B any] struct {
	r *Request[A]
	b B
}

// newShard returns a shard that sends from a Source to the result of output.
func newShard[A, B any](signal Signal[B], c clock.Clock, output func() *flow.Output, source uint64) *shard[A, B] {
	return &shard[A, B]{signal: signal, clock: c, output: output, source: source, kick: make(chan struct{}, 1)}
}

// add sends b, a part of r, when its turn comes.
func (l *shard[A, B]) add(r *Request[A], b B) {
	l.mu.Lock()
	l.waiting = append(l.waiting, part[A, B]{r, b})
	l.mu.Unlock()
	select {
	case l.kick <- struct{}{}:
	default:
	}
}

// run sends until ctx ends. Records that have not been accepted by then are
// refused.
func (l *shard[A, B]) run(ctx context.Context) {
	for ctx.Err() == nil {
		fctx, b, ok := l.nextBatch(ctx)
		if !ok {
			select {
			case <-l.kick:
			case <-ctx.Done():
			}
			continue
		}
		parts := l.flying
		accepted := func() { finishParts(parts, nil) }
		if l.signal.Track != nil {
			accepted = l.signal.Track(b, accepted)
		}
		err := l.send(fctx, b)
		l.landed()
		if err != nil {
			finishParts(parts, err)
		} else {
			accepted()
		}
	}
	l.mu.Lock()
	rest := l.waiting
	l.waiting = nil
	l.mu.Unlock()
	finishParts(rest, errStopping)
}

func finishParts[A, B any](parts []part[A, B], err error) {
	for _, p := range parts {
		p.r.finishPart(err)
	}
}

// nextBatch returns the next batch of the waiting records; ok is false if there
// are none.
func (l *shard[A, B]) nextBatch(ctx context.Context) (_ context.Context, b B, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) == 0 {
		return nil, b, false
	}
	n, records := 0, 0
	var bs []B
	for n < len(l.waiting) && (n == 0 || records+l.signal.Len(l.waiting[n].b) <= maxJoined) {
		bs = append(bs, l.waiting[n].b)
		records += l.signal.Len(l.waiting[n].b)
		n++
	}
	l.flying = append([]part[A, B](nil), l.waiting[:n]...)
	clear(l.waiting[:n])
	l.waiting = l.waiting[n:]
	l.out, l.since = l.output(), l.clock.Now()
	ctx, l.cancel = context.WithCancelCause(ctx)
	return ctx, l.signal.Join(l.source, bs), true
}

func (l *shard[A, B]) landed() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.flying, l.out = nil, nil
	l.cancel(nil)
}

// The pauses between retries double from minPause to maxPause.
const (
	minPause = 20 * time.Millisecond
	maxPause = time.Second
)

// send sends b until every receiver has accepted it. A retry goes only to the
// receivers that refused it. It gives up when ctx ends, and when a receiver has
// left the graph.
func (l *shard[A, B]) send(ctx context.Context, b B) error {
	err := l.signal.Send(l.out, ctx, b)
	for pause := minPause; err != nil; pause = min(2*pause, maxPause) {
		partial, ok := errors.AsType[*flow.Partial](err)
		if !ok || ctx.Err() != nil || errors.Is(err, flow.ErrStopped) {
			return err
		}
		if clock.Sleep(ctx, l.clock, pause) != nil {
			return err
		}
		err = partial.Retry(ctx)
	}
	return nil
}

var (
	errStopping   = errors.New("weir is stopping, or the component is")
	errAbandoned  = errors.New("no client waits for it any more")
	errRedirected = errors.New("forward_to has changed")
)

// giveUpStale gives up records that no client waits for and records that are
// being sent to receivers that are no longer used. Call it every second.
func (l *shard[A, B]) giveUpStale(now time.Time) {
	l.mu.Lock()
	kept := l.waiting[:0]
	var gone []part[A, B]
	for _, p := range l.waiting {
		if p.r.abandoned(now) {
			gone = append(gone, p)
		} else {
			kept = append(kept, p)
		}
	}
	clear(l.waiting[len(kept):])
	l.waiting = kept
	if len(l.flying) > 0 {
		wanted := false
		for _, p := range l.flying {
			wanted = wanted || !p.r.abandoned(now)
		}
		switch {
		case !wanted:
			l.cancel(errAbandoned)
		case l.out != l.output() && now.Sub(l.since) > flow.EndAfter:
			l.cancel(errRedirected)
		}
	}
	l.mu.Unlock()
	finishParts(gone, errAbandoned)
}
