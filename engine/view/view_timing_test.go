package view_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/view"
)

const timingRows = 2000

// timingBatch has 2000 rows, each of a different series with 10 labels.
func timingBatch() *batch.Metrics {
	var ss []*batch.Series
	for i := range timingRows {
		ss = append(ss, series("http_requests_total", "cluster", "eu-1", "code", "200", "env", "prod",
			"i", fmt.Sprint(i), "instance", "10.0.0.1:9100", "job", fmt.Sprint("job", i%10),
			"method", "GET", "path", fmt.Sprint("/users/", i%100), "zone", "a"))
	}
	b := metrics(ss...)
	for i := range b.V {
		b.V[i] = float64(i % 7)
	}
	return b
}

// versus runs native and scripted alternately, so that a busy host slows down
// both, and reports the nanoseconds per row of each and their ratio.
func versus(b *testing.B, native, scripted func()) {
	b.Helper()
	b.ReportAllocs()
	scripted() // fills the memos
	var tn, ts time.Duration
	for b.Loop() {
		t0 := time.Now()
		native()
		t1 := time.Now()
		scripted()
		tn, ts = tn+t1.Sub(t0), ts+time.Since(t1)
	}
	rows := float64(b.N) * timingRows
	b.ReportMetric(float64(tn)/rows, "native-ns/row")
	b.ReportMetric(float64(ts)/rows, "view-ns/row")
	b.ReportMetric(float64(ts)/float64(tn), "ratio")
	b.ReportMetric(0, "ns/op")
}

func BenchmarkView(b *testing.B) {
	in := timingBatch()
	g := newCache()
	defer g.Close()
	m := new(view.Metrics)
	var sink *batch.Metrics
	script := func(edit func() error) func() {
		return func() {
			m.Reset(in, g, start)
			if err := edit(); err != nil {
				b.Fatal(err)
			}
			sink = m.Apply().Batch
		}
	}
	filter := func(keep func(i int) bool) func() {
		return func() {
			out := &batch.Metrics{}
			for i, s := range in.Series {
				if keep(i) {
					out.Series, out.T, out.V = append(out.Series, s), append(out.T, in.T[i]), append(out.V, in.V[i])
				}
			}
			sink = out
		}
	}
	relabel := func(edit func(b *batch.Builder)) func() {
		var bd batch.Builder
		return func() {
			out := *in
			out.Series = make([]*batch.Series, len(in.Series))
			for i, s := range in.Series {
				bd.Reset(s)
				edit(&bd)
				_ = bd.Labels()
				out.Series[i] = s
			}
			sink = &out
		}
	}
	scale := func(match func(i int) bool) func() {
		return func() {
			out := *in
			out.V = append([]float64(nil), in.V...)
			for i := range out.V {
				if match(i) {
					out.V[i] *= 0.001
				}
			}
			sink = &out
		}
	}
	all := func(int) bool { return true }

	b.Run("untouched", func(b *testing.B) { versus(b, func() { sink = in }, script(func() error { return nil })) })
	b.Run("series kept", func(b *testing.B) {
		versus(b, relabel(func(*batch.Builder) {}), script(func() error {
			return m.RunSeries(func(int, *view.Series) error { return nil })
		}))
	})
	b.Run("set_label", func(b *testing.B) {
		versus(b, relabel(func(bd *batch.Builder) { bd.Set("team", "a") }), script(func() error { return m.SetLabelAll("team", "a") }))
	})
	b.Run("map_label", func(b *testing.B) {
		versus(b, relabel(func(bd *batch.Builder) { bd.Set("path", "/users/:id") }), script(func() error {
			return m.MapLabel("s", "path", func(string) (string, bool, error) { return "/users/:id", false, nil })
		}))
	})
	b.Run("drop_where labels", func(b *testing.B) {
		versus(b, filter(func(i int) bool { return in.Series[i].Label("job") != "job3" }), script(func() error {
			return m.DropWhere(`labels.job == "job3"`)
		}))
	})
	b.Run("drop_where labels and value", func(b *testing.B) {
		versus(b, filter(func(i int) bool { return !(in.Series[i].Label("job") == "job3" && in.V[i] > 3) }), script(func() error {
			return m.DropWhere(`labels.job == "job3" && value > 3`)
		}))
	})
	b.Run("drop_where nothing", func(b *testing.B) {
		versus(b, filter(func(i int) bool { return in.Series[i].Label("job") != "x" }), script(func() error {
			return m.DropWhere(`labels.job == "x"`)
		}))
	})
	b.Run("scale", func(b *testing.B) {
		versus(b, scale(all), script(func() error { return m.Scale("", 0.001) }))
	})
	b.Run("scale where", func(b *testing.B) {
		versus(b, scale(func(i int) bool { return in.Series[i].Label("job") == "job3" }), script(func() error { return m.Scale(`labels.job == "job3"`, 0.001) }))
	})
	b.Run("set_value", func(b *testing.B) {
		versus(b, scale(all), script(func() error { return m.SetValueWhere("", "value * 0.001") }))
	})
	b.Run("column", func(b *testing.B) {
		n := 0
		versus(b, func() {
			for _, s := range in.Series {
				n += len(s.Label("job"))
			}
		}, script(func() error {
			c := m.Column("job")
			for i := range m.Len() {
				n += len(*c.At(m.Series(i)))
			}
			return nil
		}))
	})
	b.Run("rename each", func(b *testing.B) {
		versus(b, relabel(func(bd *batch.Builder) { bd.Set(batch.NameLabel, "renamed") }), script(func() error {
			for i := range m.Len() {
				m.Mark(i)
				if err := m.SetName(i, "renamed"); err != nil {
					return err
				}
			}
			return nil
		}))
	})
	_ = sink
}

// BenchmarkManySeries reads a memo of a million series in scrape order. It
// includes the cache misses that the other benchmarks do not have.
func BenchmarkManySeries(b *testing.B) {
	if testing.Short() {
		b.Skip("needs a gigabyte")
	}
	g := newCache()
	defer g.Close()
	var batches []*batch.Metrics
	for range 500 {
		in := timingBatch()
		in.Source = batch.NewSource()
		batches = append(batches, in)
	}
	m := new(view.Metrics)
	run := func(edit func() error) func(b *testing.B) {
		return func(b *testing.B) {
			for _, in := range batches {
				m.Reset(in, g, start)
				_ = edit()
				m.Apply()
			}
			for b.Loop() {
				for _, in := range batches {
					m.Reset(in, g, start)
					_ = edit()
					m.Apply()
				}
			}
			b.ReportMetric(float64(b.Elapsed())/float64(b.N)/500/timingRows, "ns/row")
			b.ReportMetric(0, "ns/op")
		}
	}
	b.Run("series kept", run(func() error { return m.RunSeries(func(int, *view.Series) error { return nil }) }))
	b.Run("drop_where", run(func() error { return m.DropWhere(`labels.job == "x" && value > 3`) }))
	b.Run("set_label", run(func() error { return m.SetLabelAll("team", "a") }))
}

// BenchmarkSeriesHook calls the series hook for each row, as in the first batch after a
// new version took over.
func BenchmarkSeriesHook(b *testing.B) {
	g := newCache()
	defer g.Close()
	in := timingBatch()
	m := new(view.Metrics)
	b.ReportAllocs()
	for b.Loop() {
		m.Reset(in, g, start)
		if err := m.RunSeries(func(int, *view.Series) error { return view.ErrSkip }); err != nil {
			b.Fatal(err)
		}
		m.Apply()
	}
}
