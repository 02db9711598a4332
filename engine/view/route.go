package view

import (
	"slices"
	"sync/atomic"

	"github.com/weir-run/weir/engine/batch"
)

// MaxOutputs is how many outputs a script may have beside the one that
// everything goes by.
const MaxOutputs = 31

// A way is where a record leaves: 0 for all that is not routed, else the
// number of an output, counted from 1. A record that is routed has left the
// batch as one that is dropped has, but for Part.

// nowhere is the way of a record that is dropped.
const nowhere = MaxOutputs + 1

// Route moves row i to a way. A row that was dropped is not dropped then, and
// the other way round: what is said last holds.
func (m *Window) Route(i, way int) {
	m.Drop(i)
	if way == 0 {
		m.writeFlags()[i] &^= isDropped
		m.dropped--
		return
	}
	if len(m.ways) == 0 {
		m.ways = slices.Grow(m.ways[:0], len(m.series.rows))[:len(m.series.rows)]
		clear(m.ways)
	}
	m.setWay(i, uint8(way))
}

func (m *Window) setWay(i int, way uint8) {
	switch {
	case m.ways[i] == 0 && way != 0:
		m.routed++
	case m.ways[i] != 0 && way == 0:
		m.routed--
	}
	m.ways[i] = way
}

// outputOf returns where row i leaves.
func (m *Window) outputOf(i int) int {
	switch {
	case len(m.ways) > 0 && m.ways[i] != 0:
		return int(m.ways[i])
	case m.Alive(i):
		return 0
	}
	return nowhere
}

// leavesBy reports whether row i leaves by any of the ways, which are bits.
func (m *Window) leavesBy(ways uint64, i int) bool { return ways>>m.outputOf(i)&1 == 1 }

// Part returns, after Apply, what leaves by any of the ways, which are bits:
// rows, emitted records and the markers of series that went there before.
func (m *Metrics) Part(ways uint64) *batch.Metrics {
	out := *m.whole.Select(func(i int) bool { return m.leavesBy(ways, i) }) // a copy: it may be the whole itself
	m.appendEmitted(&out, ways)
	m.appendEnds(&out, ways)
	return &out
}

// DropAll drops every row.
func (m *Window) DropAll() {
	for i := range m.series.rows {
		m.Drop(i)
	}
}

// went is where the records of a series went since its last marker: the series
// that they had there, by way.
type went []atomic.Pointer[batch.Series]

// end is a series that ends by a way because the series of row ended.
type end struct {
	row, way int
	series   *batch.Series
}

// follow remembers where the rows go. A row that is a marker ends its series
// wherever records of it went: the script decided where by what it is without.
func (m *Metrics) follow() {
	m.ends = m.ends[:0]
	if m.cache.opts.Outputs == 0 {
		return
	}
	for i, s := range m.in.Series {
		way := m.outputOf(i)
		at, known := m.cache.went.Get(s)
		if !batch.IsStale(m.v.rows[i]) {
			if way == nowhere || s.Released() {
				continue
			}
			if !known {
				at = m.cache.went.Put(s, make(went, 1+m.cache.opts.Outputs))
			}
			if at[way].Load() != m.series.rows[i] {
				at[way].Store(m.series.rows[i])
			}
			continue
		}
		if !known {
			continue
		}
		for w := range at {
			if last := at[w].Swap(nil); last != nil && !(w == way && last == m.series.rows[i]) {
				m.ends = append(m.ends, end{row: i, way: w, series: last})
			}
		}
	}
}

// appendEnds adds the markers that are owed on some ways to out, whose columns
// may be shared.
func (m *Metrics) appendEnds(out *batch.Metrics, ways uint64) {
	n := len(out.Series)
	out.Series, out.T, out.V = out.Series[:n:n], out.T[:n:n], out.V[:n:n]
	for _, e := range m.ends {
		if ways>>e.way&1 == 0 || m.leavesBy(ways, e.row) && m.series.rows[e.row] == e.series || slices.Contains(out.Series[n:], e.series) {
			continue
		}
		out.Series = append(out.Series, e.series)
		out.T = append(out.T, m.t.rows[e.row])
		out.V = append(out.V, batch.Stale())
	}
}
