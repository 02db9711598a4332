package scripting

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-run/weir/engine/flow"
)

// The back-off of a batch that is held.
const (
	minHold = time.Second
	maxHold = 30 * time.Second
)

// heldError is what process returns for a batch that the script failed on and
// that is not to go on: on_error holds it, or it is replayed.
type heldError struct{ err *Error }

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

// hold keeps a batch that the script failed on, until it works on it when asked
// again: at once when there is less to do, else after a back-off. It returns the
// component that is to have the batch when another has taken over meanwhile: a
// save is tried at once.
func (c *Component) hold(ctx context.Context, err *heldError, less func(*heldError) bool, again func(context.Context) error) (next *Component, _ error) {
	c.mem.held.Inc()
	defer c.mem.held.Dec()
	for backoff := minHold; ; {
		if !less(err) {
			next, failed := c.backOff(ctx, err, backoff)
			if next != nil || failed != nil {
				return next, failed
			}
			backoff = min(2*backoff, maxHold)
		}
		failed := again(ctx)
		held, ok := failed.(*heldError)
		if !ok {
			return nil, failed
		}
		err = held
	}
}

// backOff waits until a batch that is held is to be tried again. The component is
// the one that is to have it instead.
func (c *Component) backOff(ctx context.Context, err *heldError, d time.Duration) (next *Component, _ error) {
	if observer(ctx) != nil {
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

// inPartsSays is onErrorSays of a batch that is held no longer: see pieces.
const inPartsSays = "its batches get through in parts, each within the limit; raise the limit, or make the script do less"
