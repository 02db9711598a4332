package batch

import (
	"runtime"
	"sync"
	"unsafe"
	"weak"
)

// published contains the forms that slabs created, keyed by the first form of
// each block of memory. It is global because it affects only how much memory
// series use. It does not keep that memory alive: forms that no handle uses are
// freed.
var published = publishedForms{known: map[uint64]formsAt{}}

type publishedForms struct {
	mu    sync.Mutex
	known map[uint64]formsAt
}

// formsAt is a block of n bytes of forms.
type formsAt struct {
	at weak.Pointer[byte]
	n  int
}

// find returns the forms whose first form has the given key, or "" if there are
// none.
func (s *publishedForms) find(key uint64) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.known[key]
	if p := f.at.Value(); p != nil {
		return unsafe.String(p, f.n)
	}
	return ""
}

// add publishes forms, whose first form has the given key, unless the key
// exists.
func (s *publishedForms) add(key uint64, forms []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known[key].at.Value() != nil {
		return
	}
	p := unsafe.SliceData(forms)
	s.known[key] = formsAt{weak.Make(p), len(forms)}
	runtime.AddCleanup(p, s.drop, key)
}

// drop removes forms that have been freed.
func (s *publishedForms) drop(key uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known[key].at.Value() == nil {
		delete(s.known, key)
	}
}
