// Package enrich is loki.enrich: it copies labels of targets to the streams that
// match them, such as a host's owner from an inventory.
//
// A stream is matched once, and again if the targets change. Streams that match
// no target are forwarded unchanged.
package enrich

import (
	"context"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/inventory"
	"github.com/weir-run/weir/engine/ruleset"
)

// Registration describes loki.enrich.
func Registration() component.Registration {
	return component.Registration{
		Name:    "loki.enrich",
		Accepts: batch.SignalLogs,
		Sends:   batch.SignalLogs,
		NewArgs: func() any { a := new(Arguments); a.SetToDefault(); return a },
		Exports: Exports{},
		Pure:    true,
		Build: func(o component.Options, args any, previous component.Component) (component.Component, error) {
			c := &Component{ruleset.NewWorker[*inventory.Rules](o, previous)}
			return c, c.Update(args)
		},
	}
}

// Component is the component of a loki.enrich node.
type Component struct {
	*ruleset.Worker[*inventory.Rules]
}

var (
	_ component.Component = (*Component)(nil)
	_ component.Updater   = (*Component)(nil)
	_ component.Debugger  = (*Component)(nil)
	_ flow.LogsConsumer   = (*Component)(nil)
)

// Update applies new arguments. Cached results for streams are kept unless the
// targets or the match labels changed.
func (c *Component) Update(args any) error {
	a := args.(*Arguments)
	spec := a.spec()
	var before *inventory.Rules
	c.Set(a.ForwardTo,
		func(r *inventory.Rules) bool { before = r; return r.Same(spec) },
		func() *inventory.Rules { return inventory.New(spec, before) })
	return nil
}

// ConsumeLogs sends b with the labels of the matching targets.
func (c *Component) ConsumeLogs(ctx context.Context, b *batch.Logs) error {
	return c.Sender.SendLogs(ctx, c.Load().Rules.ApplyLogs(b))
}

// DebugInfo returns the number of targets that can be matched.
func (c *Component) DebugInfo() any { return c.Load().Rules.DebugInfo() }
