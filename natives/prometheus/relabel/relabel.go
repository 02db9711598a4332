// Package relabel is prometheus.relabel: it changes and drops series by their
// labels and passes their samples on.
//
// The rules see labels only, so what they decide is remembered on the series
// and costs a look-up per sample. A change of the rules reaches every series
// at its source's next batch; series that the old rules made and the new ones
// do not get a staleness marker in that batch. Metadata follows the source
// series, whatever name the rules give.
package relabel

import (
	"context"
	"reflect"
	"slices"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/natives/generation"
	"github.com/weir-run/weir/natives/prometheus/rule"
)

// Registration describes prometheus.relabel.
func Registration() component.Registration {
	return component.Registration{
		Name:    "prometheus.relabel",
		Accepts: batch.SignalMetrics,
		Sends:   batch.SignalMetrics,
		NewArgs: func() any { a := new(Arguments); a.SetToDefault(); return a },
		Exports: Exports{},
		Build: func(o component.Options, args any) (component.Component, error) {
			return newComponent(o, args.(*Arguments)), nil
		},
	}
}

// Component is one prometheus.relabel.
type Component struct {
	opts component.Options
	mem  *memory
	gen  *generation.Current[*rules]
}

var (
	_ component.Component  = (*Component)(nil)
	_ component.Updater    = (*Component)(nil)
	_ flow.MetricsConsumer = (*Component)(nil)
)

// rules are one set of rules and what they made.
type rules struct {
	*rule.Relabeler
	of []*rule.Rule
}

// memory is what a node's components hand down.
type memory struct {
	sender *flow.Sender
	node   *generation.Node[*rules]
}

func newComponent(o component.Options, a *Arguments) *Component {
	c := &Component{opts: o}
	c.opts.Previous = nil // kept, it would keep all that were before it
	if p, ok := o.Previous.(*Component); ok {
		c.mem = p.mem
	} else {
		s := flow.NewSender()
		c.mem = &memory{s, generation.NewNode[*rules](s)}
	}
	c.gen = c.mem.node.Follow()
	c.set(a)
	return c
}

// Update takes new arguments. What was remembered about series stays unless
// the rules changed.
func (c *Component) Update(args any) error {
	c.set(args.(*Arguments))
	return nil
}

func (c *Component) set(a *Arguments) {
	c.gen.Next(
		func(r *rules) bool {
			return len(r.of) == len(a.Rules) && (len(r.of) == 0 || reflect.DeepEqual(r.of, a.Rules))
		},
		func() *rules { return &rules{rule.NewRelabeler(a.Rules), a.Rules} })
	c.mem.sender.To(flow.NewOutput(c.opts.Stats, a.ForwardTo))
	c.gen.Redirected()
	c.opts.Export(Exports{Rules: rule.Rules(slices.Clone(a.Rules))})
}

// Run sweeps until ctx ends.
func (c *Component) Run(ctx context.Context) error {
	return c.gen.Run(ctx, c.opts.Clock)
}

// ConsumeMetrics applies the rules to b and sends what they leave.
func (c *Component) ConsumeMetrics(ctx context.Context, b *batch.Metrics) error {
	if b.Len() == 0 {
		return nil
	}
	gen := c.gen.Load()
	relabelled, dropped := gen.Rules.Apply(b)
	c.opts.Stats.Drop("relabel", dropped)
	return c.mem.sender.Send(ctx, gen.Number, relabelled, slices.Max(b.T))
}
