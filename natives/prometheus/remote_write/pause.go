package remotewrite

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/weir-run/weir/engine/clock"
)

// pauses are those of a lane between its attempts to send a block.
type pauses struct {
	backoff time.Duration // of the last pause at this block, 0 before the first
	cut     time.Time     // when one was cut short last, zero if none was
}

// pause returns when the block is to be sent again: after the back-off, or, once
// back is closed because the endpoint takes another lane's requests, soon. Who was
// asked to wait is to wait whatever becomes of others, of another tenant it may
// be. And an endpoint that now takes a request and now does not has to be spared
// still: so no pause is cut short within max_backoff of another of that lane.
func (p *pauses) pause(ctx context.Context, c clock.Clock, s *settings, retryAfter time.Duration, back <-chan struct{}) {
	q := &s.args.Queue
	p.backoff = min(max(2*p.backoff, q.MinBackoff), q.MaxBackoff)
	now := c.Now()
	if retryAfter > 0 || !p.cut.IsZero() && now.Sub(p.cut) < q.MaxBackoff {
		back = nil
	}
	d := wait(p.backoff, retryAfter)
	t := c.NewTimer(d)
	defer t.Stop()
	for {
		select {
		case <-t.C():
			return
		case <-back:
			back = nil
			p.cut = c.Now()
			t.Reset(min(d-p.cut.Sub(now), rand.N(p.backoff/16+1))) // not all lanes in one instant
		case <-s.replaced: // other settings may be what was missing
			p.backoff = 0
			return
		case <-ctx.Done():
			return
		}
	}
}

// wait returns how long to wait before a retry. Lanes, and other weirs, fail at
// the same moment and are not to come again at the same moment: so it is between
// three quarters of the back-off and all of it. What the endpoint asked for, if
// that is not 0, is never cut short but a little longer.
func wait(backoff, retryAfter time.Duration) time.Duration {
	jitter := rand.N(backoff/4 + 1)
	if retryAfter > 0 {
		return min(retryAfter, maxRetryAfter) + jitter
	}
	return backoff - jitter
}
