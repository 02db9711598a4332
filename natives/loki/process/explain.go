package process

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/engine/flow"
)

var _ component.Explainer = (*Component)(nil)

// Explain returns the stages that change or drop a line. It runs copies of the stages
// that have no state and count nothing. The stages limit, sampling and multiline, whose
// result depends on other lines or on chance, do not run: they let the line pass.
func (c *Component) Explain(ctx context.Context, one flow.Batches) ([]component.Step, error) {
	pl, err := c.gen.Load().Rules.copy()
	if err != nil {
		return nil, err
	}
	defer pl.Close()
	b := *one.Logs[0]
	b.Ack = nil // nothing is delivered
	x := explanation{p: pl.begin(ctx, &b)}
	defer x.p.release()
	x.run(ctx, pl.first, pl.of, "")
	return x.steps, context.Cause(ctx)
}

// copy returns a pipeline of the same stages without their state, which has its own
// counters.
func (pl *pipeline) copy() (*pipeline, error) {
	mem := newMemory()
	mem.geo.retainOnly(pl.geo)
	e := env{clock: pl.clock, logger: slog.New(slog.DiscardHandler), stats: new(flow.Stats), reg: prometheus.NewRegistry(), mem: mem}
	out, err := compile(e, pl.of, nil)
	if err != nil {
		return nil, err
	}
	for _, take := range out.takes {
		take()
	}
	return out, nil
}

// explanation is one call of Explain.
type explanation struct {
	p     *pass
	steps []component.Step
}

// run runs the stages of a block, of which l is the first.
func (x *explanation) run(ctx context.Context, l *link, stages []Stage, within string) {
	for i := 0; i < len(stages) && len(x.p.rows) > 0 && ctx.Err() == nil; i++ {
		name, a := stages[i].set()
		step := component.Step{Within: within, Kind: "stage", Index: i + 1, Name: name, Detail: config.Written(a)}
		switch s := l.stage.(type) {
		case *limitStage:
			if s.Drop && (s.ByLabelName == "" || x.p.stream[x.p.rows[0]].Label(s.ByLabelName) != "") {
				x.pass(step, "the rate of lines", false)
			}
		case *samplingStage:
			if s.Rate == 0 {
				x.stage(ctx, s, step)
			} else if s.Rate < 1 {
				x.pass(step, "chance", false)
			}
		case *multilineStage:
			x.pass(step, "the lines around it", true)
		case *matchStage:
			x.match(ctx, s, a.(*MatchArguments), step)
		default:
			x.stage(ctx, s, step)
		}
		l = l.next
	}
}

// pass adds a stage that does not run because its result depends on something else.
func (x *explanation) pass(step component.Step, depends string, later bool) {
	step.Depends, step.Later, step.After = depends, later, x.record()
	x.steps = append(x.steps, step)
}

// match runs the stages in a match if the line matches.
func (x *explanation) match(ctx context.Context, s *matchStage, a *MatchArguments, step component.Step) {
	is := s.matcherFor(x.p)
	n := 0
	for _, r := range x.p.rows {
		if is(r) {
			n++
		}
	}
	slow := len(x.p.slow) > 0
	x.p.slow = x.p.slow[:0]
	switch {
	case s.drop || slow || n > 0 && n < len(x.p.rows):
		x.stage(ctx, s, step)
	case n > 0:
		x.p.takeLabels()
		within := fmt.Sprintf("stage %d match", step.Index)
		if step.Within != "" {
			within = step.Within + ", " + within
		}
		x.run(ctx, s.first, a.Stages, within)
	}
}

// stage runs a stage and adds it if it had an effect.
func (x *explanation) stage(ctx context.Context, s stage, step component.Step) {
	before, had := x.p.copyRows(), x.extracted()
	s.run(ctx, x.p)
	if len(x.p.slow) > 0 {
		x.p.dropSlow()
		step.Also = append(step.Also, "the stage took too long, see "+slowReason)
	}
	after := x.p.copyRows()
	step.After = flow.Batches{Logs: []*batch.Logs{after}}
	if _, joins := s.(*criStage); joins && after.Len() == 0 {
		step.Depends, step.Later, step.After = "the end of the line", true, flow.Batches{Logs: []*batch.Logs{before}}
		x.steps = append(x.steps, step)
		x.p.rows = nil
		return
	}
	if after.Len() > 0 {
		has := x.extracted()
		for _, name := range slices.Sorted(maps.Keys(has)) {
			if v := has[name]; v != had[name] && v.exists() {
				step.Also = append(step.Also, fmt.Sprintf("extracted %s=%q", name, v.text))
			}
		}
	}
	if len(step.Also) > 0 || !equalLines(before, after) {
		x.steps = append(x.steps, step)
	}
}

// record returns the line as it is now.
func (x *explanation) record() flow.Batches {
	return flow.Batches{Logs: []*batch.Logs{x.p.copyRows()}}
}

// extracted returns the values that were extracted and that a later stage reads.
func (x *explanation) extracted() map[string]value {
	row := x.p.rows[0]
	out := map[string]value{}
	for slot, name := range x.p.pl.names {
		out[name] = x.p.slots[slot][row]
	}
	if x.p.extra != nil {
		maps.Copy(out, x.p.extra[row])
	}
	return out
}

func equalLines(a, b *batch.Logs) bool {
	if a.Len() != b.Len() {
		return false
	}
	for i := range a.Len() {
		if !a.Stream[i].Equal(b.Stream[i]) || a.T[i] != b.T[i] || a.Line[i] != b.Line[i] || !slices.Equal(a.MetaOf(i), b.MetaOf(i)) {
			return false
		}
	}
	return true
}
