package batch_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"

	"github.com/weir-run/weir/engine/batch"
)

// random generates batches that use every feature, preferably with odd values.
type random struct{ *rand.Rand }

func newRandom(seed uint64) random { return random{rand.New(rand.NewPCG(seed, 1))} }

func pick[T any](r random, from []T) T { return from[r.IntN(len(from))] }

var (
	oddStrings = []string{"a", "path", "le", "", "a b", "ü", "\"", "\\", "\n", "\xff\x00", "{", "}", "=,#", "  ", "\u2028", "stale", "1", "x.y", "-"}
	oddFloats  = []uint64{0, 1 << 63, 0x7ff0000000000002, 0x7ff8000000000001, 0x7ff8000000000000, 0xfff8000000000001,
		math.Float64bits(math.Inf(1)), math.Float64bits(math.Inf(-1)), 1, math.Float64bits(0.1), math.Float64bits(math.MaxFloat64), math.Float64bits(12)}
	oddTimes = []int64{0, -1, 1700000000000, math.MaxInt64, math.MinInt64}
	oddNames = []string{"up", "x", "x_bucket", "x_sum", "x_total", "x_info", "a.b", "ns:rate", "", "{", "stale", "#", "x\ny"}
	oddTypes = []model.MetricType{"", "counter", "gauge", "histogram", "gaugehistogram", "summary", "info", "stateset", "unknown"}
)

func (r random) float() float64 {
	if r.IntN(3) == 0 {
		return math.Float64frombits(r.Uint64())
	}
	return math.Float64frombits(pick(r, oddFloats))
}

func (r random) labels() []batch.Label {
	var b batch.Builder
	for range r.IntN(5) {
		if n := pick(r, oddStrings); n != "" {
			b.Set(n, pick(r, oddStrings))
		}
	}
	return slices.Clone(b.Labels())
}

func (r random) series() *batch.Series {
	var b batch.Builder
	for _, l := range r.labels() {
		b.Set(l.Name, l.Value)
	}
	b.Set(batch.NameLabel, pick(r, oddNames))
	s := batch.NewSeries(b.Labels())
	if r.IntN(3) > 0 {
		m := batch.Metadata{Type: pick(r, oddTypes)}
		if r.IntN(2) == 0 {
			m.Help = pick(r, oddStrings)
		}
		if r.IntN(3) == 0 {
			m.Unit = pick(r, oddStrings)
		}
		// Metadata with empty fields only is the same as no metadata.
		if m != (batch.Metadata{}) {
			s.SetMeta(&m)
		}
	}
	return s
}

func (r random) spans() (spans []histogram.Span, n int) {
	for range r.IntN(3) {
		s := histogram.Span{Offset: int32(r.IntN(7) - 3), Length: uint32(r.IntN(4))}
		spans, n = append(spans, s), n+int(s.Length)
	}
	return spans, n
}

func (r random) floats(n int) (vs []float64) {
	for range n {
		vs = append(vs, r.float())
	}
	return vs
}

func (r random) ints(n int) (vs []int64) {
	for range n {
		vs = append(vs, r.Int64N(100)-50)
	}
	return vs
}

func (r random) histogram(row int) batch.Histogram {
	ps, pn := r.spans()
	ns, nn := r.spans()
	hint := histogram.CounterResetHint(r.IntN(4))
	if r.IntN(2) == 0 {
		h := &histogram.FloatHistogram{
			CounterResetHint: hint, Schema: int32(r.IntN(13) - 4), ZeroThreshold: r.float(), ZeroCount: r.float(),
			Count: r.float(), Sum: r.float(), PositiveSpans: ps, PositiveBuckets: r.floats(pn), NegativeSpans: ns, NegativeBuckets: r.floats(nn),
		}
		return batch.Histogram{Row: row, Float: h}
	}
	h := &histogram.Histogram{
		CounterResetHint: hint, Schema: int32(r.IntN(13) - 4), ZeroThreshold: r.float(), ZeroCount: r.Uint64(),
		Count: r.Uint64(), Sum: r.float(), PositiveSpans: ps, PositiveBuckets: r.ints(pn), NegativeSpans: ns, NegativeBuckets: r.ints(nn),
	}
	if r.IntN(3) == 0 {
		h.Schema, h.CustomValues = histogram.CustomBucketsSchema, r.floats(1+r.IntN(3))
	}
	return batch.Histogram{Row: row, Int: h}
}

func (r random) metrics(rows int) *batch.Metrics {
	b := &batch.Metrics{Source: r.Uint64()}
	for i := range rows {
		v := r.float()
		if r.IntN(4) == 0 {
			h := r.histogram(i)
			if h.Int != nil {
				v = h.Int.Sum
			} else {
				v = h.Float.Sum
			}
			b.Histograms = append(b.Histograms, h)
		}
		if i > 0 && r.IntN(3) == 0 {
			b.Series = append(b.Series, b.Series[r.IntN(i)])
		} else {
			b.Series = append(b.Series, r.series())
		}
		b.T, b.V = append(b.T, pick(r, oddTimes)), append(b.V, v)
		for r.IntN(3) == 0 {
			e := batch.Exemplar{Row: i, Labels: r.labels(), Value: r.float()}
			if r.IntN(2) == 0 {
				e.HasT, e.T = true, pick(r, oddTimes)
			}
			b.Exemplars = append(b.Exemplars, e)
		}
		if r.IntN(3) == 0 {
			b.Starts = append(b.Starts, batch.Start{Row: i, T: pick(r, oddTimes)})
		}
	}
	return b
}

// scrapeBody returns a scrape body of n series as node_exporter writes it.
func scrapeBody(n int) string {
	var b strings.Builder
	for i := range n {
		if i%10 == 0 {
			b.WriteString("# HELP node_cpu_seconds_" + string(rune('a'+i/10%26)) + " Seconds the CPUs spent in each mode.\n")
			b.WriteString("# TYPE node_cpu_seconds_" + string(rune('a'+i/10%26)) + " counter\n")
		}
		b.WriteString("node_cpu_seconds_" + string(rune('a'+i/10%26)) + `{cpu="` + string(rune('0'+i%10)) + `",mode="idle",instance="localhost:9100"} 90000.25` + "\n")
	}
	return b.String()
}
