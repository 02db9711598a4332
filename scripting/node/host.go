package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/host"
)

// wait runs fn, which waits for external events, within the call's context,
// which ends when the sender of the batch gives up, and within limits.wait.
// Every Function that Waits uses it.
func (w *worker) wait(fn func(ctx context.Context) (scripting.Value, error)) (scripting.Value, error) {
	k := w.call
	w.pool.wait()
	defer w.pool.resume()
	limit := k.c.block.Limits.Wait
	w.op.Next("a wait of the script", limit+callGrace)
	defer func() { w.op.Next(callName, k.c.block.Limits.Time+callGrace) }()
	ctx, cancel := context.WithCancelCause(k.ctx)
	defer cancel(nil)
	alarm := clock.AfterFunc(k.c.opts.Clock, limit, func() { cancel(waitedTooLong(limit)) })
	defer alarm.Stop()
	v, err := fn(ctx)
	k.outside, k.OutsideFailed = true, k.OutsideFailed || err != nil
	return v, err
}

func (w *worker) sleep(ctx context.Context, d time.Duration) error {
	c := w.call.c
	s, ok := c.opts.Clock.(sleeper)
	if !ok {
		return clock.Sleep(ctx, c.opts.Clock, d)
	}
	if limit := c.block.Limits.Wait; d > limit {
		return errors.Join(s.Sleep(ctx, limit), waitedTooLong(limit))
	}
	return s.Sleep(ctx, d)
}

// errWaited means that a script exceeded limits.wait.
var errWaited = fmt.Errorf("%w: it waited longer", scripting.ErrTime)

func waitedTooLong(limit time.Duration) error {
	return fmt.Errorf("%w than %s, the limit is script.limits.wait", errWaited, limit)
}

// openWorld returns the external resources that c may access.
func (c *Component) openWorld() (*host.Access, error) {
	outside := c.script.Outside
	if c.shadows() {
		outside = c.mem.answers.record(outside)
	}
	return host.NewAccess(host.AccessOptions{
		Name: c.script.Name, Needs: c.script.Definition.Needs, Allow: &c.block.Allow, Client: c.block.Client(),
		Modules: c.script.Modules, Outside: outside, Outcomes: c.mem.metrics.outside, Recorder: &c.mem.recorder,
		UserAgent: c.opts.UserAgent, Storage: c.opts.StoragePath,
	})
}

// host returns the view of c for the functions of ctx on a worker.
func (c *Component) host(w *worker) *host.Binding {
	return &host.Binding{
		Call: func() *host.Call {
			if w.call == nil {
				return nil
			}
			return &w.call.Call
		},
		Wait:   w.wait,
		Sleep:  w.sleep,
		Export: c.export,
		Health: func(h component.Health) { c.health.set(aspectOwn, h) },
		Metric: func(kind host.MetricKind, name string, labels *scripting.Map, help string) (*host.Series, string, string) {
			return c.mem.metrics.own.Series(c.instance.number, kind, name, labels, help)
		},
	}
}

// sleeper is a clock on which a script does not wait, as in a test, which would
// have to advance the clock meanwhile.
type sleeper interface {
	Sleep(ctx context.Context, d time.Duration) error
}
