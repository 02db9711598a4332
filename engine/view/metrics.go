package view

import (
	"slices"
	"time"

	"github.com/weir-run/weir/engine/batch"
)

// Metrics is one VM's window on a batch. Reset puts it over the next one; rows
// are numbered from 0 and keep their number until Apply. Methods that take a
// row panic when it is out of range: VM packages check what scripts pass.
//
// The zero value is ready for Reset. Not safe for concurrent use.
type Metrics struct {
	overlay[*batch.Metrics, emittedSample]

	v     edited[float64]
	hists edited[batch.Histogram]

	stripped bool    // some row lost its histogram, exemplars and start
	marked   float64 // the value at Mark
	ends     []end   // scratch of follow
}

// Reset puts the window over b and forgets all edits. now stamps the use of
// interned handles. Records of the batch before are dead from here on.
func (m *Metrics) Reset(b *batch.Metrics, gen *Cache, now time.Time) {
	if m.judge == nil {
		m.judge = m.judgeRow
	}
	m.Window.reset(gen, now, b.Origin(), b.Series)
	m.resetEdits(b, b.T)
	m.v.reset(b.V)
	m.hists.reset(b.Histograms)
	m.stripped = false
	clear(m.ends)
	m.ends = m.ends[:0]
}

var noBatch = new(batch.Metrics)

// Done ends the use of the batch: the window is empty, records are dead, and
// nothing of the batch is held. Apply's result stays valid.
func (m *Metrics) Done() {
	m.Reset(noBatch, m.cache, m.now)
	m.clear()
}

// Name returns the metric name of row i.
func (m *Metrics) Name(i int) string {
	if m.editing == i {
		return m.edit.Get(batch.NameLabel)
	}
	return m.series.rows[i].Name()
}

// Value returns the value of row i. ok is false when it has no float value,
// only a native histogram. A staleness marker's value is the marker.
func (m *Metrics) Value(i int) (v float64, ok bool) {
	return m.v.rows[i], !m.HasHistogram(i)
}

// Judged reports whether row i has a float value that is not a staleness
// marker. Expressions and callbacks that read the value are evaluated only for
// such rows; all other rows are kept.
func (m *Metrics) Judged(i int) bool {
	return !batch.IsStale(m.v.rows[i]) && !m.HasHistogram(i)
}

// Values returns the values of all rows, for reading now only: a later edit
// may or may not show. Rows that are not Judged have no value in it.
func (m *Metrics) Values() []float64 { return m.v.rows }

// Time returns the timestamp of row i in Unix ms.
func (m *Metrics) Time(i int) int64 { return m.t.rows[i] }

// Stale reports whether row i is a staleness marker.
func (m *Metrics) Stale(i int) bool { return batch.IsStale(m.v.rows[i]) }

// Type returns the metric type of row i in Prometheus's words: counter, gauge,
// histogram, gaugehistogram, summary, info, stateset, unknown.
func (m *Metrics) Type(i int) string { return typeOf(m.series.rows[i]) }

// Help returns the help text of row i's family, "" when none is known.
func (m *Metrics) Help(i int) string {
	if md := m.series.rows[i].Meta(); md != nil {
		return md.Help
	}
	return ""
}

// Unit returns the unit of row i's family, "" when none is known.
func (m *Metrics) Unit(i int) string {
	if md := m.series.rows[i].Meta(); md != nil {
		return md.Unit
	}
	return ""
}

// HasHistogram reports whether row i is a native histogram.
func (m *Metrics) HasHistogram(i int) bool {
	_, ok := m.Histogram(i)
	return ok
}

// Histogram returns the native histogram of row i as edited. It must not be
// written to.
func (m *Metrics) Histogram(i int) (batch.Histogram, bool) {
	if len(m.hists.rows) == 0 || m.isStripped(i) {
		return batch.Histogram{}, false
	}
	j, ok := slices.BinarySearchFunc(m.hists.rows, i, func(h batch.Histogram, row int) int { return h.Row - row })
	if !ok {
		return batch.Histogram{}, false
	}
	return m.hists.rows[j], true
}

// Exemplars returns the exemplars of row i, a part of the batch: they must not
// be written to.
func (m *Metrics) Exemplars(i int) []batch.Exemplar {
	if len(m.in.Exemplars) == 0 || m.isStripped(i) {
		return nil
	}
	lo, _ := slices.BinarySearchFunc(m.in.Exemplars, i, func(e batch.Exemplar, row int) int { return e.Row - row })
	hi := lo
	for hi < len(m.in.Exemplars) && m.in.Exemplars[hi].Row == i {
		hi++
	}
	return m.in.Exemplars[lo:hi:hi]
}

// Start returns the start timestamp of row i in Unix ms.
func (m *Metrics) Start(i int) (t int64, ok bool) {
	if len(m.in.Starts) == 0 || m.isStripped(i) {
		return 0, false
	}
	j, ok := slices.BinarySearchFunc(m.in.Starts, i, func(s batch.Start, row int) int { return s.Row - row })
	if !ok {
		return 0, false
	}
	return m.in.Starts[j].T, true
}

func (m *Metrics) isStripped(i int) bool { return m.stripped && m.flags[i]&isStripped != 0 }

func typeOf(s *batch.Series) string {
	if md := s.Meta(); md != nil && md.Type != "" {
		return string(md.Type)
	}
	return "unknown"
}
