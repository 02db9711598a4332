package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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

// node is a component block of the running graph. It lives as long as its
// block is in the config; what runs behind its gate are its instances.
type node struct {
	e     *Engine
	id    string
	stats *flow.Stats
	recv  *flow.Receiver
	watch *stall.Watch
	state atomic.Pointer[state]  // what others see; written under mu
	shown atomic.Pointer[wanted] // want, for other goroutines; written by the worker

	// The worker's own.
	want    *wanted
	current *instance          // the one behind the gate; nil before the first good one
	failed  error              // why what is wanted does not run; nil when it does
	waits   config.Pending     // what is to come before it can be built; "" when nothing is
	unread  bool               // failed is that its files could not be read again
	drains  []<-chan struct{}  // closed when calls that began before a change are done
	again   context.CancelFunc // ends the timer of the next try; nil without
	tries   int                // failed tries in a row
	parting *parting           // while it is out of the graph and can be called back
	// calling is a build or an update that has not returned, and that the worker does
	// not wait for; nil for none. Changes that come meanwhile are made when it has
	// returned, or is given up.
	calling               *nodeCall
	givenUp               int  // calls that were given up and have not returned
	changedMeanwhile      bool // want did, or another try is due
	filesChangedMeanwhile bool // files that the component reads did

	abandoned bool // watchStalls's: it was removed and does not stop, which is in the log

	mu        sync.Mutex
	visible   *instance         // current, as components see it
	instances map[*instance]int // all that have not returned, by age
	age       int
	removed   bool
	stopped   chan struct{} // closed when everything of it has returned
}

// state is an immutable view of a node.
type state struct {
	reg       component.Registration // what runs, or is wanted when nothing does
	args      any
	exports   any
	exported  bool // by a component; not the zero value of the registration
	component component.Component
	builds    uint64
	restarts  uint64
	sourced   []string

	wish component.Health // whether what is wanted could be built
	run  component.Health // how Run does
	// own is what the component says, once for each reason. It is not written to.
	own []component.Health
	// stalled is the oldest operation that has not returned in time.
	stalled component.Health
	// queue says that its queue does not drain.
	queue component.Health

	health    component.Health // of all of them, since its state began
	lastError component.Health // the last that was worse than healthy, when it was last reported
	// problems are why the node is unhealthy, each since it began.
	problems []component.Health
}

// awaitsExports reports whether what is exported is still to come.
func (s *state) awaitsExports() bool { return s.reg.ExportsLater && !s.exported }

// parts are what the health consists of. Among equals, the component's own words
// tell more than that it runs.
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

// decide makes one health of the parts.
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

// replaceReport returns what a component says, with a report in the place of the last one
// for the same reason.
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

// change makes a new state. It must not call a component.
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

// result is what reconcile did.
type result uint8

const (
	untouched result = iota
	updated
	rebuilt
	failed
	inProgress // the outcome comes later
)

// reconcile makes the node what w wants, if it is not. The worker calls it
// when everything that w depends on has been reconciled.
//
// args are the decoded arguments, nil when nobody has decoded them yet.
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

// evaluate decodes the arguments with what the others export now.
func (n *node) evaluate() (any, error) {
	n.e.metrics.evaluations.Inc()
	args, scope := n.want.newArgs(), n.want.values()
	if ds := n.want.block.Decode(scope, args); ds.HasErrors() {
		return nil, ds.Err()
	}
	return args, n.want.block.Unready(scope)
}

// wait leaves the node as it is until something that it refers to is there.
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

// apply makes the arguments those of the running component.
func (n *node) apply(args any, retry bool) result {
	g := n.current
	same := g != nil && !g.stuck && g.reg.Version == n.want.reg.Version && equal(g.args, args)
	if !same && !retry {
		n.tries = 0 // it is another attempt
	}
	if g == nil || g.stuck || g.reg.Version != n.want.reg.Version {
		return n.build(args, g)
	}
	switch {
	case g.crashed && (retry || !same):
		return n.build(args, nil)
	case same && n.unread && !g.crashed:
		return n.reread()
	case same && n.failed != nil && !g.crashed:
		n.succeed() // back to what still runs
		return untouched
	case same:
		return untouched
	}
	up, ok := g.c.(component.Updater)
	if !ok {
		return n.build(args, g)
	}
	return n.update(up, g, args, func(err error) result { return n.updated(g, args, err) })
}

// updated takes over the outcome of Update with new arguments.
func (n *node) updated(g *instance, args any, err error) result {
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
	sourced := g.sourced()
	n.change(func(s *state) { s.args, s.sourced = args, sourced })
	if g.gated() && !slices.Equal(config.Receivers(before), config.Receivers(args)) {
		// Calls that began before may still go where the old arguments said.
		n.drains = append(live(n.drains), n.recv.Set(g.c))
	}
	n.redirected(before, args)
	n.succeed()
	return updated
}

// update calls Update. follow takes over the outcome.
func (n *node) update(up component.Updater, g *instance, args any, follow func(error) result) result {
	return n.call("update", nodeCall{version: g.reg.Version, args: args, g: g}, func() error {
		op := n.watch.Begin("update", 0)
		defer op.End()
		return guard(func() error { return up.Update(args) })
	}, follow)
}

// redirected keeps receivers that the node does not send to any more for a
// while: it may have something in its hands for them, and it ends its series
// there.
func (n *node) redirected(before, after any) {
	if !slices.Equal(config.Receivers(before), config.Receivers(after)) {
		n.drains = append(live(n.drains), n.e.lingerTimer())
	}
}

// maxUnreturned bounds the versions of a node that were told to end and have not.
const maxUnreturned = 10

// unreturned returns how many instances there are besides the one that runs.
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

// build makes a new instance and puts it in the place of old, which may be
// nil.
func (n *node) build(args any, old *instance) result {
	if unreturned := n.unreturned() + n.givenUp; unreturned > maxUnreturned {
		return n.fail(fmt.Errorf("cannot build: %d earlier versions of this component have not stopped; each keeps its memory until it does", unreturned), true)
	}
	g := n.newInstance(n.want.reg, args)
	var previous component.Component
	if old != nil && !old.crashed && !old.stuck {
		previous = old.c
	}
	return n.call("build", nodeCall{version: g.reg.Version, args: args, g: g}, func() error { return g.build(previous) }, func(err error) result { return n.built(g, old, err) })
}

// built puts an instance that was built in the place of old.
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

// succeed notes that the node does what the config says. With a registration
// that is broken now, that is the last good version.
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

// fail leaves the node on its last good version. retry is for errors that may
// go away without anything we watch changing.
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

// reread gives the component its arguments again, because a file it reads has
// changed.
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
	return n.update(up, g, g.args, func(err error) result { return n.rereadDone(g, err) })
}

// rereadDone takes over the outcome of Update with the same arguments.
func (n *node) rereadDone(g *instance, err error) result {
	switch {
	case g.crashed: // meanwhile
		return untouched
	case errors.Is(err, component.ErrRebuild):
		return n.build(g.args, g)
	case err != nil:
		// Of a file that can be read again, nobody tells us if it has not changed since.
		r := n.fail(fmt.Errorf("cannot read its files again: %w", err), errors.Is(err, files.ErrHung))
		n.unread = true
		return r
	}
	if n.failed != nil {
		n.succeed()
	}
	sourced := g.sourced()
	n.change(func(s *state) { s.sourced = sourced })
	return updated
}

// exported takes note of a node's exports after a call of its component. Those
// of one that never was built are only what its receiver is. It reports whether
// they are others than the plan knew.
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
