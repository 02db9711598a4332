package view

import (
	"slices"
	"time"

	"github.com/weir-run/weir/engine/batch"
)

// Metrics is a VM's window on a batch. Reset moves it to the next batch. Rows
// are numbered from 0 and keep their number until Apply. Methods with a row
// argument panic if it is out of range: the packages of the VMs check the
// arguments of scripts.
//
// The zero value is ready for Reset. It is not safe for concurrent use.
type Metrics struct {
	overlay[*batch.Metrics, emittedSample]

	v     edited[float64]
	hists edited[batch.Histogram]

	stripped bool    // some row lost its histogram, exemplars and start timestamp
	marked   float64 // the value at Mark
	ends     []end   // scratch memory for follow
}

// Reset moves the window to b and discards all edits. now is the time of use
// for interned handles. Records of the previous batch become invalid.
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

// Done ends the use of the batch: the window becomes empty, records become
// invalid, and the batch is no longer referenced. The result of Apply stays
// valid.
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

// Value returns the value of row i. ok is false if the row has no float value,
// only a native histogram. If the row is a staleness marker, v is the marker.
func (m *Metrics) Value(i int) (v float64, ok bool) {
	return m.v.rows[i], !m.HasHistogram(i)
}

// Judged reports whether row i has a float value that is not a staleness
// marker. Expressions and callbacks that read the value are evaluated only for
// such rows; all other rows are kept.
func (m *Metrics) Judged(i int) bool {
	return !batch.IsStale(m.v.rows[i]) && !m.HasHistogram(i)
}

// Values returns the values of all rows. Read them immediately: later edits may
// or may not be visible. The elements of rows that are not Judged are
// meaningless.
func (m *Metrics) Values() []float64 { return m.v.rows }

// Time returns the timestamp of row i in Unix ms.
func (m *Metrics) Time(i int) int64 { return m.t.rows[i] }

// Stale reports whether row i is a staleness marker.
func (m *Metrics) Stale(i int) bool { return batch.IsStale(m.v.rows[i]) }

// Type returns the metric type of row i in Prometheus's terms: counter, gauge,
// histogram, gaugehistogram, summary, info, stateset, unknown.
func (m *Metrics) Type(i int) string { return typeOf(m.series.rows[i]) }

// Help returns the help text of row i's family, or "" if it is unknown.
func (m *Metrics) Help(i int) string {
	if md := m.series.rows[i].Meta(); md != nil {
		return md.Help
	}
	return ""
}

// Unit returns the unit of row i's family, or "" if it is unknown.
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
// modified.
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

// Exemplars returns the exemplars of row i. The slice is part of the batch and
// must not be modified.
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
