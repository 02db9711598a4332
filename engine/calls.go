package engine

import (
	"context"
	"maps"
	"time"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/config"
)

// Builds and updates may read files, and a file system that hangs does not return
// for a long time. So each runs in a goroutine, and the worker waits for a moment:
// nearly all return at once, and their outcome is part of the change that asked for
// them. The worker does not wait for slower calls. It goes on with its work and applies
// their outcome when they have returned. Until then the node keeps its old version.
const (
	// callPatience is how long the worker waits for one call. It waits less while
	// others have not returned, so that many calls that hang together cost it about
	// twice as much.
	callPatience    = 250 * time.Millisecond
	minCallPatience = 5 * time.Millisecond
	// startPatience is callPatience at the start, when nothing else is asked of the
	// worker but to start other nodes.
	startPatience = 2 * time.Second
)

// pendingCall is a call that the worker does not wait for any more.
type pendingCall struct {
	done chan struct{} // closed when the worker has taken over the outcome
}

// callAsync runs call outside the worker. If it returns in time, callAsync returns
// its error, and pending is nil. Otherwise the worker calls late with the error when
// it has returned, unless weir stops before.
func (e *Engine) callAsync(call func() error, late func(error)) (pending *pendingCall, err error) {
	returned := make(chan error, 1)
	e.wg.Go(func() { returned <- call() })
	patience := callPatience
	if e.phase.Load() == phaseStarting {
		patience = startPatience
	}
	timer := time.NewTimer(max(patience>>min(len(e.pending), 16), minCallPatience))
	defer timer.Stop()
	select {
	case err := <-returned:
		return nil, err
	case <-timer.C:
	}
	p := &pendingCall{done: make(chan struct{})}
	e.pending[p] = true
	e.wg.Go(func() {
		err := <-returned
		e.box.post(func() {
			defer close(p.done)
			delete(e.pending, p)
			late(err)
		})
	})
	return p, nil
}

// runAndWait has the worker do a job and returns what came of it, when the worker has
// taken over the outcome of the calls that the job began.
func (e *Engine) runAndWait(ctx context.Context, job func() error) error {
	var begun []*pendingCall
	err := e.runOnWorker(ctx, func() error {
		before := maps.Clone(e.pending)
		err := job()
		for p := range e.pending {
			if !before[p] {
				begun = append(begun, p)
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, c := range begun {
		select {
		case <-c.done:
		case <-e.box.closed:
			return ErrNotRunning
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// call calls into the node's component, or builds one. follow takes over the
// outcome. If that is not known in time, call returns inProgress, and follow is
// called later.
func (n *node) call(what string, call func() error, follow func(error) result) result {
	start := n.e.clock.Now()
	pending, err := n.e.callAsync(call, func(err error) { n.returned(start, err, follow) })
	if pending == nil {
		return follow(err)
	}
	n.calling = true
	if n.current == nil {
		n.waits = config.Pending(n.id)
		n.change(func(s *state) {
			s.wish = component.Health{State: component.Unknown, Message: what + " has not returned yet", Time: n.e.clock.Now()}
		})
	}
	return inProgress
}

// returned takes over the outcome of a call that the worker has not waited for, and
// then what was to be done meanwhile.
func (n *node) returned(start time.Time, err error, follow func(error) result) {
	e := n.e
	n.calling, n.waits = false, ""
	before, first := n.failed, n.current == nil
	changed, filesChanged := n.changedMeanwhile, n.filesChangedMeanwhile
	n.changedMeanwhile, n.filesChangedMeanwhile = false, false
	e.committing, e.broken = true, nil
	defer func() { e.committing = false }()
	r := follow(err)
	if e.nodes[n.id] != n { // it was removed meanwhile
		n.cancelTry()
		return
	}
	if changed {
		if again := n.reconcile(n.want, nil, false); again != untouched {
			r = again
		}
	}
	switch {
	case !filesChanged || n.current == nil:
	case n.calling:
		n.filesChangedMeanwhile = true
	default:
		if again := n.reread(); again != untouched {
			r = again
		}
	}
	e.exported(n)
	c := counts{results: map[result][]string{r: {n.id}}, nodes: len(e.nodes)}
	switch r {
	case rebuilt, updated:
		e.followFiles()
		what := "reloaded "
		if first {
			what = "started "
		}
		e.report(what+n.id, start, c)
	case failed:
		if !sameError(before, n.failed) {
			e.report("", start, c)
		}
	}
}
