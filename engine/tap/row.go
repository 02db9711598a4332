package tap

import (
	"iter"
	"math"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/flow"
)

// row is one row of a batch of either signal.
type row struct {
	m      *batch.Metrics
	l      *batch.Logs
	i      int
	series *batch.Series // of a line: its stream
	t      int64         // Unix ms; of a line: Unix ns
}

func rowsOf(b flow.Batches) iter.Seq[row] {
	return func(yield func(row) bool) {
		for _, m := range b.Metrics {
			for i := range m.Len() {
				if !yield(metricsRow(m, i)) {
					return
				}
			}
		}
		for _, l := range b.Logs {
			for i := range l.Len() {
				if !yield(logsRow(l, i)) {
					return
				}
			}
		}
	}
}

func metricsRow(m *batch.Metrics, i int) row { return row{m: m, i: i, series: m.Series[i], t: m.T[i]} }
func logsRow(l *batch.Logs, i int) row       { return row{l: l, i: i, series: l.Stream[i], t: l.T[i]} }

func (r row) histogram() (h batch.Histogram, ok bool) {
	if r.m == nil {
		return h, false
	}
	hs := r.m.Histograms
	at := sort.Search(len(hs), func(k int) bool { return hs[k].Row >= r.i })
	if at == len(hs) || hs[at].Row != r.i {
		return h, false
	}
	return hs[at], true
}

// stale reports whether the row is a staleness marker.
func (r row) stale() bool { return r.m != nil && batch.IsStale(r.m.V[r.i]) }

// value is the value of a sample as text.
func (r row) value() string {
	if h, ok := r.histogram(); ok {
		if h.Int != nil {
			return h.Int.String()
		}
		return h.Float.String()
	}
	if v := r.m.V[r.i]; !batch.IsStale(v) {
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	return "stale"
}

// content is what the labels and the time do not contain: the value, or the
// line and its metadata.
type content struct {
	bits uint64
	text string
}

func (r row) content() (c content) {
	if r.l != nil {
		c.text = r.l.Line[r.i]
		if meta := r.l.MetaOf(r.i); len(meta) > 0 {
			c.text = string(batch.AppendMeta(nil, meta)) + c.text
		}
		return c
	}
	c.bits = math.Float64bits(r.m.V[r.i])
	if _, ok := r.histogram(); ok {
		c.text = r.value()
	}
	return c
}

func (r row) time() time.Time {
	if r.l != nil {
		return time.Unix(0, r.t).UTC()
	}
	return time.UnixMilli(r.t).UTC()
}

// appendText appends the row in the text form of batches, on one line.
func (r row) appendText(dst []byte) []byte {
	var lines []byte
	if r.l != nil {
		lines = batch.AppendLogsText(nil, r.l.Rows([]int{r.i}))
	} else {
		lines = batch.AppendText(nil, r.m.Rows([]int{r.i}))
	}
	// Lines above it contain the type and the help of the metric.
	text := strings.TrimSuffix(string(lines), "\n")
	return append(dst, text[strings.LastIndexByte(text, '\n')+1:]...)
}

// record is a row in JSON.
type record struct {
	Name   string            `json:"name,omitempty"` // of a metric
	Labels map[string]string `json:"labels"`
	Value  string            `json:"value,omitempty"` // of a sample; a histogram's is text
	Type   string            `json:"type,omitempty"`  // of a metric
	Line   *string           `json:"line,omitempty"`
	Meta   map[string]string `json:"meta,omitempty"` // of a line
	Time   time.Time         `json:"time,omitzero"`
}

func (r row) record() *record {
	out := &record{Labels: map[string]string{}, Time: r.time()}
	for n, v := range r.series.Labels() {
		if r.l != nil || n != batch.NameLabel {
			out.Labels[n] = v
		}
	}
	if r.l != nil {
		out.Line = &r.l.Line[r.i]
		for _, l := range r.l.MetaOf(r.i) {
			if out.Meta == nil {
				out.Meta = map[string]string{}
			}
			out.Meta[l.Name] = l.Value
		}
		return out
	}
	out.Name, out.Value = r.series.Name(), r.value()
	if m := r.series.Meta(); m != nil {
		out.Type = string(m.Type)
	}
	return out
}
