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

// The back-off of a batch that is held.
const (
	minHold = time.Second
	maxHold = 30 * time.Second
)

// heldError is what process returns for a batch that the script failed on and
// that is not to go on as it is: on_error holds it, it is to be asked in parts, or
// it is replayed.
type heldError struct {
	err *scripting.Error
	// rows says that the script failed on each of the records for itself.
	rows bool
	// outside says that what the script asked of the outside failed, so that no
	// record is to blame.
	outside bool
	// used says that the call used the outside.
	used bool
}

func (e *heldError) Error() string { return e.err.Error() }

// Unwrap returns the script's error.
func (e *heldError) Unwrap() error { return e.err }

// ErrHeld is in the error of a batch that is held in a test, where nobody will mend
// the script meanwhile.
var ErrHeld = errors.New("it is held until the script works")

// holding makes a node unhealthy while batches of it are held.
type holding struct {
	mu sync.Mutex
	n  int
}

// add notes a batch that is held, until it is released.
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

// awaitRetry waits until a batch that is held is to be tried again. The error is
// errReplaced if another instance is to have it.
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

// onErrorSays is what becomes of data, as a line of a node's health.
var onErrorSays = map[scripting.OnError]string{
	scripting.OnErrorQuarantine: "what it failed on is in quarantine",
	scripting.OnErrorHold:       "its sources are held until the script works",
}

// sinkHoldsSays is onErrorSays of OnErrorHold for a sink.
const sinkHoldsSays = "its records wait in the journal until the script works"

// inPartsSays is onErrorSays of a batch that is held no longer: see search.
const inPartsSays = "its batches get through in parts, each within the limit; raise the limit, or make the script do less"
