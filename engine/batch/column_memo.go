package batch

import (
	"sync"
	"unsafe"
)

// ColumnMemo caches a V for the last column of series of each Origin.
//
// A source whose series do not change sends the same slice of handles in every
// batch. The slice is never modified, so its address identifies the column. A
// value derived from all series of a batch is therefore found with one look-up
// per batch, whereas a Memo needs one per sample. A component that derives a
// column also sends the same slice again, so the next component benefits in the
// same way. Use a ColumnMemo only in addition to a Memo: a column that differs
// in one row is a different column.
//
// The zero value is empty and ready to use. All methods are safe for concurrent
// use.
type ColumnMemo[V any] struct {
	mu      sync.Mutex
	last    map[Origin]*columnEntry[V]
	sweeps  uint64
	revoked uint64 // the number of calls of Revoke
}

type columnEntry[V any] struct {
	column []*Series // kept alive, so that no other column gets its address
	v      V
	used   uint64 // the sweep counter at the last use
}

// Get returns the value that was stored for column, if column is the last
// column of its Origin. If there is none, pass at to Put with the new value.
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

// Put stores v for column and replaces the previous column of the Origin. at is
// the result of the Get that preceded the computation of v: if Revoke was
// called since, v is not stored. Put does nothing for a pushed batch, because
// its column may never come again.
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

// Sweep removes columns with released series, and columns that were not used
// since the last but one Sweep.
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

// Revoke removes all values, including values that are being computed, because
// handles in them are released while their source still lives.
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
