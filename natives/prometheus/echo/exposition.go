package echo

import (
	"math"
	"sort"
	"strconv"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"

	"github.com/weir-run/weir/engine/batch"
)

// appendExposition appends b as one exposition.
//
// Formats: https://prometheus.io/docs/instrumenting/exposition_formats/ and
// https://prometheus.io/docs/specs/om/open_metrics_spec/
func appendExposition(dst []byte, b *batch.Metrics, f Format) []byte {
	w := writer{dst: dst, b: b, openMetrics: f == OpenMetrics}
	order, rows := families(b, w.openMetrics)
	for _, fam := range order {
		w.header(fam)
		for _, row := range rows[fam] {
			w.row(fam, row)
		}
	}
	if w.openMetrics {
		w.dst = append(w.dst, "# EOF\n"...)
	}
	return w.dst
}

// family is a metric family. meta is nil if it is unknown.
type family struct {
	name string
	meta *batch.Metadata
}

// families groups the rows by family, in order of their first rows.
func families(b *batch.Metrics, openMetrics bool) (order []family, rows map[family][]int) {
	rows = map[family][]int{}
	native := map[int]bool{}
	for _, h := range b.Histograms {
		native[h.Row] = true
	}
	meta := map[string]*batch.Metadata{} // the metadata of the first row applies to all rows of that name
	for row, s := range b.Series {
		fam := family{s.Name(), s.Meta()}
		if fam.meta != nil {
			fam.name = familyName(fam.name, fam.meta.Type, openMetrics)
			if fam.meta.Type == model.MetricTypeCounter && openMetrics && fam.name == s.Name() {
				// In OpenMetrics, counters must end in _total.
				fam.meta = &batch.Metadata{Help: fam.meta.Help}
			}
		}
		if native[row] {
			fam.meta = &batch.Metadata{Type: model.MetricTypeHistogram, Help: help(fam.meta)}
		}
		if m, ok := meta[fam.name]; ok {
			fam.meta = m
		} else {
			meta[fam.name] = fam.meta
		}
		if rows[fam] == nil {
			order = append(order, fam)
		}
		rows[fam] = append(rows[fam], row)
	}
	return order, rows
}

func help(m *batch.Metadata) string {
	if m == nil {
		return ""
	}
	return m.Help
}

// familyName returns the name in the TYPE line of a sample.
func familyName(sample string, t model.MetricType, openMetrics bool) string {
	var suffixes []string
	switch t {
	case model.MetricTypeCounter:
		if openMetrics {
			suffixes = []string{"_total"}
		}
	case model.MetricTypeHistogram:
		suffixes = []string{"_bucket", "_count", "_sum"}
	case model.MetricTypeGaugeHistogram:
		suffixes = []string{"_bucket", "_gcount", "_gsum"}
	case model.MetricTypeSummary:
		suffixes = []string{"_count", "_sum"}
	case model.MetricTypeInfo:
		suffixes = []string{"_info"}
	}
	for _, s := range suffixes {
		if base, ok := strings.CutSuffix(sample, s); ok && base != "" {
			return base
		}
	}
	return sample
}

// typeName returns the name of a type in the format.
func typeName(t model.MetricType, openMetrics bool) string {
	if openMetrics {
		if t == "" {
			return "unknown"
		}
		return string(t)
	}
	switch t {
	case model.MetricTypeCounter, model.MetricTypeGauge, model.MetricTypeHistogram, model.MetricTypeSummary:
		return string(t)
	case model.MetricTypeInfo, model.MetricTypeStateset:
		return "gauge"
	}
	return "untyped"
}

type writer struct {
	dst         []byte
	b           *batch.Metrics
	openMetrics bool
}

// span returns the range of the entries for a row in a sparse column with n
// entries.
func span(n, row int, rowOf func(i int) int) (from, to int) {
	from = sort.Search(n, func(i int) bool { return rowOf(i) >= row })
	for to = from; to < n && rowOf(to) == row; to++ {
	}
	return from, to
}

func (w *writer) header(f family) {
	if f.meta == nil {
		return
	}
	if f.meta.Help != "" {
		w.comment("HELP", f.name)
		w.escaped(f.meta.Help, w.openMetrics)
		w.dst = append(w.dst, '\n')
	}
	w.comment("TYPE", f.name)
	w.dst = append(w.dst, typeName(f.meta.Type, w.openMetrics)...)
	w.dst = append(w.dst, '\n')
	if f.meta.Unit != "" && w.openMetrics && strings.HasSuffix(f.name, "_"+f.meta.Unit) {
		w.comment("UNIT", f.name)
		w.dst = append(w.dst, f.meta.Unit...)
		w.dst = append(w.dst, '\n')
	}
}

func (w *writer) comment(kind, name string) {
	w.dst = append(w.dst, "# "...)
	w.dst = append(w.dst, kind...)
	w.dst = append(w.dst, ' ')
	if model.LegacyValidation.IsValidMetricName(name) {
		w.dst = append(w.dst, name...)
	} else {
		w.quoted(name)
	}
	w.dst = append(w.dst, ' ')
}

func (w *writer) row(f family, row int) {
	s := w.b.Series[row]
	var start int64
	if from, to := span(len(w.b.Starts), row, func(i int) int { return w.b.Starts[i].Row }); from < to {
		start = w.b.Starts[from].T
	}
	from, to := span(len(w.b.Histograms), row, func(i int) int { return w.b.Histograms[i].Row })
	if from < to {
		w.histogram(row, w.b.Histograms[from])
		w.created(f, s, start)
		return
	}
	if batch.IsStale(w.b.V[row]) && !w.openMetrics {
		w.dst = append(w.dst, "# stale:\n"...)
	}
	w.sample(s, s.Name(), "", w.b.V[row], row)
	w.exemplar(row)
	w.dst = append(w.dst, '\n')
	if strings.HasSuffix(s.Name(), "_total") || strings.HasSuffix(s.Name(), "_count") {
		w.created(f, s, start)
	}
}

// histogram writes a native histogram as an approximate classic histogram.
func (w *writer) histogram(row int, h batch.Histogram) {
	s := w.b.Series[row]
	fh := h.Float
	if fh == nil {
		fh = h.Int.ToFloat(nil)
	}
	cumulative := 0.0
	for it := fh.AllBucketIterator(); it.Next(); {
		var bucket histogram.Bucket[float64] = it.At()
		cumulative += bucket.Count
		if !math.IsInf(bucket.Upper, 1) {
			w.bucket(s, bucket.Upper, cumulative, row)
		}
	}
	w.bucket(s, math.Inf(1), fh.Count, row)
	w.sample(s, s.Name()+"_sum", "", fh.Sum, row)
	w.dst = append(w.dst, '\n')
	w.sample(s, s.Name()+"_count", "", fh.Count, row)
	w.dst = append(w.dst, '\n')
}

func (w *writer) bucket(s *batch.Series, le, count float64, row int) {
	w.sample(s, s.Name()+"_bucket", formatFloat(le), count, row)
	w.dst = append(w.dst, '\n')
}

// created writes a start timestamp unless it is 0. Only OpenMetrics has them, and
// only for counters, histograms and summaries.
func (w *writer) created(f family, s *batch.Series, ms int64) {
	if ms == 0 || !w.openMetrics || f.meta == nil {
		return
	}
	switch f.meta.Type {
	case model.MetricTypeCounter, model.MetricTypeHistogram, model.MetricTypeSummary:
		w.labels(s, f.name+"_created", "")
		w.dst = append(w.dst, ' ')
		w.dst = appendSeconds(w.dst, ms)
		w.dst = append(w.dst, '\n')
	}
}

func (w *writer) sample(s *batch.Series, name, le string, v float64, row int) {
	w.labels(s, name, le)
	w.dst = append(w.dst, ' ')
	w.dst = append(w.dst, formatFloat(v)...)
	w.dst = append(w.dst, ' ')
	if w.openMetrics {
		w.dst = appendSeconds(w.dst, w.b.T[row])
	} else {
		w.dst = strconv.AppendInt(w.dst, w.b.T[row], 10)
	}
}

func (w *writer) exemplar(row int) {
	if !w.openMetrics {
		return
	}
	from, to := span(len(w.b.Exemplars), row, func(i int) int { return w.b.Exemplars[i].Row })
	if from == to {
		return
	}
	e := w.b.Exemplars[to-1] // a line can have only one: use the latest
	w.dst = append(w.dst, " # {"...)
	for i, l := range e.Labels {
		if i > 0 {
			w.dst = append(w.dst, ',')
		}
		w.label(l.Name, l.Value)
	}
	w.dst = append(w.dst, "} "...)
	w.dst = append(w.dst, formatFloat(e.Value)...)
	if e.HasT {
		w.dst = append(w.dst, ' ')
		w.dst = appendSeconds(w.dst, e.T)
	}
}

// labels writes the name and labels of a sample. If le is not "", it replaces the
// label le.
func (w *writer) labels(s *batch.Series, name, le string) {
	open, sep := false, byte('{')
	if model.LegacyValidation.IsValidMetricName(name) {
		w.dst = append(w.dst, name...)
	} else if name != "" {
		w.dst = append(w.dst, '{')
		w.quoted(name)
		open, sep = true, ','
	}
	put := func(n, v string) {
		w.dst = append(w.dst, sep)
		w.label(n, v)
		open, sep = true, ','
	}
	for n, v := range s.Labels() {
		if n == batch.NameLabel || n == model.BucketLabel && le != "" {
			continue
		}
		put(n, v)
	}
	if le != "" {
		put(model.BucketLabel, le)
	}
	if name == "" && !open {
		w.dst = append(w.dst, '{')
		open = true
	}
	if open {
		w.dst = append(w.dst, '}')
	}
}

func (w *writer) label(name, value string) {
	if model.LegacyValidation.IsValidLabelName(name) {
		w.dst = append(w.dst, name...)
	} else {
		w.quoted(name)
	}
	w.dst = append(w.dst, '=')
	w.quoted(value)
}

func (w *writer) quoted(s string) {
	w.dst = append(w.dst, '"')
	w.escaped(s, true)
	w.dst = append(w.dst, '"')
}

func (w *writer) escaped(s string, quotes bool) {
	for i := range len(s) {
		switch c := s[i]; {
		case c == '\\':
			w.dst = append(w.dst, `\\`...)
		case c == '\n':
			w.dst = append(w.dst, `\n`...)
		case c == '"' && quotes:
			w.dst = append(w.dst, `\"`...)
		default:
			w.dst = append(w.dst, c)
		}
	}
}

func formatFloat(v float64) string {
	switch {
	case math.IsNaN(v):
		return "NaN"
	case math.IsInf(v, 1):
		return "+Inf"
	case math.IsInf(v, -1):
		return "-Inf"
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

// appendSeconds formats Unix ms as seconds.
func appendSeconds(dst []byte, ms int64) []byte {
	return strconv.AppendFloat(dst, float64(ms)/1000, 'f', -1, 64)
}
