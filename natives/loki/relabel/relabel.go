// Package relabel is loki.relabel: it changes and drops streams by their labels
// and forwards their lines.
//
// The rules read the labels of the stream, not the line, so the result is cached
// for each stream. Lines whose labels are all removed are dropped.
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

// Registration describes loki.relabel.
func Registration() component.Registration {
	return component.Registration{
		Name:    "loki.relabel",
		Accepts: batch.SignalLogs,
		Sends:   batch.SignalLogs,
		NewArgs: func() any { a := new(Arguments); a.SetToDefault(); return a },
		Exports: Exports{},
		Pure:    true,
		Build: func(o component.Options, args any, previous component.Component) (component.Component, error) {
			c := &Component{ruleset.NewWorker[*rule.Relabeler](o, previous)}
			return c, c.Update(args)
		},
	}
}

// Component is the component of a loki.relabel node.
type Component struct {
	*ruleset.Worker[*rule.Relabeler]
}

var (
	_ component.Component = (*Component)(nil)
	_ component.Updater   = (*Component)(nil)
	_ component.Explainer = (*Component)(nil)
	_ flow.LogsConsumer   = (*Component)(nil)
)

// Update applies new arguments. Cached results for streams are kept unless the
// rules changed.
func (c *Component) Update(args any) error {
	a := args.(*Arguments)
	c.Set(a.ForwardTo,
		func(r *rule.Relabeler) bool { return r.Is(a.Rules) },
		func() *rule.Relabeler { return rule.NewRelabeler(a.Rules) })
	c.Export(Exports{Rules: rule.Rules(slices.Clone(a.Rules))})
	return nil
}

// ConsumeLogs applies the rules to b and sends the remaining lines.
func (c *Component) ConsumeLogs(ctx context.Context, b *batch.Logs) error {
	relabelled, dropped := c.Load().Rules.ApplyLogs(b)
	c.Stats.DropLines("relabel", dropped)
	return c.Sender.SendLogs(ctx, relabelled)
}

// Explain returns the rules that change or drop a record.
func (c *Component) Explain(_ context.Context, one flow.Batches) ([]component.Step, error) {
	return c.Load().Rules.Explain(one), nil
}
