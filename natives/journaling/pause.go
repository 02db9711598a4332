package journaling

import (
	"context"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"github.com/weir-run/weir/engine/clock"
)

const maxRetryAfter = 10 * time.Minute

// Pauses are those of a lane between its attempts to send something. The zero
// value is ready; one goroutine at a time uses it.
type Pauses struct {
	backoff time.Duration // of the last pause, 0 before the first
	cut     time.Time     // when one was cut short last, zero if none was
}

// Reset makes the next pause the first.
func (p *Pauses) Reset() { p.backoff = 0 }

// Reasons are what a pause is to last for, and what ends it.
type Reasons struct {
	Min, Max   time.Duration   // of the back-off, which doubles from Min to Max
	RetryAfter time.Duration   // what the endpoint asked for, 0 if nothing
	Back       <-chan struct{} // closed when the endpoint takes something of another lane
	Replaced   <-chan struct{} // closed when other settings follow, which may be what was missing
}

// Pause returns when it is time to try again: after the back-off, or, once Back
// is closed because the endpoint takes another lane's requests, soon. Who was
// asked to wait is to wait whatever becomes of others, of another tenant it may
// be. And an endpoint that now takes a request and now does not has to be spared
// still: so no pause is cut short within Max of another of that lane.
func (p *Pauses) Pause(ctx context.Context, c clock.Clock, r Reasons) {
	p.backoff = min(max(2*p.backoff, r.Min), r.Max)
	now := c.Now()
	back := r.Back
	if r.RetryAfter > 0 || !p.cut.IsZero() && now.Sub(p.cut) < r.Max {
		back = nil
	}
	d := wait(p.backoff, r.RetryAfter)
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
		case <-r.Replaced:
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
		return retryAfter + jitter
	}
	return backoff - jitter
}

// RetryAfter returns what the header Retry-After of an answer asks for, seconds
// or a date; 0 when there is none that lies ahead, and ten minutes when it is
// more: beyond that a mistake there would look like a stop here. The time is the answer's own
// if it says, since ours may be an hour off.
//
// Format: https://www.rfc-editor.org/rfc/rfc9110#field.retry-after
func RetryAfter(h http.Header, now time.Time) time.Duration {
	if t, err := http.ParseTime(h.Get("Date")); err == nil {
		now = t
	}
	after := h.Get("Retry-After")
	if n, err := strconv.ParseInt(after, 10, 64); err == nil {
		return time.Duration(min(max(n, 0), int64(maxRetryAfter/time.Second))) * time.Second
	}
	if t, err := http.ParseTime(after); err == nil {
		return min(max(t.Sub(now), 0), maxRetryAfter)
	}
	return 0
}
