package view

import (
	"iter"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/expr"
)

// Window is what the windows on both signals have in common: rows of handles,
// which of them are dropped, and what is remembered by handle.
type Window struct {
	cache  *Cache
	now    time.Time
	epoch  uint64
	logs   bool // it is on lines, and labels are all that a handle has
	origin batch.Origin
	column []*batch.Series // the source's

	// judge evaluates what the label part, which said so, left to tell of row i.
	judge func(p *predicate, i int, said expr.Verdict) (expr.Verdict, error)

	series edited[*batch.Series]

	// Where in what the cache remembers of this column the rows are; see
	// shape.
	root    *root
	shape   *shape
	loose   bool       // they are at no shape
	passing bool       // the running operation met a result that is not remembered
	yes     batch.Rows // scratch
	open    openRows   // scratch

	room  int64        // bytes of labels that the call may still make
	spare func() int64 // more of it; nil: there is none

	flags   []flags // scratch, one a row; nil length when no row has any
	dropped int
	ways    []uint8 // scratch, one a row; nil length when no row is routed
	routed  int

	// Label edits of one row, not turned into a handle yet.
	edit    batch.Builder
	editing int // the row, -1 for none

	sample  expr.Sample
	scratch batch.Builder // of Emit

	// What this VM looked up in gen since its last Sweep, so that steady state
	// takes no lock.
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
	isStripped       // the script made or removed a staleness marker
)

// reset puts the window over a column and forgets all edits.
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
	m.loose = m.logs // batches of lines do not have the column of the one before
}

// clear lets go of what the last batch left in scratch memory.
func (m *Window) clear() {
	m.sample = expr.Sample{}
	m.edit.Reset(nil)
}

// Epoch changes with Reset and Done: a record handle that was made under
// another one is dead.
func (m *Window) Epoch() uint64 { return m.epoch }

// Len returns the number of rows, dropped ones among them.
func (m *Window) Len() int { return len(m.series.rows) }

// Left returns the number of rows that are not dropped.
func (m *Window) Left() int { return len(m.series.rows) - m.dropped }

// Alive reports whether row i was not dropped.
func (m *Window) Alive(i int) bool { return len(m.flags) == 0 || m.flags[i]&isDropped == 0 }

// Next returns the first row from i on that was not dropped, -1 for none.
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

// Label returns a label of row i, "" when it is missing. The name is no label.
func (m *Window) Label(i int, name string) string {
	if name == batch.NameLabel && !m.logs {
		return ""
	}
	if m.editing == i {
		return m.edit.Get(name)
	}
	return m.series.rows[i].Label(name)
}

// Labels yields the labels of row i in name order, without the metric name.
// The row may be edited meanwhile; the loop sees it as it was.
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
