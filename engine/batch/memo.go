package batch

import (
	"sync"
	"sync/atomic"
)

// Memo caches a V per series handle. It is for values that one version of a
// component derives from labels alone. The slot is indexed by the handle's ID,
// in scrape order, so a read costs a cache line and no hashing. If the slot
// belongs to another handle with the same ID, the read is a miss.
//
// The zero value is empty and ready to use. All methods are safe for concurrent
// use.
type Memo[V any] struct {
	// Evicted, if set before the first use, is called with every entry that Put
	// overwrites with another series. IDs are reused immediately, so most entries
	// of released series are evicted before a Sweep finds them. If derived values
	// must be released in Sweep, release them here too.
	Evicted func(*Series, V)

	chunks atomic.Pointer[[]*memoChunk[V]]
	mu     sync.Mutex // serialises growth
}

const memoChunkSize = 1024

type memoChunk[V any] [memoChunkSize]atomic.Pointer[memoEntry[V]]

type memoEntry[V any] struct {
	series *Series
	v      V
}

// Get returns the value that was stored for s.
func (m *Memo[V]) Get(s *Series) (v V, ok bool) {
	cs := m.chunks.Load()
	if cs == nil {
		return v, false
	}
	c := int(s.id / memoChunkSize)
	if c >= len(*cs) || (*cs)[c] == nil {
		return v, false
	}
	e := (*cs)[c][s.id%memoChunkSize].Load()
	if e == nil || e.series != s {
		return v, false
	}
	return e.v, true
}

// Put stores v for s and returns the stored value. If there are several
// concurrent writers, the first one wins and all get its value.
func (m *Memo[V]) Put(s *Series, v V) V {
	slot := &m.chunk(int(s.id / memoChunkSize))[s.id%memoChunkSize]
	e := &memoEntry[V]{s, v}
	for {
		old := slot.Load()
		if old != nil && old.series == s {
			return old.v
		}
		if slot.CompareAndSwap(old, e) {
			if old != nil && m.Evicted != nil {
				m.Evicted(old.series, old.v)
			}
			return v
		}
	}
}

// Sweep removes the entries of released series and calls dropped with each of
// them. dropped may be nil.
func (m *Memo[V]) Sweep(dropped func(*Series, V)) {
	m.sweep(dropped, func(e *memoEntry[V]) bool { return e.series.Released() })
}

// Clear removes all entries and calls dropped with each of them. dropped may be
// nil.
func (m *Memo[V]) Clear(dropped func(*Series, V)) {
	m.sweep(dropped, func(*memoEntry[V]) bool { return true })
}

func (m *Memo[V]) sweep(dropped func(*Series, V), drop func(*memoEntry[V]) bool) {
	cs := m.chunks.Load()
	if cs == nil {
		return
	}
	for _, c := range *cs {
		if c == nil {
			continue
		}
		for i := range c {
			if e := c[i].Load(); e != nil && drop(e) && c[i].CompareAndSwap(e, nil) && dropped != nil {
				dropped(e.series, e.v)
			}
		}
	}
}

func (m *Memo[V]) chunk(i int) *memoChunk[V] {
	if cs := m.chunks.Load(); cs != nil && i < len(*cs) && (*cs)[i] != nil {
		return (*cs)[i]
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var old []*memoChunk[V]
	if cs := m.chunks.Load(); cs != nil {
		old = *cs
	}
	if i < len(old) && old[i] != nil {
		return old[i]
	}
	// Readers may use the old slice, so it is copied. The copy contains the same
	// chunks, which keeps the values of concurrent Puts.
	grown := make([]*memoChunk[V], max(i+1, len(old)))
	copy(grown, old)
	grown[i] = new(memoChunk[V])
	m.chunks.Store(&grown)
	return grown[i]
}
