package view

import (
	"sync"

	"github.com/weir-run/weir/engine/batch"
)

// collisions caches, by source, the number of rows in its last batch with the
// same labels and timestamp as another row. Finding them takes a map of the
// whole batch. The batches of a source usually contain the same series, so the
// map is built only if the series change.
type collisions struct {
	mu   sync.Mutex
	last map[batch.Origin]collision
}

type collision struct {
	mix uint64
	n   int
	at  *batch.Series
}

// maxSources is the maximum number of cached sources. Beyond it, the cache is
// cleared.
const maxSources = 10_000

// find returns the number of rows of b that repeat the labels and timestamp of
// an earlier row, and the series of one of them.
func (c *collisions) find(b *batch.Metrics) (int, *batch.Series) {
	mix := mixOf(b)
	c.mu.Lock()
	known, ok := c.last[b.Origin()]
	c.mu.Unlock()
	if ok && known.mix == mix {
		return known.n, known.at
	}
	found := collision{mix: mix}
	type key struct {
		hash uint64
		t    int64
	}
	first := make(map[key]*batch.Series, len(b.Series))
	for i, s := range b.Series {
		k := key{s.Hash(), b.T[i]}
		o, ok := first[k]
		if !ok {
			first[k] = s
		} else if o.Equal(s) {
			found.n++
			found.at = s
		}
	}
	c.mu.Lock()
	if c.last == nil || len(c.last) >= maxSources {
		c.last = map[batch.Origin]collision{}
	}
	c.last[b.Origin()] = found
	c.mu.Unlock()
	return found.n, found.at
}

// mixOf returns a hash of the series of b, their order and the differences
// between their times.
func mixOf(b *batch.Metrics) uint64 {
	h := uint64(len(b.Series))
	for i, s := range b.Series {
		h = (h ^ uint64(s.ID())) * 0x9e3779b97f4a7c15
		h = h>>29 ^ h ^ uint64(b.T[i]-b.T[0])
	}
	return h
}
