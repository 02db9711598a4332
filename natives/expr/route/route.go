// Package route is expr.route: it sends each sample and log line to the receivers of the
// first route whose expression is true, or to forward_to if no route matches.
//
// What a block takes follows from its expressions and from what its receivers
// take. The parts of an expression that read labels only are evaluated once for
// each series or stream. A sample or line on which an expression fails does not go
// that way, and the next is asked. A staleness marker goes wherever samples of its
// series went since the one before. Series that go another way after a change of
// the routes end where they went before, at their source's next batch.
package route

import (
	"context"
	"slices"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/ruleset"
	"github.com/weir-run/weir/natives/expr/internal/clause"
)

// Registration describes expr.route.
func Registration() component.Registration {
	return component.Registration{
		Name:    "expr.route",
		Accepts: batch.SignalMetrics | batch.SignalLogs,
		Sends:   batch.SignalMetrics | batch.SignalLogs,
		Passes:  passes,
		NewArgs: func() any { a := new(Arguments); a.SetToDefault(); return a },
		Exports: Exports{},
		Build: func(o component.Options, args any, previous component.Component) (component.Component, error) {
			return newComponent(o, args.(*Arguments), previous)
		},
	}
}

// Component is one expr.route.
type Component struct {
	opts component.Options
	mem  *memory
	gen  *ruleset.Current[*rules]
}

var (
	_ component.Component  = (*Component)(nil)
	_ component.Updater    = (*Component)(nil)
	_ flow.MetricsConsumer = (*Component)(nil)
	_ flow.LogsConsumer    = (*Component)(nil)
)

// memory is what a node's components hand down.
type memory struct {
	exits    *flow.Exits
	node     *ruleset.Node[*rules]
	failures *clause.Failures
}

func newComponent(o component.Options, a *Arguments, previous component.Component) (*Component, error) {
	c := &Component{opts: o}
	if p, ok := previous.(*Component); ok {
		c.mem = p.mem
	} else {
		e := flow.NewExits()
		c.mem = &memory{exits: e, node: ruleset.NewNode[*rules](e), failures: clause.NewFailures("when")}
	}
	c.gen = c.mem.node.Follow()
	if err := c.mem.failures.Register(o.Registerer); err != nil {
		return nil, err
	}
	return c, c.Update(a)
}

// Update takes new arguments. What was remembered about series stays unless
// the routes changed.
func (c *Component) Update(args any) error {
	a := args.(*Arguments)
	c.gen.Next(
		func(r *rules) bool { return r.same(a) },
		func() *rules { return newRules(a, c.mem.exits.Open(c.opts.Stats, a.receiversByRoute()...)) })
	c.mem.failures.Start(&c.opts)
	c.gen.Redirected()
	return nil
}

// Run sweeps until ctx ends.
func (c *Component) Run(ctx context.Context) error {
	return c.gen.Run(ctx, c.opts.Clock)
}

// ConsumeMetrics sends the samples of b on their ways, side by side: a way that
// blocks delays no other, and one that refuses is retried alone.
func (c *Component) ConsumeMetrics(ctx context.Context, b *batch.Metrics) error {
	if b.Len() == 0 {
		return nil
	}
	gen := c.gen.Load()
	var failed clause.Batch
	parts, dropped := gen.Rules.apply(b, &failed)
	c.mem.failures.Done(&c.opts, b.Source, &failed)
	c.opts.Stats.Drop("no_receiver", dropped)
	return flow.SendParts(ctx, gen.Number, c.mem.exits.WithClosed(parts, b), slices.Max(b.T))
}

// ConsumeLogs sends the lines of b on their ways, as ConsumeMetrics does.
func (c *Component) ConsumeLogs(ctx context.Context, b *batch.Logs) error {
	if b.Len() == 0 {
		return nil
	}
	gen := c.gen.Load()
	var failed clause.Batch
	parts, dropped := gen.Rules.applyLogs(b, &failed)
	c.mem.failures.Done(&c.opts, b.Source, &failed)
	c.opts.Stats.DropLines("no_receiver", dropped)
	return flow.SendParts(ctx, gen.Number, parts, 0)
}
