package node

import (
	"context"
	"errors"
	"time"

	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/scripting"
)

// The back-off of a failing setup.
const (
	minSetupBackoff = time.Second
	maxSetupBackoff = time.Minute
)

// open admits batches after the steps that must come first: if only one call at
// a time is allowed, the calls of the previous instance end; state on disk is
// loaded; setup succeeds. It returns false if another component took over or
// ctx ended before.
func (c *Component) open(ctx context.Context, before *Component) bool {
	if before != nil && before.instance.number > c.instance.number {
		return false // it has taken over already
	}
	if before != nil && c.block.Concurrency.Exclusive() {
		select {
		case <-before.admission.close():
		case <-ctx.Done():
			return false
		}
	}
	if !c.openState(ctx) || c.script.Definition.Setup && !c.setUp(ctx) {
		return false
	}
	c.admission.open()
	c.progress.update(func() { c.progress.opened = true })
	return true
}

// alone waits until the jobs of the previous instance have ended, if it belongs
// to a source. That instance may still answer requests. It returns false if ctx
// ended before.
func (c *Component) alone(ctx context.Context, before *Component) bool {
	if before == nil || c.script.Definition.Kind != scripting.Source {
		return true
	}
	select {
	case <-before.idle:
		return true
	case <-ctx.Done():
		return false
	}
}

// setUp runs setup until it succeeds.
func (c *Component) setUp(ctx context.Context) bool {
	for backoff := minSetupBackoff; ; backoff = min(2*backoff, maxSetupBackoff) {
		err := c.runHook(ctx, &scripting.Hook{Name: "setup"})
		if ctx.Err() != nil {
			return false
		}
		h := component.Health{State: component.Healthy, Time: c.opts.Clock.Now()}
		if err == nil {
			c.health.set(aspectSetup, h)
			return true
		}
		c.progress.update(func() { c.progress.failed = err })
		h.State, h.Message = component.Unhealthy, err.Error()+"\nno batch is let in until setup works; it is tried again"
		c.health.set(aspectSetup, h)
		if clock.Sleep(ctx, c.opts.Clock, backoff) != nil {
			return false
		}
	}
}

// tearDown runs teardown after the last call. ctx is Run's and has ended.
// Waiting in teardown is limited to script.limits.wait from now on.
func (c *Component) tearDown(ctx context.Context) {
	<-c.admission.close() // the duration of calls is limited
	ctx, stop := c.graceful(ctx)
	defer stop()
	_ = c.runHook(ctx, &scripting.Hook{Name: "teardown"}) // it is in the log
}

// runHook runs a hook that does not get a batch on a VM of the pool.
func (c *Component) runHook(ctx context.Context, h *scripting.Hook) error {
	w, err := c.borrow(ctx, c.pools.shared)
	if err != nil {
		return err
	}
	defer c.pools.put(w)
	_, err = c.newCall(ctx, w, c.newTerms(ctx)).hook(h)
	return err
}

// hook runs a hook that does not get a batch. Emitted records are in the
// worker's window, if there is one; the caller must no longer use that window.
func (k *call) hook(h *scripting.Hook) (out scripting.Value, err error) {
	c, w := k.c, k.w
	started := time.Now()
	k.Setup = h.Name == "setup"
	defer func() {
		if v := recover(); v != nil {
			w.vm = brokenVM{w.vm}
			e := &scripting.Error{File: c.script.File.Name, Hook: h.Name, Err: panicError(v)}
			k.reportError(e)
			err = e
		}
		if k.run != nil {
			started = k.run.went
		}
		k.done()
		c.mem.metrics.seconds.Add(time.Since(started).Seconds())
	}()
	c.mem.metrics.calls.WithLabelValues(h.Name).Inc()
	limits := k.limits(0)
	if h.Name == scripting.HookMigrate {
		limits.Time = migrateTime
	}
	w.vm.Begin(limits)
	out, err = w.vm.Run(h)
	if err != nil {
		e := scripting.AsError(err)
		if k.run == nil || !errors.Is(err, errStops) { // a run that does not catch this error ends normally
			k.reportError(e)
		}
		err = e
	}
	if e := w.vm.End(); e != nil {
		k.reportError(scripting.AsError(e))
	}
	c.state.flush()
	return out, err
}

// graceful returns a context that ends script.limits.wait after ctx, so that a
// script can finish its work.
func (c *Component) graceful(ctx context.Context) (context.Context, context.CancelFunc) {
	out, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	alarms := make(chan *clock.Alarm, 1)
	stop := context.AfterFunc(ctx, func() {
		alarms <- clock.AfterFunc(c.opts.Clock, c.block.Limits.Wait, func() { cancel(context.Cause(ctx)) })
	})
	return out, func() {
		if !stop() {
			(<-alarms).Stop()
		}
		cancel(nil)
	}
}
