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
	"maps"
	"reflect"
	"slices"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/natives/generation"
)

// Registration describes prometheus.enrich.
func Registration() component.Registration {
	return component.Registration{
		Name:    "prometheus.enrich",
		Accepts: batch.SignalMetrics,
		Sends:   batch.SignalMetrics,
		NewArgs: func() any { a := new(Arguments); a.SetToDefault(); return a },
		Exports: Exports{},
		Build: func(o component.Options, args any) (component.Component, error) {
			return newComponent(o, args.(*Arguments)), nil
		},
	}
}

// Component is one prometheus.enrich.
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

// Update takes new arguments. What was made of series stays unless targets or
// what they are matched by changed.
func (c *Component) Update(args any) error {
	c.set(args.(*Arguments))
	return nil
}

func (c *Component) set(a *Arguments) {
	var before *rules
	c.gen.Next(
		func(r *rules) bool { before = r; return r.same(a) },
		func() *rules { return newRules(a, before) })
	c.mem.sender.To(flow.NewOutput(c.opts.Stats, a.ForwardTo))
	c.gen.Redirected()
}

// Run sweeps until ctx ends.
func (c *Component) Run(ctx context.Context) error {
	return c.gen.Run(ctx, c.opts.Clock)
}

// ConsumeMetrics sends b on with the labels of the targets that match.
func (c *Component) ConsumeMetrics(ctx context.Context, b *batch.Metrics) error {
	if b.Len() == 0 {
		return nil
	}
	gen := c.gen.Load()
	return c.mem.sender.Send(ctx, gen.Number, gen.Rules.apply(b), slices.Max(b.T))
}

// DebugInfo tells how many targets can be matched.
func (c *Component) DebugInfo() any {
	return struct {
		Targets int `json:"targets"`
	}{len(c.gen.Load().Rules.copied)}
}

// rules are the targets of one generation.
type rules struct {
	args   *Arguments
	table  *table
	shared bool                         // the table is that of newer rules now
	number uint64                       // among those with this table
	from   []string                     // labels of a series, in the order of the key
	copied map[string]map[string]string // labels to copy, by key
}

// newRules returns the rules of a. It shares what before, which may be nil,
// made of series if only the targets are others.
func newRules(a *Arguments, before *rules) *rules {
	r := &rules{args: a, copied: make(map[string]map[string]string, len(a.Targets))}
	if before != nil && before.sameLabels(a) {
		r.table, r.number = before.table, before.number+1
		before.shared = true
	} else {
		r.table = newTable()
	}
	match := a.match()
	of := slices.Sorted(maps.Keys(match))
	for _, label := range of {
		r.from = append(r.from, match[label])
	}
	for _, t := range a.Targets {
		if k, ok := appendKey(nil, of, func(label string) string { return t[label] }); ok {
			r.copied[string(k)] = a.copied(t)
		}
	}
	return r
}

// copied returns those labels of a target that are copied.
func (a *Arguments) copied(target map[string]string) map[string]string {
	if len(a.LabelsToCopy) == 0 {
		return target
	}
	some := make(map[string]string, len(a.LabelsToCopy))
	for _, name := range a.LabelsToCopy {
		if value, ok := target[name]; ok {
			some[name] = value
		}
	}
	return some
}

// Sweep forgets released series.
func (r *rules) Sweep() {
	if !r.shared {
		r.table.sweep()
	}
}

// Close gives back all handles that were derived.
func (r *rules) Close() {
	if !r.shared {
		r.table.close()
	}
}

// apply returns what becomes of b.
func (r *rules) apply(b *batch.Metrics) *batch.Metrics { return r.table.apply(b, r.number, r.labels) }

// labels returns what is copied to s.
func (r *rules) labels(s *batch.Series) map[string]string {
	var buf [128]byte // most keys fit, and a look-up allocates nothing
	k, ok := appendKey(buf[:0], r.from, s.Label)
	if !ok {
		return nil
	}
	return r.copied[string(k)]
}

func (r *rules) same(a *Arguments) bool {
	return r.sameLabels(a) && reflect.DeepEqual(r.args.Targets, a.Targets)
}

func (r *rules) sameLabels(a *Arguments) bool {
	return maps.Equal(r.args.match(), a.match()) && slices.Equal(r.args.LabelsToCopy, a.LabelsToCopy)
}

// appendKey joins the values of labels; ok is false when one is empty.
func appendKey(dst []byte, labels []string, value func(string) string) (k []byte, ok bool) {
	for _, l := range labels {
		v := value(l)
		if v == "" {
			return nil, false
		}
		dst = append(append(dst, v...), 0xff) // in no UTF-8 text
	}
	return dst, true
}
