package view

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-run/weir/engine/batch"
)

// maxVariants is how many derived handles one source series may have. A script
// whose result depends on the record mostly has one or two results a series;
// what comes after goes through the Interner, where it expires.
const maxVariants = 4

// variants are the handles that were derived from one series, newest first:
// the same series and the same labels are the same handle in every batch, and
// a handle lives as long as its source.
type variants struct {
	list atomic.Pointer[[]*batch.Series]

	mu    sync.Mutex
	swept bool
}

// derive returns the handle for the labels in b, made from s: s itself, or one
// that s was made from, when they are its own. lasting says that it lives as
// long as s, so that a memo may lead from s to it.
func (g *Cache) derive(s *batch.Series, b *batch.Builder, now time.Time) (d *batch.Series, lasting bool) {
	for o := s; o != nil; o = o.Source() {
		if b.Matches(o) {
			return o, !s.Released()
		}
	}
	if s.Released() {
		// A batch that was held up: s's ID may be another's by now.
		return g.intern.Intern(b.Labels(), s.Meta(), now), false
	}
	vs, ok := g.variants.Get(s)
	if !ok {
		vs = g.variants.Put(s, new(variants))
	}
	if d := vs.find(b); d != nil {
		return d, true
	}
	if d := vs.add(s, b); d != nil {
		return d, !d.Released()
	}
	// It expires when it is not asked for, so it must be asked for.
	return g.intern.Intern(b.Labels(), s.Meta(), now), false
}

func (vs *variants) find(b *batch.Builder) *batch.Series {
	list := vs.list.Load()
	if list == nil {
		return nil
	}
	for _, d := range *list {
		if b.Matches(d) {
			return d
		}
	}
	return nil
}

// add derives a handle, nil when there is no room.
func (vs *variants) add(s *batch.Series, b *batch.Builder) *batch.Series {
	vs.mu.Lock()
	defer vs.mu.Unlock()
	if d := vs.find(b); d != nil {
		return d
	}
	var old []*batch.Series
	if list := vs.list.Load(); list != nil {
		old = *list
	}
	if len(old) >= maxVariants {
		return nil
	}
	d := s.Derive(b.Labels())
	if vs.swept {
		// The source ended and was swept while this batch was under way: the
		// handle serves this batch and gives its ID back at once.
		d.Release()
		return d
	}
	grown := append([]*batch.Series{d}, old...)
	vs.list.Store(&grown)
	return d
}

func releaseVariants(_ *batch.Series, vs *variants) {
	vs.mu.Lock()
	defer vs.mu.Unlock()
	vs.swept = true
	if list := vs.list.Load(); list != nil {
		for _, d := range *list {
			d.Release()
		}
	}
}
