package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/engine/service"
)

// startTrials bounds the trials of all components at the start: no node runs
// before they have ended.
const startTrials = 10 * time.Second

// rejected is a version that failed its trial, and what runs in its place.
type rejected struct {
	*component.Rejection
	// unfit says why the config does not fit what would run in its place; nil:
	// it does, as far as is known.
	unfit error
	// running is set while the trial has no verdict yet; Rejection is nil.
	running bool
}

// choose returns a plan without mistakes in which versions that fail their
// trial are replaced by those that run, or that passed last.
func (e *Engine) choose(ctx context.Context, p *plan, mode planMode) *plan {
	if e.plan == nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, startTrials, fmt.Errorf("the tests of all components together took longer than %s", startTrials))
		defer cancel()
	}
	mode.rejected, mode.tried = e.trials(ctx, p), p
	if len(mode.rejected) == 0 {
		return p
	}
	for {
		q, ds := e.makePlan(p.cfg, mode)
		q.awaits = p.awaits
		if !mode.dismiss(q, ds) {
			return q
		}
	}
}

// before returns a component of the plan of the trials; nil without.
func (mode planMode) before(id string) *wanted {
	if mode.tried == nil || mode.tried.wanted[id] == nil || mode.tried.wanted[id].recv == nil {
		return nil
	}
	return mode.tried.wanted[id]
}

// dismiss marks the rejected versions whose replacement does not fit the config,
// and reports whether there were any.
func (mode planMode) dismiss(p *plan, ds config.Diagnostics) bool {
	found := false
	mark := func(id string, why error) {
		if r := mode.rejected[id]; r != nil && r.unfit == nil {
			r.unfit, found = why, true
		}
	}
	for id := range mode.rejected {
		if w := p.wanted[id]; w != nil && w.failed {
			mark(id, w.found.Err())
		}
	}
	if found || !ds.HasErrors() {
		return found
	}
	for _, w := range p.list {
		if w.found.HasErrors() {
			for _, id := range append([]string{w.id}, w.deps...) {
				mark(id, w.found.Err())
			}
		}
	}
	if !found {
		for id := range mode.rejected {
			mark(id, ds.Err())
		}
	}
	return found
}

// trial is the trial of a version for a node, while it runs and afterwards.
type trial struct {
	reg       component.Registration
	args      any
	block     *config.Block
	cancel    context.CancelFunc
	done      chan struct{}        // closed when rejection is set
	rejection *component.Rejection // nil: the version passed
	followed  bool                 // a plan was made with the verdict; the worker's own
	late      *pendingCall         // the worker did not wait for it; nil if it did; the worker's own
	steps     map[string]time.Duration
	canary    chan struct{} // closed when the step canary begins
}

// of reports whether the trial answers for what is wanted. A version that was refused is
// not tried again if only the values have changed to which its block refers.
func (t *trial) of(w *wanted) bool {
	if t.reg.Name != w.reg.Name || t.reg.Version != w.reg.Version {
		return false
	}
	refused := t.ended() && t.rejection != nil && t.block.SameText(w.block)
	return refused || equal(t.args, w.args)
}

func (t *trial) ended() bool {
	return isClosed(t.done)
}

// postponed reports whether the trial needs a running component: the last good version
// starts, and then the trial begins again.
func (t *trial) postponed() bool {
	return t.ended() && t.rejection != nil && t.rejection.Err == nil
}

// verdict returns what a plan has to know of a trial; nil if the version passed.
func (t *trial) verdict() *rejected {
	switch {
	case !t.ended():
		return &rejected{running: true}
	case t.rejection != nil:
		return &rejected{Rejection: t.rejection}
	}
	return nil
}

// trials begins the trials of the versions in a plan that have not been tried for
// their node, ends those of versions that are no longer wanted, and returns the
// versions that were rejected and those whose trial takes long, by node. Such a trial
// goes on outside the worker, and the files are applied again when it has a verdict.
// At the start, trials waits for all verdicts.
func (e *Engine) trials(ctx context.Context, p *plan) map[string]*rejected {
	current, begun := map[string]*trial{}, []*trial(nil)
	for _, w := range p.list {
		if w.kind != kindComponent || w.reg.Trial == nil || w.args == nil || w.failed || w.m.abstract {
			continue
		}
		t := e.tried[w.id]
		if t == nil || !t.of(w) || t.postponed() && e.runs(w.id) {
			t = e.beginTrial(ctx, w)
			begun = append(begun, t)
		}
		current[w.id] = t
	}
	for id, t := range e.tried {
		if current[id] != t {
			t.cancel()
		}
	}
	e.tried = current
	e.awaitTrials(begun)
	out := map[string]*rejected{}
	for id, t := range current {
		r := t.verdict()
		if n := e.nodes[id]; t.postponed() && n != nil && (n.current != nil || n.failed != nil) {
			r = nil // what ran has crashed, or the last good version does not start
		}
		switch ended := t.ended(); {
		case ended && !t.followed:
			e.change.tried(t.steps)
			if t.followed = true; t.late != nil {
				e.change.follow(t.late.changes)
			}
		case !ended && t.late != nil:
			t.late.changes = adopt(t.late.changes, e.change.waiting())
		}
		if r != nil {
			out[id] = r
		}
		if r != nil && !r.running && ctx.Err() != nil {
			delete(e.tried, id) // it may be why the trial ended
		}
	}
	return out
}

// beginTrial begins the trial of a version, which ends with ctx at the latest.
func (e *Engine) beginTrial(ctx context.Context, w *wanted) *trial {
	t := &trial{reg: w.reg, args: w.args, block: w.block, done: make(chan struct{}), steps: map[string]time.Duration{}, canary: make(chan struct{})}
	ctx, t.cancel = context.WithCancel(ctx)
	var now *service.Trial // the step that is in progress
	begin := func(step string) {
		was, at := now, e.clock.Now()
		if was != nil {
			t.steps[was.Step] += at.Sub(was.Since)
		}
		if now = nil; step != "" {
			now = &service.Trial{Version: w.reg.Version, Step: step, Since: at}
		}
		e.history.begin(w.id, was, now)
		if step == component.StepCanary && !isClosed(t.canary) {
			close(t.canary)
		}
	}
	c := component.Trial{Node: w.id, Args: w.args, Begin: begin}
	if e.runs(w.id) {
		c.Running = e.nodes[w.id].current.c
	}
	e.wg.Go(func() {
		defer close(t.done)
		defer t.cancel()
		defer begin("") // the last step has ended
		if err := guard(func() error { t.rejection = w.reg.Trial(ctx, c); return nil }); err != nil {
			t.rejection = &component.Rejection{Err: err}
		}
		if r := t.rejection; r != nil && r.Step == "" {
			r.Step = component.StepTest
		}
	})
	return t
}

// runs reports whether a node has a component that has not crashed.
func (e *Engine) runs(id string) bool {
	n := e.nodes[id]
	return n != nil && n.current != nil && !n.current.crashed
}

// tryPostponed has the worker begin the trial of a node again if it was postponed until the
// node runs.
func (e *Engine) tryPostponed(id string) {
	t := e.tried[id]
	if t == nil || !t.postponed() {
		return
	}
	waiting := e.change.waiting()
	e.box.post(func() {
		e.change = following(waiting)
		_ = e.applyFiles(time.Now()) // which reports its errors
	})
}

// awaitTrials waits until trials have ended. Once weir runs, it waits for a moment
// only: the worker follows the verdicts that come later.
func (e *Engine) awaitTrials(begun []*trial) {
	defer func(start time.Time) { e.change.waited += time.Since(start) }(time.Now())
	var patience <-chan time.Time
	if e.plan != nil {
		timer := time.NewTimer(max(callPatience>>min(len(e.pending), 16), minCallPatience))
		defer timer.Stop()
		patience = timer.C
	}
	for i, t := range begun {
		select {
		case <-t.done:
		case <-t.canary:
			if !t.ended() {
				e.followLater(t)
			}
		case <-patience:
			for _, t := range begun[i:] {
				e.followLater(t)
			}
			return
		}
	}
}

// followLater has the worker apply the files again when a trial has ended.
func (e *Engine) followLater(t *trial) {
	p := e.newPendingCall()
	p.canary = t.canary
	e.pending[p], t.late, e.change.began = true, p, true
	e.wg.Go(func() {
		select {
		case <-t.done:
		case <-e.box.closed: // weir stops
			t.cancel()
			<-t.done
		}
		e.box.post(func() {
			defer close(p.done)
			delete(e.pending, p)
			if !t.followed {
				e.change = newChange(p.changes[0].trigger.Kind, p.changes[0].trigger.Files)
				_ = e.applyFiles(time.Now()) // which reports its errors
			}
		})
	})
}

// replace puts in the place of a rejected version what runs instead.
func (r *rejected) replace(w *wanted, running *node) {
	var gen *instance
	if running != nil {
		gen = running.current
	}
	if r.running {
		if gen != nil && r.unfit == nil {
			w.reg = gen.reg
		} else {
			w.waits = config.Pending("the tests of " + w.reg.Name)
		}
		return
	}
	if r.Err == nil {
		if r.unfit == nil {
			w.reg = *r.LastGood
		}
		return
	}
	err := newRefused(running, w.reg.Version, r.Step, r.Err)
	w.err = err
	switch {
	case gen != nil && gen.reg.Version == w.reg.Version:
		before, ok := errors.AsType[*refusedError](running.failed)
		switch {
		case ok && before.version == err.version && before.step == err.step:
			err.note = before.note
		case r.LastGood == nil:
			err.note = ", because no version has passed"
		}
	case gen != nil && r.unfit != nil:
		err.note = " with its old arguments"
		w.err, w.mistake = nil, err
	case gen != nil:
		w.reg = gen.reg
	case r.LastGood != nil && r.unfit == nil:
		err.running = r.LastGood.Version
		w.reg = *r.LastGood
	case r.LastGood != nil:
		err.running = w.reg.Version
		err.note = fmt.Sprintf(", because version %s, the last good one, does not fit the config (%s)",
			component.ShortVersion(r.LastGood.Version), oneLine(r.unfit))
	default:
		err.running = w.reg.Version
		err.note = ", because no version has passed"
	}
}

// oneLine is an error without the source it is about.
func oneLine(err error) string {
	if ds, ok := errors.AsType[config.Diagnostics](err); ok && len(ds) > 0 {
		d := ds[0]
		d.Detail, d.Hint = "", ""
		return d.Error()
	}
	return err.Error()
}
