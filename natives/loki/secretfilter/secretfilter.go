// Package secretfilter is loki.secretfilter: it redacts passwords, tokens and
// keys in log lines.
//
// A Gitleaks configuration defines the secrets; that of Gitleaks is built into
// weir. The findings are those of Gitleaks for a text that consists of the line
// alone: paths and commits have no effect, [[rules.required]] is refused, and a
// line with gitleaks:allow is not changed. Most lines contain no keyword of a
// rule. A single pass at about 0.7 ns per byte detects this, and a regex only
// runs if its keyword occurs.
//
// It only finds secrets of known forms. Do not rely on it alone.
package secretfilter

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/regex"
	"github.com/weir-run/weir/engine/ruleset"
)

// Registration describes loki.secretfilter.
func Registration() component.Registration {
	return component.Registration{
		Name:    "loki.secretfilter",
		Accepts: batch.SignalLogs,
		Sends:   batch.SignalLogs,
		NewArgs: func() any { a := new(Arguments); a.SetToDefault(); return a },
		Exports: Exports{},
		Check:   check,
		Pure:    true,
		Build: func(o component.Options, args any, previous component.Component) (component.Component, error) {
			return newComponent(o, args.(*Arguments), previous)
		},
	}
}

// Component is the component of a loki.secretfilter node.
type Component struct {
	*ruleset.Worker[*rules]
	metrics *metrics
	files   []string
}

var (
	_ component.Component = (*Component)(nil)
	_ component.Updater   = (*Component)(nil)
	_ component.Sourced   = (*Component)(nil)
	_ flow.LogsConsumer   = (*Component)(nil)
)

// rules are the compiled rules of one set of arguments.
type rules struct {
	*ruleset.Mapper // maps to the streams of lines that took too long
	args            *Arguments
	set             *detectors
}

func newComponent(o component.Options, a *Arguments, previous component.Component) (*Component, error) {
	m := newMetrics()
	if p, ok := previous.(*Component); ok {
		m = p.metrics
	}
	c := &Component{Worker: ruleset.NewWorker[*rules](o, previous), metrics: m}
	if err := component.Register(o.Registerer, m.all()...); err != nil {
		return nil, fmt.Errorf("cannot register metrics: %w", err)
	}
	return c, c.Update(a)
}

// Update applies new arguments and reads the rules again.
func (c *Component) Update(args any) error {
	a := args.(*Arguments)
	set, files, err := load(a.GitleaksConfig)
	if err != nil {
		return err
	}
	c.files = files
	c.Set(a.ForwardTo,
		func(r *rules) bool { return r.set == set && r.args.sameRules(a) },
		func() *rules { return &rules{ruleset.NewMapper(timedOut), a, set} })
	return nil
}

// Sourced returns the files that contain the rules.
func (c *Component) Sourced() (paths []string) {
	for _, f := range c.files {
		if abs, err := filepath.Abs(f); err == nil {
			paths = append(paths, abs)
		}
	}
	return paths
}

// timedOut returns the stream for lines of s that took too long.
func timedOut(s *batch.Stream) *batch.Stream {
	var b batch.Builder
	b.Reset(s)
	b.Set("secretfilter", "timed-out")
	return b.Series(s)
}

// ConsumeLogs sends the lines of b with secrets redacted.
func (c *Component) ConsumeLogs(ctx context.Context, b *batch.Logs) error {
	start := c.Clock.Now()
	out, counts, err := c.Load().Rules.apply(ctx, b, c.Clock.Now, c.metrics)
	if err != nil {
		return err
	}
	c.metrics.add(counts, c.Clock.Now().Sub(start))
	c.Stats.DropLines("timeout", counts.dropped-counts.slow)
	c.Stats.DropLines("match_limit", counts.slow)
	return c.Sender.SendLogs(ctx, out)
}

// apply returns b with secrets redacted, or b itself if there are none. It
// returns an error if ctx ended.
func (r *rules) apply(ctx context.Context, b *batch.Logs, now func() time.Time, m *metrics) (out *batch.Logs, n counts, err error) {
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	c := &changed{Logs: b}
	var over func() bool
	var start time.Time
	meter := regex.NewMeter(ctx)
	if r.args.ProcessingTimeout > 0 {
		over = func() bool { return now().Sub(start) > r.args.ProcessingTimeout }
	}
	for i, line := range b.Line {
		if r.args.Rate < 1 && rand.Float64() >= r.args.Rate {
			n.bypassed++
			continue
		}
		if over != nil {
			start = now()
		}
		fs, ok := r.set.find(line, s, over, meter.Guard())
		switch {
		case !ok && meter.Err() != nil:
			return nil, n, context.Cause(ctx)
		case !ok && (over == nil || !over()):
			n.slow++
			c.dropped = append(c.dropped, i)
		case !ok:
			n.timedOut++
			r.handleLate(c, i)
		case len(fs) > 0:
			c.setLine(i, redacted(line, fs, r.args.inPlaceOf))
			r.count(b.Stream[i], fs, m)
		}
	}
	clear(s.findings) // they alias lines
	n.dropped = len(c.dropped)
	return c.result(), n, nil
}

// handleLate processes a line that took too long.
func (r *rules) handleLate(c *changed, row int) {
	switch {
	case r.args.DropOnTimeout:
		c.dropped = append(c.dropped, row)
	case r.args.LabelTimedOut:
		c.setStream(row, r.Series(c.Stream[row]))
	}
}

func (r *rules) count(s *batch.Stream, fs []finding, m *metrics) {
	origin := ""
	if r.args.OriginLabel != "" {
		origin = s.Label(r.args.OriginLabel)
	}
	for _, f := range fs {
		m.found(f.rule.id, origin)
	}
}

// changed is a batch whose columns are copied before the first change.
type changed struct {
	*batch.Logs
	lines, streams bool  // they are copies
	own            bool  // Logs is a copy
	dropped        []int // dropped rows, ascending
}

func (c *changed) copied() *batch.Logs {
	if !c.own {
		l := *c.Logs
		c.Logs, c.own = &l, true
	}
	return c.Logs
}

func (c *changed) setLine(row int, line string) {
	if !c.lines {
		c.copied().Line, c.lines = slices.Clone(c.Line), true
	}
	c.Line[row] = line
}

func (c *changed) setStream(row int, s *batch.Stream) {
	if !c.streams {
		c.copied().Stream, c.streams = slices.Clone(c.Stream), true
	}
	c.Stream[row] = s
}

func (c *changed) result() *batch.Logs {
	if len(c.dropped) == 0 {
		return c.Logs
	}
	next := c.dropped
	return c.Select(func(row int) bool {
		if len(next) > 0 && next[0] == row {
			next = next[1:]
			return false
		}
		return true
	})
}
