package view

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-run/weir/engine/batch"
)

// maxVariants is the maximum number of derived handles per source series. A
// script whose result depends on the record usually has one or two results per
// series. Further results use the Interner, where they expire.
const maxVariants = 4

// variants are the handles that were derived from one series, newest first. The
// same series with the same labels has the same handle in every batch, and a
// handle lives as long as its source.
type variants struct {
	list atomic.Pointer[[]*batch.Series]

	mu    sync.Mutex
	swept bool
}

// derive returns the handle for the labels in b, derived from s. If s, or a
// handle that s was derived from, has these labels, it returns that handle.
// lasting reports whether the handle lives as long as s, so that a memo may map
// s to it.
func (g *Cache) derive(s *batch.Series, b *batch.Builder, now time.Time) (d *batch.Series, lasting bool) {
	for o := s; o != nil; o = o.Source() {
		if b.Matches(o) {
			return o, !s.Released()
		}
	}
	if s.Released() {
		// This is a late batch. Another series may have the ID of s by now.
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
	// An interned handle expires when it is unused, so it must be looked up each
	// time.
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

// add derives a handle. It returns nil if there is no room.
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
		// The source ended and was swept while this batch was being processed. The
		// handle is used for this batch only and frees its ID immediately.
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
