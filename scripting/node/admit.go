package node

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/weir-run/weir/engine/flow"
)

// errReplaced means that a batch is not processed here, because another
// instance has taken over.
var errReplaced = errors.New("another instance of the node has taken over")

// admission is the first stage. It admits calls from when the instance is ready
// until another one takes over.
type admission struct {
	id       string            // of the node
	ready    chan struct{}     // closed when calls are admitted; nil: always admitted
	replaced chan struct{}     // closed when another instance takes over
	stopped  chan struct{}     // closed when the node ends and no other instance takes over
	newest   func() *Component // the instance that took over
	entrance
}

func newAdmission(id string, newest func() *Component) admission {
	return admission{
		id: id, newest: newest, replaced: make(chan struct{}), stopped: make(chan struct{}),
		entrance: entrance{left: make(chan struct{})},
	}
}

// wait makes calls wait until open. It is called before the first call.
func (a *admission) wait() {
	if a.ready == nil {
		a.ready = make(chan struct{})
	}
}

// open admits calls.
func (a *admission) open() {
	if a.ready != nil {
		close(a.ready)
	}
}

// enter waits until calls are admitted. If it returns nil, leave must follow.
// If the error is errReplaced, another instance must process the call.
func (a *admission) enter(ctx context.Context) error {
	if err := a.awaitReady(ctx); err != nil {
		return err
	}
	if !a.tryEnter() {
		return errReplaced
	}
	return nil
}

// awaitReady waits until calls are admitted. The errors are those of enter.
func (a *admission) awaitReady(ctx context.Context) error {
	if a.ready == nil {
		return nil
	}
	select {
	case <-a.ready:
		return nil
	default:
	}
	select {
	case <-a.ready:
		return nil
	case <-a.replaced:
		return errReplaced
	case <-a.stopped:
		return a.stoppedError()
	case <-ctx.Done():
		return fmt.Errorf("%s waits for its setup or its state: %w", a.id, context.Cause(ctx))
	}
}

// successor returns the instance that took over. It waits for an instance that
// has been built but does not run yet.
func (a *admission) successor(ctx context.Context) (*Component, error) {
	select {
	case <-a.replaced:
		return a.newest(), nil
	case <-a.stopped:
		return nil, a.stoppedError()
	case <-ctx.Done():
		return nil, fmt.Errorf("%s waits for its next version: %w", a.id, context.Cause(ctx))
	}
}

// ends reports whether calls go to another instance, or are refused.
func (a *admission) ends() bool {
	select {
	case <-a.replaced:
	case <-a.stopped:
	default:
		return false
	}
	return true
}

func (a *admission) stoppedError() error { return fmt.Errorf("%s: %w", a.id, flow.ErrStopped) }

// entrance admits calls until it is closed, and then signals when all calls
// have left.
type entrance struct {
	calls  atomic.Int64
	closed atomic.Bool
	once   sync.Once
	left   chan struct{}
}

func (e *entrance) tryEnter() bool {
	e.calls.Add(1)
	if e.closed.Load() {
		e.leave()
		return false
	}
	return true
}

func (e *entrance) leave() {
	if e.calls.Add(-1) == 0 && e.closed.Load() {
		e.once.Do(func() { close(e.left) })
	}
}

// close refuses further calls. The channel is closed when all calls have left.
// It may be called again.
func (e *entrance) close() <-chan struct{} {
	e.calls.Add(1) // so that no other call is the last one
	e.closed.Store(true)
	e.leave()
	return e.left
}
