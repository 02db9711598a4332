// Package relabel is prometheus.relabel: it changes and drops series by their
// labels and forwards their samples.
//
// The rules only read labels, so the result is cached for each series and costs
// one look-up per sample. A change of the rules takes effect for a series with
// the next batch of its source. Series that only the old rules created get a
// staleness marker in that batch. The metadata is always that of the original
// series, whatever name the rules set.
package relabel

import (
	"context"
	"slices"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/rule"
	"github.com/weir-run/weir/engine/ruleset"
)

// Registration describes prometheus.relabel.
func Registration() component.Registration {
	return component.Registration{
		Name:    "prometheus.relabel",
		Accepts: batch.SignalMetrics,
		Sends:   batch.SignalMetrics,
		NewArgs: func() any { a := new(Arguments); a.SetToDefault(); return a },
		Exports: Exports{},
		Pure:    true,
		Build: func(o component.Options, args any, previous component.Component) (component.Component, error) {
			c := &Component{ruleset.NewWorker[*rule.Relabeler](o, previous)}
			return c, c.Update(args)
		},
	}
}

// Component is the component of a prometheus.relabel node.
type Component struct {
	*ruleset.Worker[*rule.Relabeler]
}

var (
	_ component.Component  = (*Component)(nil)
	_ component.Updater    = (*Component)(nil)
	_ component.Explainer  = (*Component)(nil)
	_ flow.MetricsConsumer = (*Component)(nil)
)

// Update applies new arguments. Results for series are kept unless
// the rules changed.
func (c *Component) Update(args any) error {
	a := args.(*Arguments)
	c.Set(a.ForwardTo,
		func(r *rule.Relabeler) bool { return r.Is(a.Rules) },
		func() *rule.Relabeler { return rule.NewRelabeler(a.Rules) })
	c.Export(Exports{Rules: rule.Rules(slices.Clone(a.Rules))})
	return nil
}

// ConsumeMetrics applies the rules to b and sends the remaining samples.
func (c *Component) ConsumeMetrics(ctx context.Context, b *batch.Metrics) error {
	if b.Len() == 0 {
		return nil
	}
	gen := c.Load()
	relabelled, dropped := gen.Rules.Apply(b)
	c.Stats.Drop("relabel", dropped)
	return c.Sender.Send(ctx, gen.Number, relabelled, slices.Max(b.T))
}

// Explain returns the rules that change or drop a record.
func (c *Component) Explain(_ context.Context, one flow.Batches) ([]component.Step, error) {
	return c.Load().Rules.Explain(one), nil
}
