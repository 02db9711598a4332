// Package set is expr.set: it sets the name, the value and labels of samples, and
// the text, labels and structured metadata of log lines, to the results of
// expressions.
//
// The signals that a block accepts follow from the fields that it sets and reads,
// and from its receivers. Names and labels whose expressions only read labels are
// computed once for each series or stream. If an expression fails on a sample or
// line, it is forwarded unchanged. If the expressions change, series that only
// the old ones created end at the next batch of their source. A staleness marker
// ends the series to which the last sample of its source was changed.
package set

import (
	"context"
	"fmt"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/ruleset"
	"github.com/weir-run/weir/natives/expr/internal/clause"
)

// Registration describes expr.set.
func Registration() component.Registration {
	return component.Registration{
		Name:    "expr.set",
		Accepts: batch.SignalMetrics | batch.SignalLogs,
		Sends:   batch.SignalMetrics | batch.SignalLogs,
		Passes:  passes,
		NewArgs: func() any { a := new(Arguments); a.SetToDefault(); return a },
		Exports: Exports{},
		Pure:    true,
		Build: func(o component.Options, args any, previous component.Component) (component.Component, error) {
			return newComponent(o, args.(*Arguments), previous)
		},
	}
}

// Component is the component of an expr.set node.
type Component struct {
	opts component.Options
	mem  *memory
	gen  *ruleset.Current[*rules]
}

var (
	_ component.Component  = (*Component)(nil)
	_ component.Updater    = (*Component)(nil)
	_ component.Explainer  = (*Component)(nil)
	_ flow.MetricsConsumer = (*Component)(nil)
	_ flow.LogsConsumer    = (*Component)(nil)
)

// memory is the state that the components of a node pass on.
type memory struct {
	sender     *flow.Sender
	node       *ruleset.Node[*rules]
	failures   *clause.Failures
	collisions prometheus.Counter
}

func newComponent(o component.Options, a *Arguments, previous component.Component) (*Component, error) {
	c := &Component{opts: o}
	if p, ok := previous.(*Component); ok {
		c.mem = p.mem
	} else {
		s := flow.NewSender()
		c.mem = &memory{
			sender: s, node: ruleset.NewNode[*rules](s), failures: clause.NewFailures("name", "value", "label", "line", "meta"),
			collisions: prometheus.NewCounter(prometheus.CounterOpts{
				Name: "weir_expr_samples_collided_total",
				Help: "Samples that left with the labels and the timestamp of another sample of their batch.",
			}),
		}
	}
	c.gen = c.mem.node.Follow()
	if err := c.mem.failures.Register(o.Registerer); err != nil {
		return nil, err
	}
	if err := component.Register(o.Registerer, c.mem.collisions); err != nil {
		return nil, fmt.Errorf("cannot register the metrics: %w", err)
	}
	return c, c.Update(a)
}

// Update applies new arguments. Derived series are kept unless an expression
// changed.
func (c *Component) Update(args any) error {
	a := args.(*Arguments)
	c.gen.Next(
		func(r *rules) bool { return r.args.same(a) },
		func() *rules { return newRules(a) })
	c.mem.failures.Start(&c.opts)
	c.mem.sender.To(flow.NewOutput(c.opts.Stats, a.ForwardTo))
	c.gen.Redirected()
	return nil
}

// Run removes unused cache entries until ctx ends.
func (c *Component) Run(ctx context.Context) error {
	return c.gen.Run(ctx, c.opts.Clock)
}

// ConsumeMetrics applies the expressions to b and sends the result.
func (c *Component) ConsumeMetrics(ctx context.Context, b *batch.Metrics) error {
	if b.Len() == 0 {
		return nil
	}
	gen := c.gen.Load()
	var failed clause.Batch
	res := gen.Rules.apply(b, c.opts.Clock.Now(), &failed)
	c.mem.failures.Done(&c.opts, b.Source, &failed)
	c.mem.collisions.Add(float64(res.Collisions))
	return c.mem.sender.Send(ctx, gen.Number, res.Batch, slices.Max(b.T))
}

// ConsumeLogs applies the expressions to b and sends the result.
func (c *Component) ConsumeLogs(ctx context.Context, b *batch.Logs) error {
	if b.Len() == 0 {
		return nil
	}
	var failed clause.Batch
	out := c.gen.Load().Rules.applyLogs(b, c.opts.Clock.Now(), &failed)
	c.mem.failures.Done(&c.opts, b.Source, &failed)
	return c.mem.sender.SendLogs(ctx, out)
}
