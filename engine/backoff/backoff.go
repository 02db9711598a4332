// Package backoff waits between attempts to deliver something. It knows nothing
// about what is delivered, and it does not decide whether to try again.
//
// An interval is at least 0.9 times the previous one, up to the longest interval
// that is allowed: jitter lengthens intervals and never shortens them.
package backoff

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/weir-run/weir/engine/clock"
)

// Pauses are the intervals between the attempts to deliver one thing. The zero
// value is ready to use. Only one goroutine may use it at a time.
type Pauses struct {
	last time.Duration // the last interval without its jitter, 0 before the first
	cut  time.Time     // when an interval was last cut short, zero if none was
}

// Reset makes the next interval the first one again.
func (p *Pauses) Reset() { p.last = 0 }

// Reasons say how long an interval lasts and what ends it early.
type Reasons struct {
	Min, Max   time.Duration   // of the back-off, which doubles from Min to Max
	RetryAfter time.Duration   // the least interval that the endpoint asked for, 0 for none
	Back       <-chan struct{} // closed when the endpoint accepts something from another sender; may be nil
	Replaced   <-chan struct{} // closed when the settings change, which may remove the cause; may be nil
}

// Pause returns when it is time to try again, or when ctx ends. When Back is
// closed, it returns soon, with two exceptions. A sender that was asked to wait
// keeps waiting: what other senders deliver, perhaps for another tenant, says
// nothing about it. And at most one interval is cut short within Max, because an
// endpoint that accepts only some of the requests still needs to be spared.
func (p *Pauses) Pause(ctx context.Context, c clock.Clock, r Reasons) {
	d := p.next(r)
	began := c.Now()
	back := r.Back
	if r.RetryAfter > 0 || !p.cut.IsZero() && began.Sub(p.cut) < r.Max {
		back = nil
	}
	t := c.NewTimer(d)
	defer t.Stop()
	for {
		select {
		case <-t.C():
			return
		case <-back:
			back = nil
			p.cut = c.Now()
			t.Reset(min(d-p.cut.Sub(began), rand.N(p.last/16+1))) // not all senders at the same instant
		case <-r.Replaced:
			p.Reset()
			return
		case <-ctx.Done():
			return
		}
	}
}

// next returns the length of the next interval. Senders fail at the same moment
// and must not return at the same moment, so each interval has up to a tenth of
// jitter. The back-off stops doubling that much below Max, so that the jitter
// fits below Max too, unless Min leaves no room for it.
func (p *Pauses) next(r Reasons) time.Duration {
	longest := max(r.Min, r.Max-r.Max/11)
	p.last = max(min(max(2*p.last, r.Min), longest), r.RetryAfter)
	return p.last + rand.N(min(p.last, longest)/10+1)
}
