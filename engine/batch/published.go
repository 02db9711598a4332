package batch

import (
	"runtime"
	"sync"
	"unsafe"
	"weak"
)

// published are the forms that slabs began with, by the first one of each memory.
// It is a global because it changes nothing but how much memory series take, and
// keeps none of it: what no handle has any more goes.
var published = publishedForms{known: map[uint64]formsAt{}}

type publishedForms struct {
	mu    sync.Mutex
	known map[uint64]formsAt
}

// formsAt is n bytes of forms.
type formsAt struct {
	at weak.Pointer[byte]
	n  int
}

// find returns the forms of which the first one has that key, "" for none.
func (s *publishedForms) find(key uint64) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.known[key]
	if p := f.at.Value(); p != nil {
		return unsafe.String(p, f.n)
	}
	return ""
}

// add makes forms known whose first one has that key, unless others are.
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

// drop forgets what nobody has any more.
func (s *publishedForms) drop(key uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known[key].at.Value() == nil {
		delete(s.known, key)
	}
}
