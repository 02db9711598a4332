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
// again. It returns the component that is to have the batch when another
// has taken over meanwhile: a save is tried at once.
func (c *Component) hold(ctx context.Context, err *heldError, again func() (result, error)) (out result, next *Component, _ error) {
	if observer(ctx) != nil {
		return out, nil, fmt.Errorf("%s: %w", c.opts.ID, ErrHeld)
	}
	c.mem.held.Inc()
	defer c.mem.held.Dec()
	for backoff := minHold; ; backoff = min(2*backoff, maxHold) {
		t := c.opts.Clock.NewTimer(backoff)
		select {
		case <-t.C():
		case <-c.replaced:
			t.Stop()
			return out, c.mem.newest(), nil
		case <-c.stopped:
			t.Stop()
			return out, nil, fmt.Errorf("%s: %w", c.opts.ID, flow.ErrStopped)
		case <-ctx.Done():
			t.Stop()
			return out, nil, fmt.Errorf("%s holds the batch until its script works (%s): %w", c.opts.ID, err.err.Pos(), context.Cause(ctx))
		}
		out, failed := again()
		held, ok := failed.(*heldError)
		if !ok {
			return out, nil, failed
		}
		err = held
	}
}

// onErrorSays is what becomes of data, as a line of a node's health.
var onErrorSays = map[OnError]string{
	OnErrorQuarantine: "what it failed on is in quarantine",
	OnErrorHold:       "its sources are held until the script works",
}
