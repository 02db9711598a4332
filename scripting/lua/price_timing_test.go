package lua_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
)

// price is one row of the table of prices: the same work in a script and in
// native Go, on the same batch.
type price struct {
	name   string
	src    string
	native func(b *batch.Metrics) *batch.Metrics
	// fresh says how many of the series are new in each batch.
	fresh int
}

// nativeFilter returns what a component in Go makes of a batch whose rows it
// judges one by one: a batch of those that it keeps.
func nativeFilter(keep func(s *batch.Series, v float64) bool) func(*batch.Metrics) *batch.Metrics {
	return func(b *batch.Metrics) *batch.Metrics {
		out := &batch.Metrics{Source: b.Source}
		for i, s := range b.Series {
			if keep(s, b.V[i]) {
				out.Series, out.T, out.V = append(out.Series, s), append(out.T, b.T[i]), append(out.V, b.V[i])
			}
		}
		return out
	}
}

// nativeMemo returns what a component in Go makes of a batch when it remembers
// what became of each series: dropped (nil) or with other labels.
func nativeMemo() func(*batch.Metrics) *batch.Metrics {
	memo := new(batch.Memo[*batch.Series])
	var l batch.Builder
	return func(b *batch.Metrics) *batch.Metrics {
		out := &batch.Metrics{Source: b.Source, Series: make([]*batch.Series, 0, b.Len()), T: make([]int64, 0, b.Len()), V: make([]float64, 0, b.Len())}
		for i, s := range b.Series {
			to, ok := memo.Get(s)
			if !ok {
				if s.Label("job") != "x" {
					l.Reset(s)
					l.Set("team", "a")
					to = batch.NewSeries(l.Labels())
				}
				to = memo.Put(s, to)
			}
			if to != nil {
				out.Series, out.T, out.V = append(out.Series, to), append(out.T, b.T[i]), append(out.V, b.V[i])
			}
		}
		return out
	}
}

func nativeValues(f func(v float64) float64) func(*batch.Metrics) *batch.Metrics {
	return func(b *batch.Metrics) *batch.Metrics {
		out := *b
		out.V = make([]float64, len(b.V))
		for i, v := range b.V {
			out.V[i] = f(v)
		}
		return &out
	}
}

func isX(s *batch.Series, v float64) bool { return s.Label("job") == "x" && v > 3 }

var prices = []price{
	{name: "untouched", src: metrics(``), native: func(b *batch.Metrics) *batch.Metrics { return b }},
	{name: "series", src: transform(`series = function(s) if s.labels.job == "x" then return s:drop() end s.labels.team = "a" end`), native: nativeMemo()},
	{name: "series, 1 % new", src: transform(`series = function(s) if s.labels.job == "x" then return s:drop() end s.labels.team = "a" end`), native: nativeMemo(), fresh: 20},
	{name: "drop_where labels", src: metrics(`batch:drop_where("labels.job == 'x'")`), native: nativeFilter(func(s *batch.Series, _ float64) bool { return s.Label("job") != "x" })},
	{name: "drop_where labels and value", src: metrics(`batch:drop_where("labels.job == 'x' && value > 3")`), native: nativeFilter(func(s *batch.Series, v float64) bool { return !isX(s, v) })},
	{name: "drop_where value", src: metrics(`batch:drop_where("value > 8")`), native: nativeFilter(func(_ *batch.Series, v float64) bool { return v <= 8 })},
	{name: "scale", src: metrics(`batch:scale(nil, 0.001)`), native: nativeValues(func(v float64) float64 { return v * 0.001 })},
	{name: "set_label", src: metrics(`batch:set_label("team", "a")`)},
	{name: "map_label", src: metrics(`batch:map_label("job", function(j) return j .. "!" end)`)},
	{name: "filter two fields", src: metrics(`batch:filter({"job", "value"}, function(job, v) return not (job == "x" and v > 3) end)`), native: nativeFilter(func(s *batch.Series, v float64) bool { return !isX(s, v) })},
	{name: "map_value", src: metrics(`batch:map_value(function(v) return v * 0.001 end)`), native: nativeValues(func(v float64) float64 { return v * 0.001 })},
	{name: "rows two fields", src: metrics(`for i, job, v in batch:rows("job", "value") do if job == "x" and v > 3 then batch:drop(i) end end`), native: nativeFilter(func(s *batch.Series, v float64) bool { return !isX(s, v) })},
	{name: "each, reads", src: metrics(`batch:each(function(m) if m.labels.job == "x" and m.value > 3 then m:drop() end end)`), native: nativeFilter(func(s *batch.Series, v float64) bool { return !isX(s, v) })},
	{name: "each, sets value", src: metrics(`batch:each(function(m) if m.labels.job ~= "none" then m.value = m.value * 0.001 end end)`), native: nativeValues(func(v float64) float64 { return v * 0.001 })},
	{name: "each, sets label", src: metrics(`batch:each(function(m) m.labels.team = "a" end)`)},
	{name: "records, reads", src: metrics(`for m in batch:records() do if m.labels.job == "x" and m.value > 3 then m:drop() end end`), native: nativeFilter(func(s *batch.Series, v float64) bool { return !isX(s, v) })},
}

func transform(body string) string {
	return "local weir = require \"weir\"\nreturn weir.transform {\n" + body + "\n}"
}

// scripted builds a script; what it returns sends a batch through it.
func scripted(b *testing.B, src string) func(*batch.Metrics) {
	f := build(b, src, "")
	c := f.c.(flow.MetricsConsumer)
	f.sink.Refuse(context.Canceled) // it would keep every batch
	b.Cleanup(func() {
		if h := f.Health(); h.State != component.Healthy {
			b.Error(h.Message)
		}
	})
	return func(m *batch.Metrics) { _ = c.ConsumeMetrics(context.Background(), m) }
}

// BenchmarkPrices is the table of prices: what a record costs in a script, and
// beside it in native Go doing the same. Both take turns, and the medians count:
// on a busy machine both are slow, their ratio is not.
func BenchmarkPrices(b *testing.B) {
	for _, p := range prices {
		b.Run(p.name, func(b *testing.B) {
			in := benchBatch()
			send := scripted(b, p.src)
			ways := []func(*batch.Metrics){send}
			if p.native != nil {
				ways = append(ways, func(m *batch.Metrics) { p.native(m) })
			}
			for _, way := range ways {
				way(in)
			}
			took := make([][]time.Duration, len(ways))
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				if p.fresh > 0 {
					b.StopTimer()
					in = renew(in, p.fresh, n)
					b.StartTimer()
				}
				for i := range ways {
					at := (i + n) % len(ways) // the first one finds cold caches
					began := time.Now()
					ways[at](in)
					took[at] = append(took[at], time.Since(began))
				}
			}
			per := func(d []time.Duration) float64 {
				slices.Sort(d)
				return float64(d[len(d)/2]) / float64(in.Len())
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(per(took[0]), "lua-ns/record")
			if p.native != nil {
				b.ReportMetric(per(took[1]), "go-ns/record")
				b.ReportMetric(per(took[0])/per(took[1]), "lua/go")
			}
		})
	}
}

// renew returns the batch with the first n of its series replaced by new ones.
func renew(b *batch.Metrics, n, round int) *batch.Metrics {
	out := *b
	out.Series = slices.Clone(b.Series)
	var l batch.Builder
	for i := range n {
		at := (round*n + i) % len(out.Series)
		l.Reset(out.Series[at])
		l.Set("series", fmt.Sprint(round, i))
		out.Series[at].Release()
		out.Series[at] = batch.NewSeries(l.Labels())
	}
	return &out
}
