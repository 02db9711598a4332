package view

import (
	"iter"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/expr"
)

// Window is the common part of the windows on both signals: rows of handles,
// which rows are dropped, and the cached results by handle.
type Window struct {
	cache  *Cache
	now    time.Time
	epoch  uint64
	logs   bool // the rows are log lines; handles have labels only
	origin batch.Origin
	column []*batch.Series // the source's

	// judge evaluates the part of p that depends on row i. said is the verdict of
	// its label part.
	judge func(p *predicate, i int, said expr.Verdict) (expr.Verdict, error)

	series edited[*batch.Series]

	// root and shape are the position of the rows in the cached operations of this
	// column; see shape.
	root    *root
	shape   *shape
	loose   bool       // the rows have no shape
	passing bool       // the running operation had a result that is not cached
	yes     batch.Rows // scratch
	open    openRows   // scratch

	room  int64        // bytes of labels that the call may still set or emit
	spare func() int64 // returns additional room; may be nil

	flags   []flags // scratch, one per row; empty if no row has flags
	dropped int
	ways    []uint8 // scratch, one per row; empty if no row is routed
	routed  int

	// Pending label edits of one row.
	edit    batch.Builder
	editing int // the row, -1 for none

	asked   Series          // the argument of the series hook
	trace   func(undo bool) // see Trace; nil unless somebody asks
	sample  expr.Sample
	scratch batch.Builder // scratch of Emit

	// Look-ups of this VM in the cache since the last Sweep, so that the steady
	// state needs no lock.
	sweep   uint64
	preds   map[string]*predicate
	numbers map[string]*number
	edits   map[labelEdit]*editMemo
	sites   map[siteKey]*mapSite
	cols    map[string]*Column
}

type flags uint8

const (
	isDropped  flags = 1 << iota
	isStripped       // the script added or removed a staleness marker
)

// reset moves the window to a column and discards all edits.
func (m *Window) reset(gen *Cache, now time.Time, of batch.Origin, column []*batch.Series) {
	m.releaseRoot()
	if sweep := gen.sweeps.Load(); m.cache != gen || m.sweep != sweep {
		m.sweep = sweep
		m.preds, m.numbers = map[string]*predicate{}, map[string]*number{}
		m.edits, m.sites, m.cols = map[labelEdit]*editMemo{}, map[siteKey]*mapSite{}, map[string]*Column{}
	}
	m.cache, m.now, m.origin, m.column = gen, now, of, column
	m.room, m.spare = m.cache.opts.MaxMade+int64(len(column))*madePerRow, nil
	m.epoch++
	m.series.reset(column)
	m.flags, m.dropped = m.flags[:0], 0
	m.ways, m.routed = m.ways[:0], 0
	m.editing = -1
	m.loose = m.logs // each batch of lines has another column
}

// clear releases references of the last batch in scratch memory.
func (m *Window) clear() {
	m.sample = expr.Sample{}
	m.edit.Reset(nil)
	m.asked.handle = nil
	m.asked.edit.Reset(nil)
}

// Epoch changes with Reset and Done. A record handle of an earlier epoch is
// invalid.
func (m *Window) Epoch() uint64 { return m.epoch }

// Len returns the number of rows, including dropped rows.
func (m *Window) Len() int { return len(m.series.rows) }

// Left returns the number of rows that are not dropped.
func (m *Window) Left() int { return len(m.series.rows) - m.dropped }

// Alive reports whether row i was not dropped.
func (m *Window) Alive(i int) bool { return len(m.flags) == 0 || m.flags[i]&isDropped == 0 }

// Next returns the first row from i on that was not dropped, or -1 if there is
// none.
func (m *Window) Next(i int) int {
	for ; i < len(m.series.rows); i++ {
		if m.Alive(i) {
			return i
		}
	}
	return -1
}

// Series returns the handle of row i as edited.
func (m *Window) Series(i int) *batch.Series {
	if m.editing == i {
		m.flush()
	}
	return m.series.rows[i]
}

// Label returns the value of a label of row i, or "" if it is missing. The name
// does not count as a label.
func (m *Window) Label(i int, name string) string {
	if name == batch.NameLabel && !m.logs {
		return ""
	}
	if m.editing == i {
		return m.edit.Get(name)
	}
	return m.series.rows[i].Label(name)
}

// Labels yields the labels of row i in name order, without the metric name. The
// row may be edited during the iteration, which still yields the original
// labels.
func (m *Window) Labels(i int) iter.Seq2[string, string] {
	s := m.Series(i)
	return func(yield func(string, string) bool) {
		for n, v := range s.Labels() {
			if (n != batch.NameLabel || m.logs) && !yield(n, v) {
				return
			}
		}
	}
}
