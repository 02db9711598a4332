package scrape

import (
	"hash/maphash"
	"runtime"
	"strings"
	"sync"
	"weak"

	"github.com/weir-run/weir/engine/batch"
)

// metadata is what families of all targets have in common: a thousand targets of
// one kind say the same. It is a global because it changes nothing but how much
// memory they take, and goes when nobody has it any more.
var metadata = sharedMetadata{known: map[uint64]weak.Pointer[batch.Metadata]{}}

type sharedMetadata struct {
	mu    sync.Mutex
	known map[uint64]weak.Pointer[batch.Metadata] // by hash
}

// share returns metadata that is equal to m, whose strings it copies when it is the
// first.
func (s *sharedMetadata) share(m batch.Metadata) *batch.Metadata {
	hash := maphash.Comparable(longKeys[0], m)
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.known[hash].Value(); known != nil && *known == m {
		return known
	}
	own := &batch.Metadata{
		Type: batch.MetricType(strings.Clone(string(m.Type))), Help: strings.Clone(m.Help),
		Unit: strings.Clone(m.Unit), Family: strings.Clone(m.Family),
	}
	s.known[hash] = weak.Make(own) // of two with one hash, one is not shared
	runtime.AddCleanup(own, s.drop, hash)
	return own
}

// drop forgets what nobody has any more.
func (s *sharedMetadata) drop(hash uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known[hash].Value() == nil {
		delete(s.known, hash)
	}
}
