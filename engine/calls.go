package engine

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/engine/stall"
)

// Builds and updates may read files, and a hanging file system does not respond
// for a long time. Therefore, each runs in a goroutine, and the worker waits
// for a short time. Nearly all calls return immediately, and their outcome is
// part of the change that caused them. The worker does not wait for slower
// calls. It continues and applies their outcome when they have returned. Until
// then, the node keeps its old version. A call that takes longer than callLimit
// is given up when the node must get another version or other arguments.
const (
	// callPatience is how long the worker waits for one call. It waits for a
	// shorter time while other calls have not returned, so that many hanging calls
	// cost it about twice as much as one.
	callPatience    = 250 * time.Millisecond
	minCallPatience = 5 * time.Millisecond
	// startPatience is callPatience at the start, when the worker only has to
	// start nodes.
	startPatience = 2 * time.Second
	// callLimit is the time limit after which the node is also unhealthy.
	callLimit = stall.DefaultLimit
)

// pendingCall is a call that the worker no longer waits for.
type pendingCall struct {
	done    chan struct{}   // closed when the worker has taken over the outcome
	givenUp bool            // nobody wants the outcome any more; the worker's own
	changes []*change       // that are complete then
	canary  <-chan struct{} // of a trial: closed when the step canary begins
	sources []string        // of the registration, if it is the answer of a catalog
}

func (e *Engine) newPendingCall() *pendingCall {
	return &pendingCall{done: make(chan struct{}), changes: e.change.waiting()}
}

// nodeCall is a build or an update of a node that the worker no longer waits
// for.
type nodeCall struct {
	pending *pendingCall
	version string // of the registration
	args    any
	g       *instance // the instance that is being built or updated
	start   time.Time
}

// callAsync runs call outside the worker. If it returns in time, callAsync
// returns its error, and pending is nil. Otherwise, the worker calls late with
// the error when it has returned, unless weir stops before.
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
	p := e.newPendingCall()
	e.pending[p] = true
	e.wg.Go(func() {
		err := <-returned
		e.box.post(func() {
			if !p.givenUp {
				defer close(p.done)
				delete(e.pending, p)
			}
			e.change = following(p.changes)
			late(err)
		})
	})
	return p, nil
}

// runAndWait has the worker do a job and returns what came of it, when the worker has
// taken over the outcome of the calls and trials that the job began, and of the trials
// that it found in progress. It waits for canaries only if it is told to. It returns the
// change that the job made; nil if the worker has not done the job.
func (e *Engine) runAndWait(ctx context.Context, canaries bool, job func() error) (*change, error) {
	var made atomic.Pointer[change]
	err := e.runOnWorker(ctx, func() error {
		err := job()
		made.Store(e.change)
		return err
	})
	for err == nil {
		var next *pendingCall
		found := make(chan *pendingCall, 1)
		if err = e.runOnWorker(ctx, func() error { found <- e.nextPending(made.Load(), canaries); return nil }); err != nil {
			break
		}
		if next = <-found; next == nil {
			break
		}
		patient := next.canary
		if canaries {
			patient = nil
		}
		select {
		case <-next.done:
		case <-patient:
		case <-e.box.closed:
			err = ErrNotRunning
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
	}
	return made.Load(), err
}

// nextPending returns a call or a trial that a change waits for; nil without.
func (e *Engine) nextPending(c *change, canaries bool) *pendingCall {
	for p := range e.pending {
		if slices.Contains(p.changes, c) && (canaries || !isClosed(p.canary)) {
			return p
		}
	}
	return nil
}

// isClosed reports whether a channel without values is closed; nil is not.
func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// call calls into the node's component, or builds one: c says with what. follow takes
// over the outcome. If that is not known in time, call returns inProgress, and follow is
// called later, unless the call is given up.
func (n *node) call(what string, c nodeCall, call func() error, follow func(error) result) result {
	c.start = n.e.clock.Now()
	built := func() {
		if what == component.StepBuild {
			n.e.change.steps[what] += n.e.clock.Now().Sub(c.start)
		}
	}
	pending, err := n.e.callAsync(call, func(err error) {
		built()
		if n.calling == &c {
			n.returned(c.start, err, follow)
		} else {
			n.givenUp--
		}
	})
	built()
	if pending == nil {
		return follow(err)
	}
	c.pending, n.calling = pending, &c
	n.e.wg.Go(func() { n.watchCall(&c) })
	if n.current == nil {
		n.waits = config.Pending(n.id)
		n.change(func(s *state) {
			s.wish = component.Health{State: component.Unknown, Message: what + " has not returned yet", Time: n.e.clock.Now()}
		})
	}
	return inProgress
}

// watchCall lets the worker check what is wanted again when a call has reached
// its limit.
func (n *node) watchCall(c *nodeCall) {
	t := n.e.clock.NewTimer(callLimit)
	defer t.Stop()
	select {
	case <-t.C():
		n.e.box.post(func() {
			if n.calling == c && n.changedMeanwhile && n.e.nodes[n.id] == n {
				n.follow(c.start, func() result { return n.reconcile(n.want, nil, false) })
			}
		})
	case <-c.pending.done:
	case <-n.e.hard.Done():
	}
}

// overdue reports whether the call that has not returned has reached its limit,
// and was made for another version or other arguments than those wanted now.
// args may be nil.
func (n *node) overdue(w *wanted, args any) bool {
	c := n.calling
	if n.e.clock.Now().Sub(c.start) < callLimit || !w.usable() || w.mistake != nil || w.waits != "" {
		return false
	}
	if w.reg.Version != c.version {
		return true
	}
	if args == nil {
		var err error
		if args, err = n.evaluate(); err != nil {
			return false
		}
	}
	return !equal(args, c.args)
}

// giveUp discards the call that has not returned and releases the callers that
// wait for it. A component that was being updated may hold its locks: the next
// one is built without it, as after a failure.
func (n *node) giveUp() {
	c := n.calling
	n.e.log.Warn("a call that does not return is given up", "component_id", n.id, "since", c.start)
	if n.filesChangedMeanwhile {
		n.e.box.post(func() {
			if n.current != nil && n.e.nodes[n.id] == n {
				n.follow(n.e.clock.Now(), n.reread)
			}
		})
	}
	n.calling, n.changedMeanwhile, n.filesChangedMeanwhile = nil, false, false
	n.givenUp++
	c.pending.givenUp = true
	delete(n.e.pending, c.pending)
	close(c.pending.done)
	if c.g == n.current {
		c.g.stuck = true
	} else {
		c.g.cancel(errGivenUp)
	}
}

// errGivenUp is the cause of ending an instance whose build did not return.
var errGivenUp = errors.New("its build did not return in time")

// returned processes the outcome of a call that the worker no longer waited
// for, and then the changes that had to wait for it.
func (n *node) returned(start time.Time, err error, follow func(error) result) {
	n.calling, n.waits = nil, ""
	changed, filesChanged := n.changedMeanwhile, n.filesChangedMeanwhile
	n.changedMeanwhile, n.filesChangedMeanwhile = false, false
	n.follow(start, func() result {
		r := follow(err)
		if n.e.nodes[n.id] != n { // it was removed in the meantime
			return r
		}
		if changed {
			if again := n.reconcile(n.want, nil, false); again != untouched {
				r = again
			}
		}
		switch {
		case !filesChanged || n.current == nil:
		case n.calling != nil:
			n.filesChangedMeanwhile = true
		default:
			if again := n.reread(); again != untouched {
				r = again
			}
		}
		return r
	})
}

// follow changes a node outside of a change of the graph, and reports the
// outcome.
func (n *node) follow(start time.Time, change func() result) {
	e := n.e
	before, first := n.failed, n.current == nil
	e.committing, e.broken = true, nil
	defer func() { e.committing = false }()
	r := change()
	if e.nodes[n.id] != n { // it was removed in the meantime
		n.cancelTry()
		return
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
