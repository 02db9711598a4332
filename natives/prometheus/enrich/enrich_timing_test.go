package enrich_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component/componenttest"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/natives/prometheus/enrich"
)

type nowhere struct{}

func (nowhere) ConsumeMetrics(context.Context, *batch.Metrics) error { return nil }

// BenchmarkTargetsChange processes a batch of 10,000 series of 1,000 targets,
// with unchanged targets and after one of them changed.
func BenchmarkTargetsChange(b *testing.B) {
	gate := flow.NewReceiver("nowhere", batch.SignalMetrics, nil, nil)
	gate.Set(nowhere{})
	arguments := func(changed int) *enrich.Arguments {
		a := &enrich.Arguments{TargetMatchLabel: "host", LabelsToCopy: []string{"owner"}, ForwardTo: []*flow.Receiver{gate}}
		for i := range 1000 {
			t := map[string]string{"host": fmt.Sprint("host", i), "owner": "ann", "__meta_x": fmt.Sprint(i)}
			if i == 0 {
				t["owner"] = fmt.Sprint(changed)
			}
			a.Targets = append(a.Targets, t)
		}
		return a
	}
	in := &batch.Metrics{Source: batch.NewSource()}
	for i := range 10_000 {
		in.Series = append(in.Series, batch.NewSeries([]batch.Label{
			{Name: batch.NameLabel, Value: fmt.Sprint("metric", i/1000)}, {Name: "host", Value: fmt.Sprint("host", i%1000)}, {Name: "job", Value: "node"},
		}))
		in.T, in.V = append(in.T, 1), append(in.V, 1)
	}
	f := func(name string, change bool) {
		b.Run(name, func(b *testing.B) {
			c := componenttest.New(b, "prometheus.enrich.e").Build(b, enrich.Registration(), arguments(0)).(node)
			n := 0
			for b.Loop() {
				if n++; change {
					b.StopTimer()
					a := arguments(n)
					b.StartTimer()
					if err := c.Update(a); err != nil {
						b.Fatal(err)
					}
				}
				if err := c.ConsumeMetrics(context.Background(), in); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	f("same", false)
	f("changed", true)
}
