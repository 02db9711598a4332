package view

import (
	"strings"
	"sync"

	"github.com/weir-run/weir/engine/batch"
)

type siteKey struct {
	site any
	name string
}

// mapSite is what one MapLabel call site has learned: answers by distinct value,
// and, on top, the handle by series, so that steady state asks no map.
type mapSite struct {
	use
	op   uint64 // 0 for a site that serves one call
	memo batch.Memo[*batch.Series]
	max  int

	mu     sync.RWMutex
	values map[string]string
}

func newSite(op uint64, limit int) *mapSite {
	return &mapSite{op: op, max: limit, values: map[string]string{}}
}

func (s *mapSite) value(v string) (to string, ok bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	to, ok = s.values[v]
	return to, ok
}

// remember keeps an answer and returns the one that is kept: the first of
// several VMs wins. When there is no room the answers are forgotten, all of
// them: handles by series stay, so only new series pay for it.
func (s *mapSite) remember(v, to string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old, ok := s.values[v]; ok {
		return old
	}
	if len(s.values) >= s.max {
		clear(s.values)
	}
	// v is a part of a series' labels, and to may be one of a script's text: they
	// must not keep them alive.
	to = strings.Clone(to)
	s.values[strings.Clone(v)] = to
	return to
}
