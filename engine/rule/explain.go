package rule

import (
	"fmt"
	"strings"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
)

// Explain returns the rules that change or drop the row of one. It does not use the
// caches of the Relabeler.
func (r *Relabeler) Explain(one flow.Batches) []component.Step {
	steps, b := explain(r.rules, r.cfgs, one)
	if b == nil || len(r.cfgs) == 0 && !r.public {
		return steps
	}
	switch left := withLabels(one, b.Labels(), r.public); {
	case r.public && !seriesOf(left).Equal(seriesOf(withLabels(one, b.Labels(), false))):
		steps = append(steps, component.Step{Kind: "end of rules", Detail: "labels that begin with __ are removed", After: left})
	case !r.public && b.Labels().Len() == 0:
		steps = append(steps, component.Step{Kind: "end of rules", Detail: "no labels are left"})
	}
	return steps
}

// ExplainTarget returns the rules that change or drop a target.
func ExplainTarget(rules []*Rule, target map[string]string) []component.Step {
	steps, _ := explain(rules, Configs(rules), component.TargetRecord(target))
	return steps
}

// explain returns the rules that change or drop the row of one, and the labels that are
// left; nil if a rule dropped it.
func explain(rules []*Rule, cfgs []*relabel.Config, one flow.Batches) (steps []component.Step, left *labels.Builder) {
	var ls []labels.Label
	for n, v := range seriesOf(one).Labels() {
		ls = append(ls, labels.Label{Name: n, Value: v})
	}
	b := labels.NewBuilder(labels.New(ls...))
	for i, cfg := range cfgs {
		before := b.Labels()
		keep := relabel.ProcessBuilder(b, cfg)
		after := b.Labels()
		if keep && labels.Equal(before, after) {
			continue
		}
		s := component.Step{Kind: "rule", Index: i + 1, Name: string(rules[i].Action), Detail: rules[i].detail()}
		if keep {
			s.After = withLabels(one, after, false)
		}
		steps = append(steps, s)
		if !keep {
			return steps, nil
		}
	}
	return steps, b
}

func seriesOf(one flow.Batches) *batch.Series {
	if len(one.Logs) > 0 {
		return one.Logs[0].Stream[0]
	}
	return one.Metrics[0].Series[0]
}

// withLabels returns the row of one with other labels.
func withLabels(one flow.Batches, ls labels.Labels, public bool) flow.Batches {
	var out []batch.Label
	ls.Range(func(l labels.Label) {
		if !public || !strings.HasPrefix(l.Name, "__") {
			out = append(out, batch.Label{Name: l.Name, Value: l.Value})
		}
	})
	s := batch.NewSeries(out)
	s.SetMeta(seriesOf(one).Meta())
	if len(one.Logs) > 0 {
		l := *one.Logs[0]
		l.Stream = []*batch.Stream{s}
		return flow.Batches{Logs: []*batch.Logs{&l}}
	}
	m := *one.Metrics[0]
	m.Series = []*batch.Series{s}
	return flow.Batches{Metrics: []*batch.Metrics{&m}}
}

// detail returns the arguments of a rule that are not the default.
func (r *Rule) detail() string {
	var d Rule
	d.SetToDefault()
	var parts []string
	add := func(differs bool, name string, v any) {
		if differs {
			parts = append(parts, fmt.Sprintf("%s = %v", name, v))
		}
	}
	quoted := make([]string, len(r.SourceLabels))
	for i, l := range r.SourceLabels {
		quoted[i] = fmt.Sprintf("%q", l)
	}
	add(len(quoted) > 0, "source_labels", "["+strings.Join(quoted, ", ")+"]")
	add(r.Separator != d.Separator, "separator", fmt.Sprintf("%q", r.Separator))
	add(r.Regex != d.Regex, "regex", fmt.Sprintf("%q", string(r.Regex)))
	add(r.Modulus != d.Modulus, "modulus", r.Modulus)
	add(r.TargetLabel != "", "target_label", fmt.Sprintf("%q", r.TargetLabel))
	add(r.Replacement != d.Replacement, "replacement", fmt.Sprintf("%q", r.Replacement))
	return strings.Join(parts, ", ")
}
