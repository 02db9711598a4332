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
	"sync"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/natives/prometheus/rule"
)

// sweepInterval is how often released series are forgotten.
const sweepInterval = time.Minute

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

	mu sync.RWMutex // held for reading while rules are applied, not while sending
	generation

	redirected chan struct{} // capacity 1: forward_to changed
}

var (
	_ component.Component  = (*Component)(nil)
	_ component.Updater    = (*Component)(nil)
	_ flow.MetricsConsumer = (*Component)(nil)
)

// generation is one set of rules and what it made.
type generation struct {
	number    uint64
	rules     []*rule.Rule
	relabeler *rule.Relabeler
}

// memory is what a node's components hand down: a rebuild is no change of rules.
type memory struct {
	sender *flow.Sender

	mu      sync.Mutex
	current generation
	retired []*rule.Relabeler // replaced since the last sweep
	dying   []*rule.Relabeler // replaced before that
	running int
}

func newComponent(o component.Options, a *Arguments) *Component {
	c := &Component{opts: o, redirected: make(chan struct{}, 1)}
	c.opts.Previous = nil // kept, it would keep all that were before it
	if p, ok := o.Previous.(*Component); ok {
		c.mem = p.mem
	} else {
		c.mem = &memory{sender: flow.NewSender()}
	}
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
	gen := c.mem.next(a.Rules)
	c.mu.Lock()
	c.generation = gen
	c.mu.Unlock()
	c.mem.sender.To(flow.NewOutput(c.opts.Stats, a.ForwardTo))
	select {
	case c.redirected <- struct{}{}:
	default:
	}
	c.opts.Export(Exports{Rules: rule.Rules(slices.Clone(a.Rules))})
}

// next returns the generation of rules: the current one when they are its own.
func (m *memory) next(rules []*rule.Rule) generation {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.current.relabeler == nil:
	case len(rules) == len(m.current.rules) && (len(rules) == 0 || reflect.DeepEqual(rules, m.current.rules)):
		return m.current
	default:
		m.retired = append(m.retired, m.current.relabeler)
	}
	m.current = generation{m.current.number + 1, rules, rule.NewRelabeler(rules)}
	return m.current
}

// Run sweeps until ctx ends.
func (c *Component) Run(ctx context.Context) error {
	c.mem.enter()
	defer c.mem.leave()
	t := c.opts.Clock.NewTimer(sweepInterval)
	defer t.Stop()
	end := c.opts.Clock.NewTimer(flow.EndAfter)
	defer end.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-c.redirected:
			end.Reset(flow.EndAfter)
		case <-end.C():
			c.mem.sender.EndLeaving(ctx)
		case <-t.C():
			c.mem.sweep()
			t.Reset(sweepInterval)
		}
	}
}

// ConsumeMetrics applies the rules to b and sends what they leave.
func (c *Component) ConsumeMetrics(ctx context.Context, b *batch.Metrics) error {
	if b.Len() == 0 {
		return nil
	}
	c.mu.RLock()
	gen := c.generation.number
	relabelled, dropped := c.relabeler.Apply(b)
	c.mu.RUnlock()
	c.opts.Stats.Drop("relabel", dropped)

	return c.mem.sender.Send(ctx, gen, relabelled, slices.Max(b.T))
}

func (m *memory) enter() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.running++
}

// leave gives back what was derived once the node's last component stopped.
func (m *memory) leave() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.running--; m.running > 0 {
		return
	}
	for _, r := range slices.Concat(m.dying, m.retired, []*rule.Relabeler{m.current.relabeler}) {
		r.Close()
	}
	m.dying, m.retired = nil, nil
}

// sweep forgets released series, and rules that were replaced at least one
// interval ago: the markers that their series are owed should still find the
// handles in the memos downstream.
func (m *memory) sweep() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.dying {
		r.Close()
	}
	m.dying, m.retired = m.retired, nil
	for _, r := range m.dying {
		r.Sweep()
	}
	m.current.relabeler.Sweep()
	m.sender.Sweep()
}
