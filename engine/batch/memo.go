package batch

import (
	"sync"
	"sync/atomic"
)

// Memo remembers a V per series handle: what one component generation derived
// from labels alone. A slot is found by the handle's ID, in scrape order, so a
// read costs a cache line and no hashing; another handle at that ID is a miss.
//
// The zero value is empty and ready. All methods are safe for concurrent use.
type Memo[V any] struct {
	// Evicted, if set before first use, is called with every entry that Put
	// overwrites for another series. IDs are reused at once, so most entries
	// of released series go that way, before a Sweep finds them: who releases
	// what it derived in Sweep does so here too.
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

// Get returns what was put for s.
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

// Put remembers v for s and returns what is remembered: the first of several
// concurrent writers wins and all get its value.
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

// Sweep forgets the entries of released series and calls dropped, which may be
// nil, with each.
func (m *Memo[V]) Sweep(dropped func(*Series, V)) {
	m.sweep(dropped, func(e *memoEntry[V]) bool { return e.series.Released() })
}

// Clear forgets everything and calls dropped, which may be nil, with each entry.
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
	// Readers hold the old slice, so it is copied; the chunks themselves move
	// over, which keeps concurrent Puts.
	grown := make([]*memoChunk[V], max(i+1, len(old)))
	copy(grown, old)
	grown[i] = new(memoChunk[V])
	m.chunks.Store(&grown)
	return grown[i]
}
