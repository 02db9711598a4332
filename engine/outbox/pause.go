package outbox

import (
	"net/http"
	"strconv"
	"time"
)

const maxRetryAfter = 10 * time.Minute

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
