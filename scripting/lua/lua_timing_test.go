package lua_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
)

// benchBatch is 2000 samples of 2000 series with ten labels, as ENGINES has it.
func benchBatch() *batch.Metrics {
	b := &batch.Metrics{Source: batch.NewSource()}
	for i := range 2000 {
		var l batch.Builder
		l.Set(batch.NameLabel, fmt.Sprintf("metric_%d_total", i%50))
		l.Set("job", string(rune('x'+i%5)))
		for j := range 8 {
			l.Set(fmt.Sprintf("label_%d", j), fmt.Sprintf("value_%d", (i*7+j)%100))
		}
		l.Set("series", fmt.Sprint(i))
		b.Series = append(b.Series, batch.NewSeries(l.Labels()))
		b.T = append(b.T, now)
		b.V = append(b.V, float64(i%10))
	}
	return b
}

func BenchmarkHooks(b *testing.B) {
	for _, bench := range []struct{ name, src string }{
		{"empty", metrics(``)},
		{"series_steady", `local weir = require "weir" return weir.transform { series = function(s) if s.labels.job == "x" then return s:drop() end s.labels.team = "a" end }`},
		{"drop_where_labels", metrics(`batch:drop_where("labels.job == 'x'")`)},
		{"drop_where_value", metrics(`batch:drop_where("labels.job == 'x' && value > 3")`)},
		{"scale", metrics(`batch:scale(nil, 0.001)`)},
		{"set_label", metrics(`batch:set_label("team", "a")`)},
		{"map_label", metrics(`batch:map_label("job", function(j) return j .. "!" end)`)},
		{"map_value", metrics(`batch:map_value(function(v) return v * 0.001 end)`)},
		{"filter", metrics(`batch:filter({"job", "value"}, function(job, v) return not (job == "x" and v > 3) end)`)},
		{"rows", metrics(`for i, job, v in batch:rows("job", "value") do if job == "x" and v > 3 then batch:drop(i) end end`)},
		{"each_labels", metrics(`batch:each(function(m) if m.labels.job == "x" and m.value > 3 then m:drop() end end)`)},
		{"each_value", metrics(`batch:each(function(m) m.value = m.value * 0.001 end)`)},
		{"records_label", metrics(`for m in batch:records() do if m.labels.job == "x" then m:drop() end end`)},
		{"each_set_label", metrics(`batch:each(function(m) m.labels.team = "a" end)`)},
	} {
		b.Run(bench.name, func(b *testing.B) {
			f := build(b, bench.src, "")
			in := benchBatch()
			c := f.c.(flow.MetricsConsumer)
			f.sink.Refuse(context.Canceled) // it would keep every batch
			send := func() { _ = c.ConsumeMetrics(context.Background(), in) }
			send()
			if h := f.Health(); h.State != component.Healthy {
				b.Fatal(h.Message)
			}
			b.ReportAllocs()
			for b.Loop() {
				send()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(in.Len()), "ns/record")
		})
	}
}

// BenchmarkSeriesNew is the series hook asked about a series for the first time.
func BenchmarkSeriesNew(b *testing.B) {
	f := build(b, `local weir = require "weir" return weir.transform { series = function(s) if s.labels.job == "x" then return s:drop() end s.labels.team = "a" end }`, "")
	f.sink.Refuse(context.Canceled)
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		b.StopTimer()
		in := benchBatch()
		b.StartTimer()
		_ = f.c.(flow.MetricsConsumer).ConsumeMetrics(context.Background(), in)
		n += in.Len()
		b.StopTimer()
		for _, s := range in.Series {
			s.Release()
		}
		b.StartTimer()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/series")
}

// BenchmarkBuild is a reload: compile, read the definition, make the first VM.
func BenchmarkBuild(b *testing.B) {
	src := read(b, "paths.lua")
	b.ReportAllocs()
	for b.Loop() {
		build(b, src, "")
	}
}
