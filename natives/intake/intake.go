// Package intake is what components have in common that are sent records by
// HTTP and answer 2xx only when every receiver has accepted them: reading bodies
// within a budget of memory, remembering those that were late so that a retry is
// sent once, and lanes that send what several requests brought.
//
// It is not a component, and the HTTP server is natives/server. The rule to know:
// a Request outlives its client, which may come back for it.
package intake

import (
	"errors"
	"net/http"
	"time"

	"github.com/weir-run/weir/engine/clock"
)

// Waiting is how long a client waits for its answer.
type Waiting struct {
	Clock    clock.Clock
	Wait     time.Duration
	Stopping <-chan struct{} // closed when clients are to be answered soon
	What     string          // was sent, in the plural: samples
}

// Await returns nil when all of req was accepted, and else what to answer.
func Await[A any](w Waiting, r *http.Request, p *Pending[A], req *Request[A]) *Refusal {
	timer := w.Clock.NewTimer(w.Wait)
	defer timer.Stop()
	var e *Refusal
	answered := false
	refused := func(format string, args ...any) {
		e = Refuse(http.StatusServiceUnavailable, Refused, "the "+w.What+" were not accepted"+format, args...).Later(RetryRefused)
	}
	select {
	case <-req.Done():
		answered = true
		if err := req.Err(); err != nil {
			refused(": %w", err)
		}
	case <-timer.C():
		refused(" within %s; send them again", w.Wait.Round(time.Millisecond))
	case <-w.Stopping:
		refused(": %w", errStopsSend)
	case <-r.Context().Done():
		e = &Refusal{Outcome: Gone}
	}
	p.Leave(req, answered, w.Clock.Now())
	return e
}

var errStopsSend = errors.New("weir is stopping; send them again")
