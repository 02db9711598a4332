package scrape

import (
	"hash/maphash"
	"runtime"
	"strings"
	"sync"
	"weak"

	"github.com/weir-run/weir/engine/batch"
)

// metadata is the metadata that families of all targets share, because a thousand
// targets of one kind have the same metadata. It is a global variable because it
// only affects memory usage, and entries are removed when they are not referenced
// any more.
var metadata = sharedMetadata{known: map[uint64]weak.Pointer[batch.Metadata]{}}

type sharedMetadata struct {
	mu    sync.Mutex
	known map[uint64]weak.Pointer[batch.Metadata] // by hash
}

// share returns metadata that is equal to m. If there is none yet, it copies the
// strings of m.
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
	s.known[hash] = weak.Make(own) // if two entries have the same hash, one is not shared
	runtime.AddCleanup(own, s.drop, hash)
	return own
}

// drop removes an entry that is not referenced any more.
func (s *sharedMetadata) drop(hash uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known[hash].Value() == nil {
		delete(s.known, hash)
	}
}
