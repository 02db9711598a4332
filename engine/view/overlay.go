package view

import "github.com/weir-run/weir/engine/batch"

// edited is a column of a batch with its edits. It is the column of the source
// until the first write copies it.
type edited[E any] struct {
	rows []E
	own  bool // rows is a copy
}

func (c *edited[E]) reset(source []E) { c.rows, c.own = source, false }

// write returns the column for writing.
func (c *edited[E]) write() []E {
	if !c.own {
		c.rows, c.own = append(make([]E, 0, len(c.rows)), c.rows...), true
	}
	return c.rows
}

// revert discards a copy that equals the column of the source.
func (c *edited[E]) revert(source []E, equal func(a, b []E) bool) {
	if c.own && equal(c.rows, source) {
		c.reset(source)
	}
}

// overlay is a Window with the edits that depend on the type of the batch. C is
// the part of an emitted record that only one signal has.
type overlay[B *batch.Metrics | *batch.Logs, C any] struct {
	Window
	in    B
	whole B // all rows with their edits, set by Apply for Part

	t       edited[int64]
	emitted []emitted[C]
	mark    mark
}

// emitted is a record that a script emitted.
type emitted[C any] struct {
	way    int
	series *batch.Series
	t      int64
	rest   C
}

// mark is the state of a row at Mark, for Rollback.
type mark struct {
	set     bool
	row     int
	series  *batch.Series
	t       int64
	flags   flags
	way     uint8
	emitted int
}

// maxKept is the maximum number of emitted records whose scratch memory is kept
// after a batch.
const maxKept = 4096

// resetEdits discards all edits and starts with the source's batch and
// timestamps.
func (m *overlay[B, C]) resetEdits(in B, t []int64) {
	m.in, m.whole = in, nil
	m.t.reset(t)
	if clear(m.emitted); cap(m.emitted) > maxKept {
		m.emitted = nil
	}
	m.emitted = m.emitted[:0]
	m.mark = mark{}
}

// Batch returns the unedited batch under the window.
func (m *overlay[B, C]) Batch() B { return m.in }

// Emitted returns the number of records that were emitted in this batch.
func (m *overlay[B, C]) Emitted() int { return len(m.emitted) }

// Unemit removes all emitted records except the first n.
func (m *overlay[B, C]) Unemit(n int) {
	clear(m.emitted[n:])
	m.emitted = m.emitted[:n]
}

// emittedBy returns the number of records that were emitted to any of the ways,
// given as bits.
func (m *overlay[B, C]) emittedBy(ways uint64) (n int) {
	for i := range m.emitted {
		n += int(ways >> m.emitted[i].way & 1)
	}
	return n
}

// RoutedTo returns, after Apply, the number of records that leave by a way
// other than 0.
func (m *overlay[B, C]) RoutedTo(way int) int {
	n := m.emittedBy(1 << way)
	for _, w := range m.ways {
		if int(w) == way {
			n++
		}
	}
	return n
}

// markRow records the state of row i and the number of emitted records.
func (m *overlay[B, C]) markRow(i int) {
	m.mark = mark{set: true, row: i, series: m.Series(i), t: m.t.rows[i], emitted: len(m.emitted)}
	if len(m.flags) > 0 {
		m.mark.flags = m.flags[i]
	}
	if len(m.ways) > 0 {
		m.mark.way = m.ways[i]
	}
}

// rollbackRow restores the state that markRow recorded. It returns the marked
// row, or -1 if there is none in this batch.
func (m *overlay[B, C]) rollbackRow() int {
	k := &m.mark
	if !k.set {
		return -1
	}
	if m.trace != nil {
		m.trace(true)
	}
	i := k.row
	if m.editing == i {
		m.editing = -1
	}
	if m.series.rows[i] != k.series {
		m.forgetShape()
		m.series.write()[i] = k.series
	}
	if m.t.rows[i] != k.t {
		m.t.write()[i] = k.t
	}
	if len(m.flags) > 0 && m.flags[i] != k.flags {
		m.forgetShape()
		if m.flags[i]&isDropped != 0 && k.flags&isDropped == 0 {
			m.dropped--
		}
		m.flags[i] = k.flags
	}
	if len(m.ways) > 0 {
		m.setWay(i, k.way)
	}
	m.Unemit(k.emitted)
	return i
}
