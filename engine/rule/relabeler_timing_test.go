package rule_test

import (
	"fmt"
	"testing"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/rule"
)

// Two rules that people have: one that drops by name, one that adds a label.
func benchRules() []*rule.Rule {
	return []*rule.Rule{
		with(func(r *rule.Rule) { r.Action, r.SourceLabels, r.Regex = "drop", []string{"__name__"}, "go_.*" }),
		with(func(r *rule.Rule) { r.TargetLabel, r.Replacement = "cluster", "eu-1" }),
	}
}

func benchLabels(n int) []labels.Labels {
	out := make([]labels.Labels, n)
	for i := range out {
		out[i] = labels.FromStrings("__name__", "http_requests_total", "instance", "10.0.0.1:9100", "job", "api",
			"method", "GET", "path", fmt.Sprintf("/users/%d", i), "status", "200")
	}
	return out
}

// BenchmarkApply is the price of a sample whose series is known.
func BenchmarkApply(b *testing.B) {
	for _, n := range []int{1_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			m := &batch.Metrics{T: make([]int64, n), V: make([]float64, n)}
			for _, ls := range benchLabels(n) {
				m.Series = append(m.Series, batch.FromLabels(ls))
			}
			r := rule.NewRelabeler(benchRules())
			r.Apply(m)
			b.ReportAllocs()
			for b.Loop() {
				r.Apply(m)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/sample")
		})
	}
}

// BenchmarkFirstUse is the price of a series that is not known.
func BenchmarkFirstUse(b *testing.B) {
	ls := benchLabels(1)[0]
	r := rule.NewRelabeler(benchRules())
	b.ReportAllocs()
	for b.Loop() {
		s := batch.FromLabels(ls)
		r.Series(s)
		s.Release()
	}
}

// BenchmarkProcess is what Prometheus pays for each sample it does not cache.
func BenchmarkProcess(b *testing.B) {
	ls := benchLabels(1)[0]
	cfgs := rule.Configs(benchRules())
	b.ReportAllocs()
	for b.Loop() {
		process(ls, cfgs)
	}
}
