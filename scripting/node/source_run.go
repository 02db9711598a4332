package node

import (
	"context"
	"errors"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/scripting"
)

// hookRun is the hook of a source that runs continuously.
const hookRun = "run"

// The back-off of a failing run.
const (
	minRunBackoff = time.Second
	maxRunBackoff = time.Minute
)

// errStops is the error of a wait in run when the component stops.
var errStops = errors.New("the component stops")

// going contains the data of the hook run that the instances of a source pass
// on.
type going struct {
	source uint64
	box    mailbox
}

// newGoing creates a push Source: series that are missing from a batch of run
// have not ended.
func newGoing() *going { return &going{source: batch.NewPushSource()} }

// runner is one call of the hook run.
type runner struct {
	c       *Component
	k       *call // its ctx ends when the component stops
	hook    *scripting.Hook
	resumed func()      // called when the hook continues
	kept    []*emission // emissions that could not be sent before ctx ended, in order
	went    time.Time   // since when it has not waited
}

// runUntilEnd calls run, and again after an error, until life ends or it
// returns nil.
func (s *source) runUntilEnd(life, run context.Context) {
	c := s.c
	idle := func(until time.Time) {
		c.progress.update(func() { c.progress.next[hookRun] = until })
	}
	for backoff := minRunBackoff; ; backoff = min(2*backoff, maxRunBackoff) {
		began := c.opts.Clock.Now()
		err := s.runOnce(life, run, began.Add(backoff))
		if life.Err() != nil {
			return
		}
		now := c.opts.Clock.Now()
		if err == nil {
			c.report.done(c.mem.going.source, nil)
			if len(c.timers.beats) == 0 && s.routes == nil {
				c.health.set(aspectErrors, component.Health{State: component.Exited, Message: "run has returned", Time: now})
			}
			idle(now.Add(scripting.MaxEvery))
			return
		}
		if now.Sub(began) > maxRunBackoff {
			backoff = minRunBackoff
		}
		idle(now.Add(backoff))
		if clock.Sleep(life, c.opts.Clock, backoff) != nil {
			return
		}
	}
}

// runOnce calls run and sends the emitted records. The hook is healthy if it
// still runs after the time well.
func (s *source) runOnce(life, run context.Context, well time.Time) error {
	c := s.c
	source := c.mem.going.source
	w, err := c.borrow(life, s.runs)
	if err != nil {
		if e, ok := errors.AsType[*scripting.Error](err); ok {
			c.report.failing(source, e, scripting.MaxEvery)
		}
		return err
	}
	defer c.pools.put(w)
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(life))
	defer context.AfterFunc(life, func() { cancel(errStops) })()
	r := &runner{c: c, k: c.newCall(ctx, w, c.newTerms(ctx)), hook: &scripting.Hook{Name: hookRun}, went: time.Now()}
	r.resumed = func() {
		if c.opts.Clock.Now().After(well) {
			c.report.done(source, nil)
		}
	}
	r.k.run, r.k.Sleep = r, r.sleep
	r.k.Flush = func() error { return context.Cause(r.k.ctx) }
	r.k.openEmitted(r.hook, source)
	_, err = r.k.hook(r.hook)
	if err != nil && life.Err() == nil {
		c.report.failing(source, r.k.first, scripting.MaxEvery)
	}
	// Records that were emitted before an error are kept, because some may already
	// have been sent.
	r.takeEmitted()
	for _, p := range r.kept {
		c.post(run, &c.mem.going.box, p)
	}
	return err
}

// takeEmitted creates an emission from the records emitted since the last call.
func (r *runner) takeEmitted() {
	out, found := r.k.emitted(true)
	if found {
		r.kept = append(r.kept, &emission{c: r.c, instance: r.c.rules, out: out, t: r.k.Now.UnixMilli()})
	}
}

// pause implements Call.Pause: it sends the emitted records, and waits until
// they are accepted.
func (r *runner) pause() error {
	r.c.mem.metrics.seconds.Add(time.Since(r.went).Seconds())
	r.k.w.op.End()
	r.takeEmitted()
	r.k.openEmitted(r.hook, r.c.mem.going.source)
	for len(r.kept) > 0 {
		if r.c.deliver(r.k.ctx, r.kept[0]) != nil {
			break // it stops: the rest is sent when run has returned
		}
		r.kept = r.kept[1:]
	}
	return context.Cause(r.k.ctx)
}

// resume implements Call.Resume. After the component stops, the limits no
// longer restart: otherwise, a run that does not return would continue forever.
func (r *runner) resume() bool {
	r.went = time.Now()
	r.k.w.begin(r.c)
	if r.k.ctx.Err() != nil {
		return false
	}
	r.k.Now = r.c.opts.Clock.Now()
	r.k.w.limits.Now = r.k.Now
	r.resumed()
	return true
}

// sleep waits for any duration. It publishes its end for tests that wait until
// all due work is done.
func (r *runner) sleep(d time.Duration) error {
	c := r.c
	show := func(at time.Time) { c.progress.update(func() { c.progress.next[hookRun] = at }) }
	wake := c.opts.Clock.Now().Add(d)
	t := c.opts.Clock.NewTimer(d)
	defer t.Stop()
	show(wake) // after the timer was created: the clock may advance now
	select {
	case <-t.C():
		show(wake) // which is not after now: it works
		return nil
	case <-r.k.ctx.Done():
		return context.Cause(r.k.ctx)
	}
}
