package receivehttp

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/flow"
)

const (
	// lanes is over how many Sources the series are spread. It is the number
	// that remote_write has.
	lanes = 8
	// maxJoined is how many samples of several requests go into one batch.
	maxJoined = 10_000
)

// lane sends the samples of its series, one batch after the other: what comes
// in while one is on its way is joined into the next. So requests do not wait
// for each other's journal write one by one, and the order of a series is that
// of its samples' arrival.
type lane struct {
	c      *Component
	source uint64
	kick   chan struct{} // capacity 1

	mu      sync.Mutex
	waiting []part
	flying  []part
	out     *flow.Output // of the batch that is on its way
	since   time.Time    // when that was sent
	cancel  context.CancelCauseFunc
}

// part is the samples of one request for one lane.
type part struct {
	r *request
	b *batch.Metrics
}

func (l *lane) add(p part) {
	l.mu.Lock()
	l.waiting = append(l.waiting, p)
	l.mu.Unlock()
	select {
	case l.kick <- struct{}{}:
	default:
	}
}

// run sends until ctx ends. What has not been accepted by then is refused.
func (l *lane) run(ctx context.Context) {
	for ctx.Err() == nil {
		fctx, b := l.take(ctx)
		if b == nil {
			select {
			case <-l.kick:
			case <-ctx.Done():
			}
			continue
		}
		l.done(l.send(fctx, b))
	}
	l.mu.Lock()
	rest := l.waiting
	l.waiting = nil
	l.mu.Unlock()
	for _, p := range rest {
		p.r.settle(errStopping)
	}
}

// take makes the next batch of what is waiting, nil when nothing is.
func (l *lane) take(ctx context.Context) (context.Context, *batch.Metrics) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) == 0 {
		return nil, nil
	}
	n, samples := 0, 0
	var bs []*batch.Metrics
	for n < len(l.waiting) && (n == 0 || samples+l.waiting[n].b.Len() <= maxJoined) {
		bs = append(bs, l.waiting[n].b)
		samples += l.waiting[n].b.Len()
		n++
	}
	l.flying = append([]part(nil), l.waiting[:n]...)
	clear(l.waiting[:n])
	l.waiting = l.waiting[n:]
	l.out, l.since = l.c.out.Load(), l.c.o.Clock.Now()
	ctx, l.cancel = context.WithCancelCause(ctx)
	b := batch.JoinMetrics(bs)
	b.Source = l.source
	return ctx, b
}

func (l *lane) done(err error) {
	l.mu.Lock()
	flying := l.flying
	l.flying, l.out = nil, nil
	l.cancel(nil)
	l.mu.Unlock()
	for _, p := range flying {
		p.r.settle(err)
	}
}

// The pauses between attempts to send what was refused double from minPause to maxPause.
const (
	minPause = 20 * time.Millisecond
	maxPause = time.Second
)

// send sends b until every receiver has accepted it. Only those that refused
// get it again. It gives up when ctx ends, and when a receiver is gone.
func (l *lane) send(ctx context.Context, b *batch.Metrics) error {
	err := l.out.SendMetrics(ctx, b)
	for pause := minPause; err != nil; pause = min(2*pause, maxPause) {
		partial, ok := errors.AsType[*flow.Partial](err)
		if !ok || ctx.Err() != nil || errors.Is(err, flow.ErrStopped) {
			return err
		}
		if clock.Sleep(ctx, l.c.o.Clock, pause) != nil {
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

// look gives up what nobody waits for and what is on its way to receivers that
// are not sent to any more.
func (l *lane) look(now time.Time) {
	l.mu.Lock()
	kept := l.waiting[:0]
	var gone []part
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
		case l.out != l.c.out.Load() && now.Sub(l.since) > flow.EndAfter:
			l.cancel(errRedirected)
		}
	}
	l.mu.Unlock()
	for _, p := range gone {
		p.r.settle(errAbandoned)
	}
}
