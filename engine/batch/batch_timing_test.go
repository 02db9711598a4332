package batch_test

import (
	"fmt"
	"testing"

	"github.com/weir-run/weir/engine/batch"
)

func manySeries(n int) []*batch.Series {
	out := make([]*batch.Series, n)
	for i := range out {
		out[i] = batch.NewSeries([]batch.Label{
			{Name: "__name__", Value: "node_cpu_seconds_total"}, {Name: "cpu", Value: fmt.Sprint(i)},
			{Name: "instance", Value: "localhost:9100"}, {Name: "job", Value: "node"}, {Name: "mode", Value: "idle"},
		})
	}
	return out
}

func BenchmarkMemoGet(b *testing.B) {
	for _, n := range []int{1000, 1_000_000} {
		b.Run(fmt.Sprintf("series=%d", n), func(b *testing.B) {
			var m batch.Memo[*batch.Series]
			all := manySeries(n)
			for _, s := range all {
				m.Put(s, s)
			}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				if _, ok := m.Get(all[i]); !ok {
					b.Fatal("a miss")
				}
				if i++; i == n {
					i = 0
				}
			}
			for _, s := range all {
				s.Release()
			}
		})
	}
}

func BenchmarkSeriesLabel(b *testing.B) {
	s := manySeries(1)[0]
	b.ReportAllocs()
	for b.Loop() {
		if s.Label("job") != "node" {
			b.Fatal("wrong label")
		}
	}
}

func BenchmarkBuilderDerive(b *testing.B) {
	s := manySeries(1)[0]
	var l batch.Builder
	b.ReportAllocs()
	for b.Loop() {
		l.Reset(s)
		l.Set("region", "eu")
		l.Series(s).Release()
	}
}

func BenchmarkIntern(b *testing.B) {
	in := batch.NewInterner(0)
	var ls [][]batch.Label
	for _, s := range manySeries(10_000) {
		ls = append(ls, s.AppendLabels(nil))
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		in.Intern(ls[i%len(ls)], nil, epoch)
		i++
	}
}

func BenchmarkAppendText(b *testing.B) {
	m, err := batch.ParseText(scrapeBody(1000), batch.TextOptions{})
	if err != nil {
		b.Fatal(err)
	}
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		buf = batch.AppendText(buf[:0], m)
	}
	b.SetBytes(int64(len(buf)))
}

func BenchmarkParseText(b *testing.B) {
	text := scrapeBody(1000)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := batch.ParseText(text, batch.TextOptions{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSelect(b *testing.B) {
	m, err := batch.ParseText(scrapeBody(10_000), batch.TextOptions{})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		m.Select(func(i int) bool { return i%10 != 0 })
	}
}

// BenchmarkSettle compares the output of a new version with that of the version before.
func BenchmarkSettle(b *testing.B) {
	column := func(version string) (ss []*batch.Series) {
		for i := range 1000 {
			labels := []batch.Label{{Name: batch.NameLabel, Value: "node_cpu_seconds_total"}, {Name: "cpu", Value: fmt.Sprint(i)}}
			if version != "" {
				labels = append(labels, batch.Label{Name: "version", Value: version})
			}
			ss = append(ss, batch.NewSeries(labels))
		}
		return ss
	}
	for name, versions := range map[string][2]string{"same": {"", ""}, "changed": {"1", "2"}} {
		b.Run(name, func(b *testing.B) {
			o := batch.NewOutputs()
			o.Sent(1, rowsOf(1, column(versions[0])...))
			next := rowsOf(1, column(versions[1])...)
			b.ReportAllocs()
			for b.Loop() {
				o.Settle(2, next, 20)
			}
		})
	}
}
