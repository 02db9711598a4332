package view

import (
	"sync"

	"github.com/weir-run/weir/engine/batch"
)

// collisions remembers by source how many rows of its last batch had the
// labels and the timestamp of another one. Finding them takes a map of the
// batch; a source's batches mostly consist of the same series, so the map is
// made only when that changes.
type collisions struct {
	mu   sync.Mutex
	last map[batch.Origin]collision
}

type collision struct {
	mix uint64
	n   int
	at  *batch.Series
}

// maxSources bounds what is remembered; past it, all is forgotten.
const maxSources = 10_000

// find returns how many rows of b repeat an earlier row's labels and
// timestamp, and one of their series.
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

// mixOf is a hash of which series b has, in which order, at which distances
// in time.
func mixOf(b *batch.Metrics) uint64 {
	h := uint64(len(b.Series))
	for i, s := range b.Series {
		h = (h ^ uint64(s.ID())) * 0x9e3779b97f4a7c15
		h = h>>29 ^ h ^ uint64(b.T[i]-b.T[0])
	}
	return h
}
