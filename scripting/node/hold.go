package node

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/scripting"
)

// The back-off of a held batch.
const (
	minHold = time.Second
	maxHold = 30 * time.Second
)

// heldError is the error of process for a batch that the script failed on and
// that must not be sent unchanged: on_error holds it, it will be processed in
// parts, or it is replayed.
type heldError struct {
	err *scripting.Error
	// rows means that the script failed on each record individually.
	rows bool
	// outside means that an external request of the script failed, so that no
	// record is to blame.
	outside bool
	// used means that the call made external requests.
	used bool
}

func (e *heldError) Error() string { return e.err.Error() }

// Unwrap returns the script's error.
func (e *heldError) Unwrap() error { return e.err }

// ErrHeld is wrapped by the error of a held batch in a test, in which the
// script is not fixed while the batch is held.
var ErrHeld = errors.New("it is held until the script works")

// holding makes a node unhealthy while it holds batches.
type holding struct {
	mu sync.Mutex
	n  int
}

// add records a held batch until it is released.
func (h *holding) add(c *Component) (release func()) {
	tell := func(d int) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.n += d
		is := component.Health{State: component.Healthy, Reason: component.ReasonHeld, Time: c.opts.Clock.Now()}
		if h.n > 0 {
			is.State, is.Message = component.Unhealthy, "batches are held until the script works on them; weir_script_held_batches counts them"
		}
		c.opts.Health(is)
	}
	tell(1)
	return func() { tell(-1) }
}

// any reports whether a batch is held.
func (h *holding) any() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.n > 0
}

// awaitRetry waits until a held batch must be retried. If the error is
// errReplaced, another instance must process it.
func (c *Component) awaitRetry(ctx context.Context, t terms, err *heldError, d time.Duration) error {
	if t.observe != nil {
		t.observe(err.err)
		return fmt.Errorf("%s: %w", c.opts.ID, ErrHeld)
	}
	timer := c.opts.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
		return nil
	case <-c.admission.replaced:
		return errReplaced
	case <-c.admission.stopped:
		return c.admission.stoppedError()
	case <-ctx.Done():
		return fmt.Errorf("%s holds the batch until its script works (%s): %w", c.opts.ID, err.err.Pos(), context.Cause(ctx))
	}
}

// onErrorSays describes what happens to data, for a node's health.
var onErrorSays = map[scripting.OnError]string{
	scripting.OnErrorQuarantine: "what it failed on is in quarantine",
	scripting.OnErrorHold:       "its sources are held until the script works",
}

// sinkHoldsSays is the text for OnErrorHold of a sink.
const sinkHoldsSays = "its records wait in the journal until the script works"

// inPartsSays is the text for a batch that is no longer held; see search.
const inPartsSays = "its batches get through in parts, each within the limit; raise the limit, or make the script do less"
