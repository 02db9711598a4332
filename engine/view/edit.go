package view

import (
	"fmt"
	"math"

	"github.com/weir-run/weir/engine/batch"
)

// normalNaN is the NaN that Prometheus stores. Computed values must not have
// the bits of a staleness marker.
const normalNaN = 0x7ff8000000000001

// SetName renames row i.
func (m *Metrics) SetName(i int, name string) error {
	m.traceEdit()
	if err := checkName(name); err != nil {
		return err
	}
	m.labelsOf(i).Set(batch.NameLabel, name)
	return m.chargeRows(1, len(name))
}

// SetLabel sets a label of row i. An empty value removes it.
func (m *Window) SetLabel(i int, name, value string) error {
	m.traceEdit()
	if err := checkLabelName(name, m.logs); err != nil {
		return err
	}
	if err := checkLabelValue(name, value); err != nil {
		return err
	}
	b := m.labelsOf(i)
	if err := roomFor(b, name); err != nil {
		return err
	}
	b.Set(name, value)
	return m.chargeRows(1, len(name)+len(value))
}

// SetValue sets the value of row i. It does nothing if the row is a staleness
// marker, and returns an error if the row is a native histogram. Every NaN is
// replaced with the normal NaN: only SetStale creates markers.
func (m *Metrics) SetValue(i int, v float64) error {
	m.traceEdit()
	if batch.IsStale(m.v.rows[i]) {
		return nil
	}
	if m.HasHistogram(i) {
		return fmt.Errorf("cannot set the value of %s: it is a native histogram; scale is what it takes", m.Series(i))
	}
	m.v.write()[i] = withoutMarker(v)
	return nil
}

// SetTime sets the timestamp of row i in Unix ms.
func (m *Metrics) SetTime(i int, t int64) {
	m.traceEdit()
	m.t.write()[i] = t
}

// SetStale turns row i into a staleness marker, without histogram, exemplars
// and start timestamp, or into a normal sample, whose value is NaN until it is
// set.
func (m *Metrics) SetStale(i int, stale bool) {
	m.traceEdit()
	if stale == batch.IsStale(m.v.rows[i]) {
		return
	}
	m.forgetShape()
	f := m.writeFlags()
	f[i] |= isStripped
	m.stripped = true
	if stale {
		m.v.write()[i] = batch.Stale()
	} else {
		m.v.write()[i] = math.Float64frombits(normalNaN)
	}
}

// Drop drops row i.
func (m *Window) Drop(i int) {
	m.traceEdit()
	m.forgetShape()
	m.drop(i)
	if len(m.ways) > 0 {
		m.setWay(i, 0)
	}
}

func (m *Window) drop(i int) {
	f := m.writeFlags()
	if f[i]&isDropped == 0 {
		f[i] |= isDropped
		m.dropped++
	}
}

// Mark records the state of row i, and the number of emitted records, for
// Rollback.
func (m *Metrics) Mark(i int) {
	m.markRow(i)
	m.marked = m.v.rows[i]
}

// Rollback undoes all changes to the marked row and all emitted records since
// Mark. If Mark was not called for this batch, it does nothing.
func (m *Metrics) Rollback() {
	if i := m.rollbackRow(); i >= 0 && math.Float64bits(m.v.rows[i]) != math.Float64bits(m.marked) {
		m.v.write()[i] = m.marked
	}
}

// labelsOf returns a builder with the labels of row i.
func (m *Window) labelsOf(i int) *batch.Builder {
	if m.editing != i {
		m.flush()
		m.edit.Reset(m.series.rows[i])
		m.editing = i
	}
	return &m.edit
}

// flush creates a handle from pending label edits.
func (m *Window) flush() {
	i := m.editing
	if i < 0 {
		return
	}
	m.editing = -1
	if s, _ := m.cache.derive(m.series.rows[i], &m.edit, m.now); s != m.series.rows[i] {
		m.forgetShape()
		m.series.write()[i] = s
	}
}

func (m *Window) writeFlags() []flags {
	if len(m.flags) == 0 {
		n := len(m.series.rows)
		if cap(m.flags) < n {
			m.flags = make([]flags, n)
		} else {
			m.flags = m.flags[:n]
			clear(m.flags)
		}
	}
	return m.flags
}

// withoutMarker replaces a NaN, so that a computed value is not a staleness
// marker.
func withoutMarker(v float64) float64 {
	if batch.IsStale(v) {
		return math.Float64frombits(normalNaN)
	}
	return v
}
