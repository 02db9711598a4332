package lua_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/lua"
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

// BenchmarkRecords goes over 2000 records in each of the ways that a script has.
func BenchmarkRecords(b *testing.B) {
	for _, bc := range []struct{ name, body string }{
		{"each", `batch:each(function(m) if m.labels.job == "x" then m.value = m.value * 2 end end)`},
		{"each/kept", `local last batch:each(function(m) last = m if m.labels.job == "x" then m.value = m.value * 2 end end)`},
		{"records", `for m in batch:records() do if m.labels.job == "x" then m.value = m.value * 2 end end`},
		{"rows", `for i, job, v in batch:rows("job", "value") do if job == "x" then batch:set(i, "value", v * 2) end end`},
		{"filter", `batch:filter({ "job", "value" }, function(job, v) return job ~= "x" or v > 3 end)`},
		{"map_value", `batch:map_value(function(v) return v * 2 end)`},
	} {
		b.Run(bc.name, func(b *testing.B) {
			f := build(b, `local weir = require "weir" return weir.transform { metrics = function(batch) `+bc.body+` end }`, "")
			f.sink.Refuse(context.Canceled)
			in := benchBatch()
			b.ReportAllocs()
			for b.Loop() {
				_ = f.c.(flow.MetricsConsumer).ConsumeMetrics(context.Background(), in)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*in.Len()), "ns/record")
		})
	}
}

// BenchmarkBuild is a reload: compile, read the definition, make the first VM.
func BenchmarkBuild(b *testing.B) {
	src := read(b, "paths.lua")
	b.ReportAllocs()
	for b.Loop() {
		build(b, src, "")
	}
}

// BenchmarkVM is a VM more, which a pool makes on demand.
func BenchmarkVM(b *testing.B) {
	src := read(b, "paths.lua")
	p, err := lua.New().Compile(scripting.File{Name: "paths.lua", Text: src}, scripting.Env{Modules: modules})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.NewVM(scripting.Host{Args: map[string]any{}}); err != nil {
			b.Fatal(err)
		}
	}
}
