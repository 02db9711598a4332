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

// mapSite is the cache of one MapLabel call site: results by distinct value,
// and handles by series, so that no map look-up is needed in the steady state.
type mapSite struct {
	use
	op   uint64 // 0 for a site that is used for one call only
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

// remember stores a result and returns the stored one: if there are several
// VMs, the first one wins. If there is no room, all results are removed. The
// handles by series stay, so only new series are affected.
func (s *mapSite) remember(v, to string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old, ok := s.values[v]; ok {
		return old
	}
	if len(s.values) >= s.max {
		clear(s.values)
	}
	// Clone, because v is a substring of a series' labels, and to may be a
	// substring of a script's text. They must not keep these alive.
	to = strings.Clone(to)
	s.values[strings.Clone(v)] = to
	return to
}
