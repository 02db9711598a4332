package intake

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/weir-run/weir/engine/flow"
)

// Outcomes of a request, which are the values of a label outcome.
const (
	Accepted    = "accepted"
	Partial     = "partly_accepted" // 400
	Invalid     = "invalid"         // 400
	TooLarge    = "too_large"       // 413 or 400
	Unsupported = "unsupported"     // 404, 405 or 415
	RateLimited = "rate_limited"    // 429
	Busy        = "busy"            // 503 or 429
	Refused     = "refused"         // 503
	Panic       = "panic"           // 500
	Gone        = "client_gone"
)

// Outcomes contains all outcomes.
var Outcomes = []string{Accepted, Partial, Invalid, TooLarge, Unsupported, RateLimited, Busy, Refused, Panic, Gone}

// Refusal is a response other than 2xx.
type Refusal struct {
	Status  int // 0 if the client is gone
	Outcome string
	Err     error
	Retry   time.Duration // Retry-After; 0 if there is none
}

// Refuse returns a Refusal with a message in the format of fmt.Errorf.
func Refuse(status int, outcome, format string, args ...any) *Refusal {
	return &Refusal{Status: status, Outcome: outcome, Err: fmt.Errorf(format, args...)}
}

// Later sets the time after which the client should retry.
func (e *Refusal) Later(wait time.Duration) *Refusal {
	e.Retry = wait
	return e
}

// Write writes the response.
func (e *Refusal) Write(w http.ResponseWriter) {
	if e.Status == 0 {
		return
	}
	if e.Retry > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int((e.Retry+time.Second-1)/time.Second)))
	}
	http.Error(w, e.Err.Error(), e.Status)
}

// Retry times: for clients with too many concurrent requests, and for clients
// whose samples or lines are being sent but were not accepted in time. The
// latter have already waited long, and wait again when they retry.
const (
	RetryBusy    = 5 * time.Second
	RetryRefused = time.Second
)

// ReadBody appends a body of at most limit bytes to dst; limitName is the
// argument that sets the limit. busy is the response if there is no memory for
// it.
func ReadBody(r *http.Request, dst []byte, limit int64, limitName string, reserve func(int64) bool, busy func() *Refusal) ([]byte, *Refusal) {
	tooLarge := Refuse(http.StatusRequestEntityTooLarge, TooLarge, "the body has more bytes than %s, which is %d", limitName, limit)
	if r.ContentLength > limit {
		return dst, tooLarge
	}
	// Memory is reserved for the announced length, or in steps.
	reserved := max(r.ContentLength, 64<<10)
	if !reserve(reserved) {
		return dst, busy()
	}
	if int64(cap(dst)) < r.ContentLength+1 && r.ContentLength >= 0 {
		dst = make([]byte, 0, r.ContentLength+1)
	}
	for {
		if len(dst) == cap(dst) {
			dst = append(dst, 0)[:len(dst)]
		}
		n, err := r.Body.Read(dst[len(dst):min(cap(dst), len(dst)+64<<10)])
		dst = dst[:len(dst)+n]
		if int64(len(dst)) > limit {
			return dst, tooLarge
		}
		if int64(len(dst)) > reserved {
			if !reserve(reserved) {
				return dst, busy()
			}
			reserved *= 2
		}
		if errors.Is(err, io.EOF) {
			return dst, nil
		}
		if err != nil {
			return dst, readRefusal(r.Context(), err)
		}
	}
}

// readRefusal returns the response to an incomplete body.
func readRefusal(ctx context.Context, err error) *Refusal {
	if errors.Is(err, flow.ErrStopped) {
		return Refuse(http.StatusServiceUnavailable, Refused, "cannot read the body: %w", err).Later(RetryRefused)
	}
	if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() {
		return Refuse(http.StatusRequestTimeout, Invalid, "the body did not come within server_read_timeout: %w", err)
	}
	if ctx.Err() != nil || errors.Is(err, io.ErrUnexpectedEOF) {
		return &Refusal{Outcome: Gone, Status: http.StatusBadRequest, Err: err}
	}
	return Refuse(http.StatusBadRequest, Invalid, "cannot read the body: %w", err)
}
