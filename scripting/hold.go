package scripting

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
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
	err *Error
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

// secure sees to it that what the script failed on is not lost. whole is the
// error that costs all of b, nil when there is none.
func (k *call) secure(b payload, whole *Error) error {
	switch {
	case k.held != nil:
		return k.held
	case k.stored == 0:
		return nil
	}
	err := k.store(b, whole)
	if err != nil {
		e := AsError(err)
		e.Hook = b.signal().String()
		e.Hint = "the batch is refused, so that its source sends it again; make room, or lower script.quarantine.max_size"
		k.c.report.errored(e)
		k.first = e
	}
	return err
}

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

// backOff waits until a batch that is held is to be tried again. The component is
// the one that is to have it instead.
func (c *Component) backOff(ctx context.Context, err *heldError, d time.Duration) (next *Component, _ error) {
	if tell := observer(ctx); tell != nil {
		tell(err.err)
		return nil, fmt.Errorf("%s: %w", c.opts.ID, ErrHeld)
	}
	t := c.opts.Clock.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C():
		return nil, nil
	case <-c.replaced:
		return c.mem.newest(), nil
	case <-c.stopped:
		return nil, fmt.Errorf("%s: %w", c.opts.ID, flow.ErrStopped)
	case <-ctx.Done():
		return nil, fmt.Errorf("%s holds the batch until its script works (%s): %w", c.opts.ID, err.err.Pos(), context.Cause(ctx))
	}
}

// onErrorSays is what becomes of data, as a line of a node's health.
var onErrorSays = map[OnError]string{
	OnErrorQuarantine: "what it failed on is in quarantine",
	OnErrorHold:       "its sources are held until the script works",
}

// sinkHoldsSays is onErrorSays of OnErrorHold for a sink.
const sinkHoldsSays = "its records wait in the journal until the script works"

// inPartsSays is onErrorSays of a batch that is held no longer: see pieces.
const inPartsSays = "its batches get through in parts, each within the limit; raise the limit, or make the script do less"

// finalOn is the context key of a call that is asked no more: its value is the
// OnError that holds for it.
type finalOn struct{}

// onError is what becomes of data that a call fails on, and whether it is asked
// no more.
func (c *Component) onError(ctx context.Context) (on OnError, final bool) {
	if on, ok := ctx.Value(finalOn{}).(OnError); ok {
		return on, true
	}
	return c.block.OnError, false
}

// isolates reports whether a call that failed on a batch is followed by calls for
// parts of it at once. What is held is asked again elsewhere, see held.
func (c *Component) isolates(ctx context.Context) bool {
	on, final := c.onError(ctx)
	return on != OnErrorHold && !final && !isReplay(ctx) && !isPiece(ctx)
}

// asksAgain reports whether the hook, which failed on n records, is asked again
// about them, or about parts of them. What is sent to the outside is sent twice
// only if on_error says that it is tried until it works.
func (k *call) asksAgain(n int) bool {
	switch {
	case k.final:
		return false
	case k.on == OnErrorHold:
		return true
	case k.outside || k.outsideFailed:
		return false
	case isPiece(k.ctx):
		return true
	}
	return n > 1 && !k.c.trust.broken()
}

// holdsRows reports whether the batch of n records is asked again because of the
// records that each failed on. When it works on others, they are withheld instead.
func (k *call) holdsRows(n int) bool {
	if k.on == OnErrorHold && !k.final && k.held == nil && k.stored > 0 && (k.stored >= n || k.outsideFailed) {
		k.held = &heldError{err: k.first, rows: true, outside: k.outsideFailed}
		k.stored, k.kept = 0, nil
	}
	return k.held != nil
}

// proved notes that the call worked, or on some of its records, if it did; err is
// why none of its batch may go on.
func (k *call) proved(err error) {
	if err == nil && !k.final && k.on == OnErrorHold {
		k.c.trust.worked()
	}
}
