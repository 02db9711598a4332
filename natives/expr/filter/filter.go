// Package filter is expr.filter: it drops the samples and log lines for which an
// expression is true, or those for which it is false.
//
// The signals that a block accepts follow from its expression and its receivers.
// The parts of the expression that only read labels are evaluated once for each
// series or stream. If the expression fails on a sample or line, it is kept.
// Staleness markers and native histograms have no value: only the parts of the
// expression that do not read it decide about them, and they are kept if there
// are none. If the expression changes, series that only the old one kept end at
// the next batch of their source.
package filter

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

// Registration describes expr.filter.
func Registration() component.Registration {
	return component.Registration{
		Name:    "expr.filter",
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

// Component is the component of an expr.filter node.
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
	sender   *flow.Sender
	node     *ruleset.Node[*rules]
	failures *clause.Failures
}

// rules is a compiled expression.
type rules struct {
	judges  clause.Judges
	src     clause.Predicate
	drop    expr.Verdict // the result for rows that are dropped
	columns batch.ColumnMemo[decided]
}

// decided is the result of the labels for the series of a column.
type decided struct {
	change *batch.Change  // nil unless the labels decide about all rows
	labels []expr.Verdict // for each row, otherwise
}

func newComponent(o component.Options, a *Arguments, previous component.Component) (*Component, error) {
	c := &Component{opts: o}
	if p, ok := previous.(*Component); ok {
		c.mem = p.mem
	} else {
		s := flow.NewSender()
		c.mem = &memory{sender: s, node: ruleset.NewNode[*rules](s), failures: clause.NewFailures("drop", "keep")}
	}
	c.gen = c.mem.node.Follow()
	if err := c.mem.failures.Register(o.Registerer); err != nil {
		return nil, err
	}
	return c, c.Update(a)
}

// Update applies new arguments. Cached results for series are kept unless the
// expression changed.
func (c *Component) Update(args any) error {
	a := args.(*Arguments)
	src, of := a.source()
	drop := expr.False
	if of {
		drop = expr.True
	}
	c.gen.Next(
		func(r *rules) bool { return r.src == *src && r.drop == drop },
		func() *rules { return &rules{judges: clause.NewJudges(*src), src: *src, drop: drop} })
	c.mem.failures.Start(&c.opts)
	c.mem.sender.To(flow.NewOutput(c.opts.Stats, a.ForwardTo))
	c.gen.Redirected()
	return nil
}

// Run removes unused cache entries until ctx ends.
func (c *Component) Run(ctx context.Context) error {
	return c.gen.Run(ctx, c.opts.Clock)
}

// Explain returns the expression if it drops the record.
func (c *Component) Explain(_ context.Context, one flow.Batches) ([]component.Step, error) {
	r := c.gen.Load().Rules
	j := r.judges.Samples
	if len(one.Logs) > 0 {
		j = r.judges.Lines
	}
	if j.Of(one) != r.drop {
		return nil, nil
	}
	return []component.Step{{Kind: r.argument(), Detail: string(r.src)}}, nil
}

// ConsumeMetrics sends the remaining rows of b.
func (c *Component) ConsumeMetrics(ctx context.Context, b *batch.Metrics) error {
	if b.Len() == 0 {
		return nil
	}
	gen := c.gen.Load()
	var failed clause.Batch
	left := gen.Rules.apply(b, &failed)
	c.mem.failures.Done(&c.opts, b.Source, &failed)
	c.opts.Stats.Drop("filter", b.Len()-left.Len())
	return c.mem.sender.Send(ctx, gen.Number, left, slices.Max(b.T))
}

// ConsumeLogs sends the remaining lines of b.
func (c *Component) ConsumeLogs(ctx context.Context, b *batch.Logs) error {
	if b.Len() == 0 {
		return nil
	}
	var failed clause.Batch
	left := c.gen.Load().Rules.applyLogs(b, &failed)
	c.mem.failures.Done(&c.opts, b.Source, &failed)
	c.opts.Stats.DropLines("filter", b.Len()-left.Len())
	return c.mem.sender.SendLogs(ctx, left)
}

// apply returns the remaining rows. If the expression was changed to one for
// lines and the sender of samples has not noticed yet, it returns all rows.
func (r *rules) apply(b *batch.Metrics, failed *clause.Batch) *batch.Metrics {
	j := r.judges.Samples
	if j == nil {
		return b
	}
	var x expr.Sample
	d, at, ok := r.columns.Get(b.Origin(), b.Series)
	if !ok {
		d = r.decide(&x, b)
		r.columns.Put(b.Origin(), b.Series, d, at)
	}
	if d.change != nil {
		return d.change.Apply(b)
	}
	return b.Select(func(i int) bool {
		v := d.labels[i]
		if !j.Decides(v) {
			var err error
			if v, err = j.Row(&x, b, i, v); err != nil {
				failed.Add(r.argument(), b.Series[i], err)
			}
		}
		return v != r.drop
	})
}

// applyLogs is apply for log lines. Their columns seldom repeat, but consecutive
// lines often have the same stream.
func (r *rules) applyLogs(b *batch.Logs, failed *clause.Batch) *batch.Logs {
	j := r.judges.Lines
	if j == nil {
		return b
	}
	var x expr.Sample
	var last *batch.Stream
	var labels expr.Verdict
	return b.Select(func(i int) bool {
		if s := b.Stream[i]; s != last {
			last, labels = s, j.Labels(&x, s)
		}
		v := labels
		if !j.Decides(v) {
			var err error
			if v, err = j.Line(&x, b, i, v); err != nil {
				failed.AddLine(r.argument(), b.Stream[i], err)
			}
		}
		return v != r.drop
	})
}

// decide evaluates the labels of the series of b.
func (r *rules) decide(x *expr.Sample, b *batch.Metrics) decided {
	j := r.judges.Samples
	d := decided{labels: make([]expr.Verdict, len(b.Series))}
	left := make([]*batch.Series, len(b.Series))
	all := true
	for i, s := range b.Series {
		d.labels[i] = j.Labels(x, s)
		all = all && j.Decides(d.labels[i])
		if d.labels[i] != r.drop {
			left[i] = s
		}
	}
	if all {
		return decided{change: batch.NewChange(b.Series, left)}
	}
	return d
}

// Sweep removes released series from the cache.
func (r *rules) Sweep() {
	r.columns.Sweep()
	r.judges.Sweep()
}

// Close does nothing: no series are derived.
func (r *rules) Close() {}

func (r *rules) argument() string { return argument(r.drop == expr.True) }
