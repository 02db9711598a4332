package set

import (
	"context"
	"math"
	"slices"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/natives/expr/internal/clause"
)

// Explain returns the arguments that change the record. All expressions read the record
// as it arrived, so it applies the first argument, then the first two, and so on, to a
// component without a state.
func (c *Component) Explain(_ context.Context, one flow.Batches) (steps []component.Step, err error) {
	all := c.gen.Load().Rules.args
	var some Arguments
	last := one
	add := func(s component.Step) {
		r := newRules(&some)
		defer r.Close()
		var failed clause.Batch
		if len(one.Logs) > 0 {
			s.After.Logs = []*batch.Logs{r.applyLogs(one.Logs[0], c.opts.Clock.Now(), &failed)}
		} else {
			s.After.Metrics = []*batch.Metrics{r.apply(one.Metrics[0], c.opts.Clock.Now(), &failed).Batch}
		}
		if !sameRow(last, s.After) {
			steps = append(steps, s)
			last = s.After
		}
	}
	if some.Name = all.Name; some.Name != nil {
		add(component.Step{Kind: "name", Detail: string(*some.Name)})
	}
	for i, l := range all.Labels {
		some.Labels = all.Labels[:i+1]
		add(component.Step{Kind: "label", Name: l.Name, Detail: string(l.Value)})
	}
	if some.Value = all.Value; some.Value != nil {
		add(component.Step{Kind: "value", Detail: string(*some.Value)})
	}
	for i, m := range all.Meta {
		some.Meta = all.Meta[:i+1]
		add(component.Step{Kind: "meta", Name: m.Name, Detail: string(m.Value)})
	}
	if some.Line = all.Line; some.Line != nil {
		add(component.Step{Kind: "line", Detail: string(*some.Line)})
	}
	return steps, nil
}

// sameRow compares what this component can change.
func sameRow(a, b flow.Batches) bool {
	if len(a.Logs) > 0 {
		x, y := a.Logs[0], b.Logs[0]
		return x.Stream[0].Equal(y.Stream[0]) && x.Line[0] == y.Line[0] && slices.Equal(x.MetaOf(0), y.MetaOf(0))
	}
	x, y := a.Metrics[0], b.Metrics[0]
	return x.Series[0].Equal(y.Series[0]) && math.Float64bits(x.V[0]) == math.Float64bits(y.V[0])
}
