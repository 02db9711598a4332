package batch

import (
	"sync"
	"unsafe"
)

// ColumnMemo remembers a V for the column of series that each Origin sent last.
//
// A source whose series are the same in batch after batch sends the same slice
// of handles, and since nobody writes to it, the address says that nothing
// changed. So what was derived from all its series at once is found by one
// look-up a batch, where a Memo reads a slot a sample; and who derives a column
// sends the same slice again as well, so that the next in line profits alike.
// It is worth its while beside a Memo only: a column that changes in one row is
// another column.
//
// The zero value is empty and ready. All methods are safe for concurrent use.
type ColumnMemo[V any] struct {
	mu      sync.Mutex
	last    map[Origin]*columnEntry[V]
	sweeps  uint64
	revoked uint64 // how often all was forgotten
}

type columnEntry[V any] struct {
	column []*Series // kept, so that no other can have its address
	v      V
	used   uint64 // the sweeps before
}

// Get returns what was put for a column, if that is the one its Origin sent
// last. at is for Put, when what was not found was made.
func (m *ColumnMemo[V]) Get(of Origin, column []*Series) (v V, at uint64, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.last[of]
	if e == nil || !SameColumn(e.column, column) {
		return v, m.revoked, false
	}
	e.used = m.sweeps
	return e.v, m.revoked, true
}

// Put remembers v for a column, and forgets the column before it. at is from the
// Get before v was made: a Revoke since then is one of v too. It does nothing
// for a pushed batch, whose like may never come again.
func (m *ColumnMemo[V]) Put(of Origin, column []*Series, v V, at uint64) {
	if of.Source&pushed != 0 || len(column) == 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if at != m.revoked {
		return
	}
	if m.last == nil {
		m.last = map[Origin]*columnEntry[V]{}
	}
	m.last[of] = &columnEntry[V]{column: column, v: v, used: m.sweeps}
}

// Sweep forgets the columns with released series, and those that were asked for
// neither since the Sweep before nor between that and the one before it.
func (m *ColumnMemo[V]) Sweep() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sweeps++
	for of, e := range m.last {
		if e.used+2 < m.sweeps || anyReleased(e.column) {
			delete(m.last, of)
		}
	}
}

// Revoke forgets everything, and what is being made: handles in it were given
// back while their source lives.
func (m *ColumnMemo[V]) Revoke() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.revoked++
	clear(m.last)
}

// SameColumn reports whether two columns are the same slice.
func SameColumn(a, b []*Series) bool {
	return len(a) == len(b) && unsafe.SliceData(a) == unsafe.SliceData(b)
}

func anyReleased(ss []*Series) bool {
	for _, s := range ss {
		if s.Released() {
			return true
		}
	}
	return false
}
