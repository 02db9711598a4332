package view

import (
	"slices"
	"sync/atomic"

	"github.com/weir-run/weir/engine/batch"
)

// MaxOutputs is the maximum number of outputs that a script may have in
// addition to the default output.
const MaxOutputs = 31

// A way is where a record leaves: 0 for the default output, or the number of
// another output, counted from 1. A routed record is removed from the batch
// like a dropped one, but Part returns it.

// nowhere is the way of a dropped record.
const nowhere = MaxOutputs + 1

// Route sends row i to a way. It cancels an earlier Drop of the row, and a
// later Drop cancels the route: the last call wins.
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

// outputOf returns the way by which row i leaves.
func (m *Window) outputOf(i int) int {
	switch {
	case len(m.ways) > 0 && m.ways[i] != 0:
		return int(m.ways[i])
	case m.Alive(i):
		return 0
	}
	return nowhere
}

// AllWays are all ways, as bits.
const AllWays = 1<<nowhere - 1

// WayOf returns the way by which row i leaves; ok is false if it is dropped.
func (m *Window) WayOf(i int) (way int, ok bool) {
	way = m.outputOf(i)
	return way, way != nowhere
}

// leavesBy reports whether row i leaves by any of the ways, given as bits.
func (m *Window) leavesBy(ways uint64, i int) bool { return ways>>m.outputOf(i)&1 == 1 }

// Part returns, after Apply, the data that leaves by any of the ways, given as
// bits: rows, emitted records, and staleness markers of series that left by
// them earlier.
func (m *Metrics) Part(ways uint64) *batch.Metrics {
	out := *m.whole.Select(func(i int) bool { return m.leavesBy(ways, i) }) // a copy, because it may be the whole batch itself
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

// went records by which ways the records of a series left since its last
// staleness marker. It contains, by way, the series as it left.
type went []atomic.Pointer[batch.Series]

// end is a series that ends on a way because the series of row ended.
type end struct {
	row, way int
	series   *batch.Series
}

// follow records the ways of the rows. A row that is a staleness marker ends
// its series on all ways by which its records left: the script routed them by
// their values, which a marker does not have.
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

// appendEnds appends the pending staleness markers of the given ways to out.
// The columns of out may be shared.
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
