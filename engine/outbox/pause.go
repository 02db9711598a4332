package outbox

import (
	"net/http"
	"strconv"
	"time"
)

const maxRetryAfter = 10 * time.Minute

// RetryAfter returns the duration that the header Retry-After of a response
// asks for, as seconds or a date. It returns 0 if there is no such header or
// the date has passed, and at most ten minutes, because an error in a longer
// duration would look as if sending had stopped. If the response has a date, it
// is used as the current time, because the local clock may be wrong by an hour.
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
