package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/pprof"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/engine/files"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/stall"
)

// node is a component block of the running graph. It exists as long as its
// block is in the config. Its instances run behind its gate.
type node struct {
	e     *Engine
	id    string
	stats *flow.Stats
	recv  *flow.Receiver
	watch *stall.Watch
	state atomic.Pointer[state]  // for other goroutines; written under mu
	shown atomic.Pointer[wanted] // want, for other goroutines; written by the worker

	// These belong to the worker.
	want    *wanted
	current *instance          // the one behind the gate; nil before the first good one
	failed  error              // why the wanted version does not run; nil if it does
	waits   config.Pending     // the dependency that it waits for; "" if there is none
	unread  bool               // failed is an error in reading its files again
	drains  []<-chan struct{}  // closed when calls from before a change have returned
	again   context.CancelFunc // stops the timer of the next attempt; may be nil
	tries   int                // failed tries in a row
	parting *parting           // set while it has left the graph and can be called back
	// calling is a build or an update that has not returned, and that the worker
	// no longer waits for, or nil. Changes in the meantime are applied when it has
	// returned, or is given up.
	calling               *nodeCall
	givenUp               int  // calls that were given up and have not returned
	changedMeanwhile      bool // want changed, or another attempt is due
	filesChangedMeanwhile bool // the files of the component changed

	abandoned bool // belongs to watchStalls: it was removed and does not stop, which was logged

	mu        sync.Mutex
	visible   *instance         // current, as components see it
	instances map[*instance]int // all that have not returned, by age
	age       int
	removed   bool
	stopped   chan struct{} // closed when everything of it has returned
}

// state is an immutable view of a node.
type state struct {
	reg       component.Registration // of the running version, or of the wanted one if nothing runs
	args      any
	exports   any
	exported  bool      // by a component; not the zero value of the registration
	instance  *instance // the running one, for questions; nil before the first
	component component.Component
	builds    uint64
	restarts  uint64
	sourced   []string

	wish component.Health // whether the wanted version could be built
	run  component.Health // the health of Run
	// own contains the reports of the component, one per reason. It is immutable.
	own []component.Health
	// stalled is the oldest overdue operation.
	stalled component.Health
	// queue means that its queue does not drain.
	queue component.Health

	health    component.Health // of all parts, with the start time of its state
	lastError component.Health // the last that was worse than healthy, when it was last reported
	// problems are the reasons why the node is unhealthy, with their start times.
	problems []component.Health
}

// awaitsExports reports whether the exports are not known yet.
func (s *state) awaitsExports() bool { return s.reg.ExportsLater && !s.exported }

// parts yields the parts of the health. Among equal states, the component's own
// report is preferred.
func (s *state) parts(yield func(component.Health) bool) {
	part := func(h component.Health, reason string) bool {
		h.Message = component.HideURLs(component.Shorten(h.Message))
		if h.Reason = ""; h.State > component.Healthy {
			h.Reason = reason
		}
		return yield(h)
	}
	if !part(s.wish, component.ReasonBuild) || !part(s.stalled, component.ReasonStalled) {
		return
	}
	for _, h := range s.own {
		if !part(h, h.Reason) {
			return
		}
	}
	if part(s.queue, component.ReasonQueue) {
		part(s.run, component.ReasonRun)
	}
}

// decide computes the health from the parts.
func (s *state) decide(now time.Time) {
	var h component.Health
	before := s.problems
	s.problems = nil
	for p := range s.parts {
		if p.State > h.State || p.State == h.State && h.Message == "" {
			h = p
		}
		if p.State != component.Unhealthy {
			continue
		}
		if i := slices.IndexFunc(before, func(b component.Health) bool { return b.Reason == p.Reason }); i >= 0 && p.Reason != component.ReasonStalled {
			p.Time = before[i].Time
		}
		s.problems = append(s.problems, p)
	}
	if h.State > component.Healthy {
		s.lastError = h
	}
	h.Time = now // the part that is now the worst may be as it is for long
	s.health = h.Following(s.health)
}

// replaceReport returns the reports of a component, with h in place of the last
// report with the same reason.
func replaceReport(own []component.Health, h component.Health) []component.Health {
	if h.Reason == "" {
		h.Reason = component.ReasonComponent
	}
	own = slices.Clone(own)
	if i := slices.IndexFunc(own, func(o component.Health) bool { return o.Reason == h.Reason }); i >= 0 {
		own[i] = h
		return own
	}
	return append(own, h)
}

func newNode(e *Engine, w *wanted) *node {
	n := &node{e: e, id: w.id, stats: w.stats, recv: w.recv, watch: stall.New(e.clock), instances: map[*instance]int{}, stopped: make(chan struct{})}
	n.shown.Store(w)
	n.state.Store(&state{exports: config.WithReceiver(w.reg.Exports, w.recv)})
	return n
}

// change creates a new state. f must not call a component.
func (n *node) change(f func(s *state)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.changeLocked(f)
}

func (n *node) changeLocked(f func(s *state)) {
	s := *n.state.Load()
	f(&s)
	s.decide(n.e.clock.Now())
	n.state.Store(&s)
}

func (n *node) exports() any { return n.state.Load().exports }

// result is the result of reconcile.
type result uint8

const (
	untouched result = iota
	updated
	rebuilt
	failed
	inProgress // the outcome comes later
)

// reconcile changes the node to w if it differs. The worker calls it after
// everything that w depends on has been reconciled.
//
// args are the decoded arguments, or nil if they have not been decoded yet.
func (n *node) reconcile(w *wanted, args any, retry bool) result {
	n.want = w
	n.shown.Store(w)
	if n.calling != nil {
		if !n.overdue(w, args) {
			n.changedMeanwhile = true
			return inProgress
		}
		n.giveUp()
	}
	n.waits = ""
	if n.current == nil {
		n.change(func(s *state) { s.reg = w.reg })
	}
	if !w.usable() {
		if sameType(n.exports(), nil) {
			n.change(func(s *state) { s.exports = brokenExports{n.recv} })
		}
		if w.waits != "" {
			return n.wait(w.waits)
		}
		return n.fail(w.err, false)
	}
	n.recv.SetAccepts(w.signal.accepts)
	if w.mistake != nil {
		return n.fail(w.mistake, false)
	}
	if w.waits != "" {
		return n.wait(w.waits)
	}
	if args == nil {
		var err error
		args, err = n.evaluate()
		if p, pending := err.(config.Pending); pending {
			return n.wait(p)
		}
		if err != nil {
			return n.fail(err, false)
		}
		if w.reg.Passes != nil { // as by these arguments
			n.recv.SetAccepts(w.signals(args, config.Receivers(args), acceptedSignals).accepts)
		}
	}
	r := n.apply(args, retry)
	if r != failed && w.err != nil {
		return n.fail(w.err, false)
	}
	return r
}

// evaluate decodes the arguments with the current exports of other nodes.
func (n *node) evaluate() (any, error) {
	n.e.metrics.evaluations.Inc()
	args, scope := n.want.newArgs(), n.want.values()
	if ds := n.want.block.Decode(scope, args); ds.HasErrors() {
		return nil, ds.Err()
	}
	for _, e := range deniedGrants(n.e.plan.policy, n.want.reg, args) {
		return nil, config.Diagnostics{{Span: n.want.block.SpanOf(e.Path), Msg: e.Error()}}.Err()
	}
	return args, n.want.block.Unready(scope)
}

// wait leaves the node unchanged until a dependency is available.
func (n *node) wait(p config.Pending) result {
	n.cancelTry()
	n.failed, n.waits = nil, p
	if n.current == nil {
		n.change(func(s *state) {
			s.wish = component.Health{State: component.Unknown, Message: p.Error(), Time: n.e.clock.Now()}
		})
	}
	return untouched
}

// apply applies arguments to the running component.
func (n *node) apply(args any, retry bool) result {
	g := n.current
	same := g != nil && !g.stuck && g.reg.Version == n.want.reg.Version && equal(g.args, args)
	if !same && !retry {
		n.tries = 0 // it is a new attempt
	}
	if g == nil || g.stuck || g.reg.Version != n.want.reg.Version {
		return n.build(args, g)
	}
	switch {
	case g.crashed && (retry || !same):
		return n.build(args, nil)
	case same && n.unread && !g.crashed:
		return n.reread()
	case same && n.failed != nil && !g.crashed && n.want.answer == nil: // with an answer, the next version is not known yet
		n.succeed() // the arguments are again those of the running component
		return untouched
	case same:
		return untouched
	}
	up, ok := g.c.(component.Updater)
	if !ok {
		return n.build(args, g)
	}
	return n.update(up, g, args, func(sourced []string, err error) result { return n.updated(g, args, sourced, err) })
}

// updated processes the outcome of Update with new arguments.
func (n *node) updated(g *instance, args any, sourced []string, err error) result {
	switch {
	case g.crashed: // meanwhile
		return n.build(args, nil)
	case errors.Is(err, component.ErrRebuild):
		return n.build(args, g)
	case err != nil:
		return n.fail(fmt.Errorf("cannot update: %w", err), true)
	}
	n.e.metrics.updates.Inc()
	before := g.args
	g.args = args
	n.change(func(s *state) { s.args, s.sourced = args, sourced })
	if g.gated() && !slices.Equal(config.Receivers(before), config.Receivers(args)) {
		// Calls that began earlier may still use the old arguments.
		n.drains = append(live(n.drains), n.recv.Set(g.c))
	}
	n.redirected(before, args)
	n.succeed()
	return updated
}

// update calls Update. follow processes the outcome; sourced are the files that the
// component reads after a success.
func (n *node) update(up component.Updater, g *instance, args any, follow func(sourced []string, err error) result) result {
	var sourced []string
	return n.call("update", nodeCall{version: g.reg.Version, args: args, g: g}, func() error {
		pprof.SetGoroutineLabels(g.ctx)
		op := n.watch.Begin("update", 0)
		err := guard(func() error { return up.Update(args) })
		if op.End(); err == nil {
			sourced = g.sourced()
		}
		return err
	}, func(err error) result { return follow(sourced, err) })
}

// redirected keeps receivers that the node no longer sends to for a while: it
// may still have data for them, and it ends its series there.
func (n *node) redirected(before, after any) {
	if !slices.Equal(config.Receivers(before), config.Receivers(after)) {
		n.drains = append(live(n.drains), n.e.lingerTimer())
	}
}

// maxUnreturned is the maximum number of instances of a node that were told to
// end and have not.
const maxUnreturned = 10

// unreturned returns the number of instances except the running one.
func (n *node) unreturned() (count int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for g := range n.instances {
		if g != n.current {
			count++
		}
	}
	return count
}

// build builds a new instance and replaces old, which may be nil.
func (n *node) build(args any, old *instance) result {
	if unreturned := n.unreturned() + n.givenUp; unreturned > maxUnreturned {
		return n.fail(fmt.Errorf("cannot build: %d earlier versions of this component have not stopped; each keeps its memory until it does", unreturned), true)
	}
	g := n.newInstance(n.want.reg, args)
	var previous component.Component
	if old != nil && !old.crashed && !old.stuck {
		previous = old.c
	}
	return n.call(component.StepBuild, nodeCall{version: g.reg.Version, args: args, g: g}, func() error { return g.build(previous) }, func(err error) result { return n.built(g, old, err) })
}

// built replaces old by an instance that was built.
func (n *node) built(g, old *instance, err error) result {
	if err != nil {
		if old != nil && !old.crashed && old.reg.Version != g.reg.Version {
			return n.fail(refuse(n, g.reg.Version, component.StepBuild, err), true)
		}
		return n.fail(fmt.Errorf("cannot build: %w", err), true)
	}
	if !n.swap(g) {
		return failed // the node was removed, or the engine ends
	}
	if old != nil && g.gated() { // a source's old component has ended
		n.redirected(old.args, g.args)
	}
	n.succeed()
	return rebuilt
}

// succeed records that the node runs as configured. If the registration is
// broken now, it runs the last good version.
func (n *node) succeed() {
	if n.want.err != nil {
		n.fail(n.want.err, false)
		return
	}
	n.cancelTry()
	if n.failed != nil {
		n.e.log.Info("node recovered", "component_id", n.id)
	}
	n.failed, n.unread = nil, false
	n.change(func(s *state) { s.wish = component.Health{State: component.Healthy, Time: n.e.clock.Now()} })
}

// fail leaves the node on its last good version. retry is set for errors that
// may disappear without a change that is watched.
func (n *node) fail(err error, retry bool) result {
	if n.failed == nil || n.failed.Error() != err.Error() {
		attrs := []any{"component_id", n.id, "err", err}
		msg, level := "cannot build the component", slog.LevelError
		if n.current != nil && !n.current.crashed {
			msg = "cannot build the new version, the last good one keeps running"
		}
		if r, ok := errors.AsType[*refusedError](err); ok {
			msg = "the new version was refused"
			n.e.metrics.refusals.WithLabelValues(r.step).Inc()
		}
		if p, ok := errors.AsType[*panicError](err); ok {
			attrs = append(attrs, "stack", string(p.stack)) // which is not announced
		} else if n.e.committing {
			level = n.e.announcedLevel(level)
		}
		n.e.log.Log(n.e.hard, level, msg, attrs...)
		n.change(func(s *state) {
			s.wish = component.Health{State: component.Unhealthy, Message: err.Error(), Time: n.e.clock.Now()}
		})
	}
	if n.failed == nil && n.current != nil && n.ranWell(n.current) {
		n.tries = 0
	}
	n.failed, n.unread = err, false
	n.cancelTry()
	if retry {
		n.tryAgain(func() { n.e.retry(n) })
	}
	return failed
}

// reread passes its arguments to the component again, because a file that it
// reads has changed.
func (n *node) reread() result {
	g := n.current
	switch {
	case n.calling != nil:
		n.filesChangedMeanwhile = true
		return inProgress
	case g.crashed:
		return untouched // it will be built again anyway
	case g.stuck:
		return n.build(g.args, g)
	case n.failed != nil && !n.unread && n.want.err == nil:
		return n.reconcile(n.want, nil, true) // that reads them too
	}
	up, ok := g.c.(component.Updater)
	if !ok {
		return n.build(g.args, g)
	}
	return n.update(up, g, g.args, func(sourced []string, err error) result { return n.rereadDone(g, sourced, err) })
}

// rereadDone processes the outcome of Update with the same arguments.
func (n *node) rereadDone(g *instance, sourced []string, err error) result {
	switch {
	case g.crashed: // meanwhile
		return untouched
	case errors.Is(err, component.ErrRebuild):
		return n.build(g.args, g)
	case err != nil:
		// If the file is unchanged when it can be read again, no change is reported.
		r := n.fail(fmt.Errorf("cannot read its files again: %w", err), errors.Is(err, files.ErrHung))
		n.unread = true
		return r
	}
	if n.failed != nil {
		n.succeed()
	}
	n.change(func(s *state) { s.sourced = sourced })
	return updated
}

// exported records a node's exports after a call of its component. If no
// component was ever built, only its receiver is exported. It reports whether
// the exports differ from those in the plan.
func (e *Engine) exported(n *node) (changed bool) {
	w := e.plan.wanted[n.id]
	if w != nil {
		changed = !equal(w.m.scope.Exports(w.block.ID), n.exports())
	}
	switch {
	case w == nil:
	case n.current == nil && n.waits != "":
		w.m.scope.SetWaiting(w.block.ID, n.exports(), n.waits)
	case n.current == nil:
		w.m.scope.SetProvisional(w.block.ID, n.exports())
	case n.state.Load().awaitsExports():
		w.m.scope.SetWaiting(w.block.ID, n.exports(), config.Pending(n.id))
	default:
		w.m.scope.Set(w.block.ID, n.exports())
	}
	return changed
}
