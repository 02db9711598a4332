package node

import (
	"context"

	"github.com/weir-run/weir/engine/batch"
)

// kind is the part of an instance that depends on the kind of its component: a
// transform, a source or a sink.
type kind interface {
	// accept returns nil once a batch is accepted.
	accept(ctx context.Context, b payload) error
	// begin is called when Run begins; end is called before Run returns.
	begin(ctx context.Context) (end func())
	// work runs the instance's own activities from when it is open until life
	// ends: when another instance takes over, or when Run's context, run, ends.
	work(life, run context.Context)
	// finish is called when work has returned. run has ended.
	finish(run context.Context)
}

// transform is a component that receives data, processes it and sends it on.
type transform struct {
	c       *Component
	metrics pipeline[*batch.Metrics]
	logs    pipeline[*batch.Logs]
}

func newTransform(c *Component) *transform {
	return &transform{c, pipeline[*batch.Metrics]{c, metricsSignal{}}, pipeline[*batch.Logs]{c, logsSignal{}}}
}

// accept passes a batch through the pipeline of its signal.
func (t *transform) accept(ctx context.Context, b payload) error {
	if b.Logs != nil {
		return t.logs.consume(ctx, b.Logs)
	}
	return t.metrics.consume(ctx, b.Metrics)
}

// process returns the result of the hooks for a batch.
func (t *transform) process(ctx context.Context, b payload, on terms) (outcome, error) {
	if b.Logs != nil {
		return t.logs.process(ctx, b.Logs, on)
	}
	return t.metrics.process(ctx, b.Metrics, on)
}

func (t *transform) begin(context.Context) (end func()) { return func() {} }

func (t *transform) work(life, run context.Context) { t.c.timers.run(life, run) }

func (t *transform) finish(context.Context) {}
