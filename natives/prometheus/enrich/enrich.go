// Package enrich is prometheus.enrich: it copies labels of targets to the series
// that match them, such as a host's owner from an inventory.
//
// A series is matched once, and again if the targets change. Series whose target
// does not change are not affected. If the labels of a series change, the series
// with the old labels ends at the next batch of its source. Series that match no
// target are forwarded unchanged.
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
		Pure:    true,
		Build: func(o component.Options, args any, previous component.Component) (component.Component, error) {
			c := &Component{ruleset.NewWorker[*inventory.Rules](o, previous)}
			return c, c.Update(args)
		},
	}
}

// Component is the component of a prometheus.enrich node.
type Component struct {
	*ruleset.Worker[*inventory.Rules]
}

var (
	_ component.Component  = (*Component)(nil)
	_ component.Updater    = (*Component)(nil)
	_ component.Debugger   = (*Component)(nil)
	_ flow.MetricsConsumer = (*Component)(nil)
)

// Update applies new arguments. Cached results for series are kept unless the
// targets or the match labels changed.
func (c *Component) Update(args any) error {
	a := args.(*Arguments)
	spec := inventory.Spec{Targets: a.Targets, Match: a.match(), Copy: a.LabelsToCopy}
	var before *inventory.Rules
	c.Set(a.ForwardTo,
		func(r *inventory.Rules) bool { before = r; return r.Same(spec) },
		func() *inventory.Rules { return inventory.New(spec, before) })
	return nil
}

// ConsumeMetrics sends b with the labels of the matching targets.
func (c *Component) ConsumeMetrics(ctx context.Context, b *batch.Metrics) error {
	if b.Len() == 0 {
		return nil
	}
	gen := c.Load()
	return c.Sender.Send(ctx, gen.Number, gen.Rules.Apply(b), slices.Max(b.T))
}

// DebugInfo returns the number of targets that can be matched.
func (c *Component) DebugInfo() any { return c.Load().Rules.DebugInfo() }
