package batch

import (
	"math"
	"strconv"

	"github.com/prometheus/prometheus/model/histogram"
)

// resetHints are the names of the counter reset hints, indexed by their number.
var resetHints = [...]string{"unknown", "yes", "no", "gauge"}

// appendHistogram appends {key:value,…}. Count comes first and is always
// written. Other fields are omitted if they are zero.
func appendHistogram(dst []byte, h Histogram) []byte {
	w := histogramWriter{append(dst, '{')}
	if h.Int != nil {
		w.uint("count", h.Int.Count, true)
		w.float("sum", h.Int.Sum)
		w.shape(h.Int.CounterResetHint, h.Int.Schema, h.Int.CustomValues, h.Int.ZeroThreshold)
		w.uint("zero_count", h.Int.ZeroCount, false)
		w.ints("positive", h.Int.PositiveSpans, h.Int.PositiveBuckets)
		w.ints("negative", h.Int.NegativeSpans, h.Int.NegativeBuckets)
	} else {
		w.key("counts")
		w.dst = append(w.dst, "float,count:"...)
		w.dst = appendFloat(w.dst, h.Float.Count)
		w.float("sum", h.Float.Sum)
		w.shape(h.Float.CounterResetHint, h.Float.Schema, h.Float.CustomValues, h.Float.ZeroThreshold)
		w.float("zero_count", h.Float.ZeroCount)
		w.spans("positive", h.Float.PositiveSpans)
		w.floats("positive_buckets", h.Float.PositiveBuckets)
		w.spans("negative", h.Float.NegativeSpans)
		w.floats("negative_buckets", h.Float.NegativeBuckets)
	}
	return append(w.dst, '}')
}

type histogramWriter struct{ dst []byte }

func (w *histogramWriter) key(name string) {
	if w.dst[len(w.dst)-1] != '{' {
		w.dst = append(w.dst, ',')
	}
	w.dst = append(w.dst, name...)
	w.dst = append(w.dst, ':')
}

func (w *histogramWriter) uint(name string, v uint64, always bool) {
	if v != 0 || always {
		w.key(name)
		w.dst = strconv.AppendUint(w.dst, v, 10)
	}
}

func (w *histogramWriter) float(name string, v float64) {
	if math.Float64bits(v) != 0 {
		w.key(name)
		w.dst = appendFloat(w.dst, v)
	}
}

func (w *histogramWriter) shape(hint histogram.CounterResetHint, schema int32, custom []float64, zero float64) {
	if hint != histogram.UnknownCounterReset {
		w.key("reset")
		if int(hint) < len(resetHints) {
			w.dst = append(w.dst, resetHints[hint]...)
		} else {
			w.dst = strconv.AppendUint(w.dst, uint64(hint), 10)
		}
	}
	if schema != 0 {
		w.key("schema")
		w.dst = strconv.AppendInt(w.dst, int64(schema), 10)
	}
	w.floats("custom_values", custom)
	w.float("zero_threshold", zero)
}

func (w *histogramWriter) spans(side string, spans []histogram.Span) {
	if len(spans) == 0 {
		return
	}
	w.key(side + "_spans")
	for i, s := range spans {
		w.dst = append(w.dst, listMark(i))
		w.dst = strconv.AppendInt(w.dst, int64(s.Offset), 10)
		w.dst = append(w.dst, ':')
		w.dst = strconv.AppendUint(w.dst, uint64(s.Length), 10)
	}
	w.dst = append(w.dst, ']')
}

// ints appends buckets as absolute counts; deltas contains differences.
func (w *histogramWriter) ints(side string, spans []histogram.Span, deltas []int64) {
	w.spans(side, spans)
	if len(deltas) == 0 {
		return
	}
	w.key(side + "_buckets")
	var n int64
	for i, d := range deltas {
		n += d
		w.dst = append(w.dst, listMark(i))
		w.dst = strconv.AppendInt(w.dst, n, 10)
	}
	w.dst = append(w.dst, ']')
}

func (w *histogramWriter) floats(name string, vs []float64) {
	if len(vs) == 0 {
		return
	}
	w.key(name)
	for i, v := range vs {
		w.dst = append(w.dst, listMark(i))
		w.dst = appendFloat(w.dst, v)
	}
	w.dst = append(w.dst, ']')
}

func listMark(i int) byte {
	if i == 0 {
		return '['
	}
	return ','
}
