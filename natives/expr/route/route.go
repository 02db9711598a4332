// Package route is expr.route: it sends each sample and log line to the receivers
// of the first route whose expression is true, or to forward_to if no route
// matches.
//
// The signals that a block accepts follow from its expressions and its receivers.
// The parts of an expression that only read labels are evaluated once for each
// series or stream. If an expression fails on a sample or line, its route does
// not match, and the next one is evaluated. A staleness marker goes to all routes
// that samples of its series took since the previous marker. If the routes change
// and a series takes another route, it ends on its old route at the next batch of
// its source.
package route

import (
	"context"
	"slices"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/expr"
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
		Pure:    true,
		Build: func(o component.Options, args any, previous component.Component) (component.Component, error) {
			return newComponent(o, args.(*Arguments), previous)
		},
	}
}

// Component is the component of an expr.route node.
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

// Update applies new arguments. Cached results for series are kept unless the
// routes changed.
func (c *Component) Update(args any) error {
	a := args.(*Arguments)
	c.gen.Next(
		func(r *rules) bool { return r.same(a) },
		func() *rules { return newRules(a, c.mem.exits.Open(c.opts.Stats, a.receiversByRoute()...)) })
	c.mem.failures.Start(&c.opts)
	c.gen.Redirected()
	return nil
}

// Run removes unused cache entries until ctx ends.
func (c *Component) Run(ctx context.Context) error {
	return c.gen.Run(ctx, c.opts.Clock)
}

// Explain returns the route that the record takes. It drops the record if it has no
// receivers of the signal.
func (c *Component) Explain(_ context.Context, one flow.Batches) ([]component.Step, error) {
	r := c.gen.Load().Rules
	signal, judges := batch.SignalMetrics, r.samples.judges
	if len(one.Logs) > 0 {
		signal, judges = batch.SignalLogs, r.lines.judges
	}
	route := slices.IndexFunc(judges, func(j *clause.Judge) bool { return j.Of(one) == expr.True })
	s := component.Step{Kind: component.StepRoute, Name: "forward_to", Detail: "no route matches"}
	if route >= 0 {
		a := r.args.Routes[route]
		s = component.Step{Kind: component.StepRoute, Index: route + 1, Name: a.Name, Detail: "when = " + string(a.When)}
	} else {
		route = len(r.args.Routes)
	}
	if slices.ContainsFunc(r.exits, func(e flow.Exit) bool { return e.Sender.Takes(signal) && e.Ways&(1<<route) != 0 }) {
		s.After = one
	} else {
		s.Detail += "; no receivers of " + signal.String()
	}
	return []component.Step{s}, nil
}

// ConsumeMetrics sends the samples of b to their receivers concurrently: a
// receiver that blocks does not delay the other ones, and one that refuses is
// retried alone.
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

// ConsumeLogs sends the lines of b to their receivers, as ConsumeMetrics does.
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
