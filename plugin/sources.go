package plugin

import (
	"sync"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/plugin/internal/link"
)

// sources maps the Sources of weir to Sources of this process, which are unique in it.
type sources struct {
	mu       sync.Mutex
	toLocal  map[uint64]uint64
	toRemote map[uint64]uint64
}

// local returns the Source for batches of weir's source.
func (s *sources) local(source uint64) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	l, ok := s.toLocal[source]
	if ok {
		return l
	}
	if l = batch.NewSource(); source&link.Pushed != 0 {
		l = batch.NewPushSource()
	}
	if s.toLocal == nil {
		s.toLocal, s.toRemote = map[uint64]uint64{}, map[uint64]uint64{}
	}
	s.toLocal[source], s.toRemote[l] = l, source
	return l
}

// remote returns the Source on the stream for batches of a source of this process.
func (s *sources) remote(source uint64) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r, ok := s.toRemote[source]; ok {
		return r
	}
	return source | link.Own
}
