// Package enrich is prometheus.enrich: it copies labels of targets to the
// series that match them, such as a host's owner from an inventory.
//
// What matches is decided once for each series, and again when the targets
// change: series whose own target stays are not touched, and those that then
// have other labels end under the old ones at their source's next batch. Series
// that match no target pass as they are.
package enrich

import (
	"context"
	"slices"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/inventory"
	"github.com/weir-run/weir/engine/ruleset"
)

// Registration describes prometheus.enrich.
func Registration() component.Registration {
	return component.Registration{
		Name:    "prometheus.enrich",
		Accepts: batch.SignalMetrics,
		Sends:   batch.SignalMetrics,
		NewArgs: func() any { a := new(Arguments); a.SetToDefault(); return a },
		Exports: Exports{},
		Build: func(o component.Options, args any, previous component.Component) (component.Component, error) {
			c := &Component{ruleset.NewWorker[*inventory.Rules](o, previous)}
			return c, c.Update(args)
		},
	}
}

// Component is one prometheus.enrich.
type Component struct {
	*ruleset.Worker[*inventory.Rules]
}

var (
	_ component.Component  = (*Component)(nil)
	_ component.Updater    = (*Component)(nil)
	_ component.Debugger   = (*Component)(nil)
	_ flow.MetricsConsumer = (*Component)(nil)
)

// Update takes new arguments. What was made of series stays unless targets or
// what they are matched by changed.
func (c *Component) Update(args any) error {
	a := args.(*Arguments)
	spec := inventory.Spec{Targets: a.Targets, Match: a.match(), Copy: a.LabelsToCopy}
	var before *inventory.Rules
	c.Set(a.ForwardTo,
		func(r *inventory.Rules) bool { before = r; return r.Same(spec) },
		func() *inventory.Rules { return inventory.New(spec, before) })
	return nil
}

// ConsumeMetrics sends b on with the labels of the targets that match.
func (c *Component) ConsumeMetrics(ctx context.Context, b *batch.Metrics) error {
	if b.Len() == 0 {
		return nil
	}
	gen := c.Load()
	return c.Sender.Send(ctx, gen.Number, gen.Rules.Apply(b), slices.Max(b.T))
}

// DebugInfo tells how many targets can be matched.
func (c *Component) DebugInfo() any { return c.Load().Rules.DebugInfo() }
