// Package enrich is prometheus.enrich: it copies labels of targets to the
// series that match them, such as a host's owner from an inventory.
//
// What matches is decided once for each series, and again when the targets
// change; series that then have other labels end under the old ones at their
// source's next batch. Series that match no target pass as they are.
package enrich

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

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
	opts       component.Options
	mem        *memory
	gen        atomic.Pointer[generation.Generation[*rules]]
	redirected chan struct{} // capacity 1
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
	c := &Component{opts: o, redirected: make(chan struct{}, 1)}
	c.opts.Previous = nil // kept, it would keep all that were before it
	if p, ok := o.Previous.(*Component); ok {
		c.mem = p.mem
	} else {
		s := flow.NewSender()
		c.mem = &memory{s, generation.NewNode[*rules](s)}
	}
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
	c.gen.Store(c.mem.node.Next(func(r *rules) bool { return r.same(a) }, func() *rules { return newRules(a) }))
	c.mem.sender.To(flow.NewOutput(c.opts.Stats, a.ForwardTo))
	select {
	case c.redirected <- struct{}{}:
	default:
	}
}

// Run sweeps until ctx ends.
func (c *Component) Run(ctx context.Context) error {
	return c.mem.node.Run(ctx, c.opts.Clock, c.redirected)
}

// ConsumeMetrics sends b on with the labels of the targets that match.
func (c *Component) ConsumeMetrics(ctx context.Context, b *batch.Metrics) error {
	if b.Len() == 0 {
		return nil
	}
	gen := c.gen.Load()
	out, _ := gen.Rules.Apply(b) // nothing is dropped
	return c.mem.sender.Send(ctx, gen.Number, out, slices.Max(b.T))
}

// DebugInfo tells how many targets can be matched.
func (c *Component) DebugInfo() any {
	return struct {
		Targets int `json:"targets"`
	}{len(c.gen.Load().Rules.targets)}
}

// rules are the targets of one generation and what they made of series.
type rules struct {
	*generation.Mapper
	args    *Arguments
	from    []string                     // labels of a series, in the order of key
	targets map[string]map[string]string // labels to copy, by key
}

func newRules(a *Arguments) *rules {
	r := &rules{args: a, targets: make(map[string]map[string]string, len(a.Targets))}
	match := a.match()
	of := slices.Sorted(maps.Keys(match))
	for _, label := range of {
		r.from = append(r.from, match[label])
	}
	for _, t := range a.Targets {
		if k, ok := key(of, func(label string) string { return t[label] }); ok {
			r.targets[k] = t
		}
	}
	r.Mapper = generation.NewMapper(r.derive)
	return r
}

func (r *rules) same(a *Arguments) bool {
	return maps.Equal(r.args.match(), a.match()) && slices.Equal(r.args.LabelsToCopy, a.LabelsToCopy) && reflect.DeepEqual(r.args.Targets, a.Targets)
}

// key joins the values of labels; ok is false when one is empty.
func key(labels []string, value func(string) string) (k string, ok bool) {
	var b strings.Builder
	for _, l := range labels {
		v := value(l)
		if v == "" {
			return "", false
		}
		b.WriteString(v)
		b.WriteByte(0xff) // in no UTF-8 text
	}
	return b.String(), true
}

var builders = sync.Pool{New: func() any { return new(batch.Builder) }}

func (r *rules) derive(s *batch.Series) *batch.Series {
	k, ok := key(r.from, s.Label)
	if !ok {
		return s
	}
	t, ok := r.targets[k]
	if !ok {
		return s
	}
	b := builders.Get().(*batch.Builder)
	defer builders.Put(b)
	b.Reset(s)
	if len(r.args.LabelsToCopy) == 0 {
		for name, value := range t {
			b.Set(name, value)
		}
	}
	for _, name := range r.args.LabelsToCopy {
		if value, ok := t[name]; ok {
			b.Set(name, value)
		}
	}
	return b.Series(s)
}
