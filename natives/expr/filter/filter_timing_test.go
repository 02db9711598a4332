package filter_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/component/componenttest"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/rule"
	"github.com/weir-run/weir/natives/expr/filter"
	"github.com/weir-run/weir/natives/expr/internal/clause"
	"github.com/weir-run/weir/natives/expr/route"
	"github.com/weir-run/weir/natives/expr/set"
	"github.com/weir-run/weir/natives/prometheus/relabel"
)

type nowhere struct{}

func (nowhere) ConsumeMetrics(context.Context, *batch.Metrics) error { return nil }

// perRow measures the cost per row of batches with the given number of rows,
// which consume passes to a component.
func perRow(b *testing.B, name string, r component.Registration, args any, rows int, unit string, consume func(component.Component) error) {
	b.Run(name, func(b *testing.B) {
		c := componenttest.New(b, name).Build(b, r, args)
		b.ReportAllocs()
		for b.Loop() {
			if err := consume(c); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*rows), unit)
	})
}

// BenchmarkBeside compares each expr component with the prometheus.relabel that
// does the same: 2000 series of ten labels, half of them dropped.
func BenchmarkBeside(b *testing.B) {
	in := &batch.Metrics{Source: 1}
	for i := range 2000 {
		ls := []batch.Label{{Name: "__name__", Value: "http_requests_total"}}
		for j := range 8 {
			ls = append(ls, batch.Label{Name: fmt.Sprint("label", j), Value: fmt.Sprint("value", i)})
		}
		ls = append(ls, batch.Label{Name: "side", Value: fmt.Sprint(i % 2)})
		in.Series = append(in.Series, batch.NewSeries(ls))
		in.T, in.V = append(in.T, 1), append(in.V, float64(i))
	}
	gate := flow.NewReceiver("nowhere", batch.SignalMetrics, nil, nil)
	gate.Set(nowhere{})
	to := []*flow.Receiver{gate}
	f := func(name string, r component.Registration, args any) {
		perRow(b, name, r, args, in.Len(), "ns/sample", func(c component.Component) error {
			return c.(flow.MetricsConsumer).ConsumeMetrics(b.Context(), in)
		})
	}
	relabelWith := func(edit func(*rule.Rule)) *relabel.Arguments {
		r := new(rule.Rule)
		r.SetToDefault()
		edit(r)
		return &relabel.Arguments{ForwardTo: to, Rules: []*rule.Rule{r}}
	}
	pred := func(s clause.Predicate) *clause.Predicate { return &s }
	num := func(s clause.SampleNumber) *clause.SampleNumber { return &s }
	f("drop/relabel", relabel.Registration(), relabelWith(func(r *rule.Rule) {
		r.Action, r.SourceLabels, r.Regex = "drop", []string{"side"}, "1"
	}))
	f("drop/labels", filter.Registration(), &filter.Arguments{ForwardTo: to, Drop: pred(`labels.side == "1"`)})
	f("drop/both", filter.Registration(), &filter.Arguments{ForwardTo: to, Drop: pred(`labels.side == "1" && value > 3`)})
	f("drop/value", filter.Registration(), &filter.Arguments{ForwardTo: to, Drop: pred(`value > 1000`)})
	f("set/relabel", relabel.Registration(), relabelWith(func(r *rule.Rule) { r.TargetLabel, r.Replacement = "x", "1" }))
	f("set/label", set.Registration(), &set.Arguments{ForwardTo: to, Labels: []*set.Label{{Name: "x", Value: `"1"`}}})
	f("set/value", set.Registration(), &set.Arguments{ForwardTo: to, Value: num(`value * 1000`)})
	f("set/label of value", set.Registration(), &set.Arguments{ForwardTo: to, Labels: []*set.Label{{Name: "x", Value: `value > 1000 ? "high" : "low"`}}})
	f("route/labels", route.Registration(), &route.Arguments{ForwardTo: to, Routes: []*route.Route{{Name: "a", When: `labels.side == "1"`}}})
	f("route/value", route.Registration(), &route.Arguments{ForwardTo: to, Routes: []*route.Route{{Name: "a", When: `value > 1000`}}})
}
