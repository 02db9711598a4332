package state

import (
	"fmt"
	"sync/atomic"
)

// The room for entries in bytes, as EntrySize counts, unless a block says
// otherwise.
const (
	DefaultNodeBytes  = 256 << 20 // of a node
	DefaultTotalBytes = 1 << 30   // of the nodes whose block says nothing
)

// Share is the room that the collections of a node have together, or all nodes.
// The zero value has no limit. It is safe for concurrent use.
type Share struct {
	used, limit atomic.Int64
	Total       *Share // of which it is a part; nil: of none
}

func (s *Share) add(n int64) {
	s.used.Add(n)
	if s.Total != nil {
		s.Total.used.Add(n)
	}
}

// Limit sets how many bytes there may be, 0 for the default: then the limit of
// Total holds as well.
func (s *Share) Limit(bytes int64) { s.limit.Store(bytes) }

// Used returns how many bytes there are.
func (s *Share) Used() int64 { return s.used.Load() }

// full returns why n more bytes of the collection of a name have no room, nil if
// they have.
func (s *Share) full(name string, n int64) error {
	limit := s.limit.Load()
	switch {
	case limit > 0 && s.used.Load()+n > limit:
		return &FullError{fmt.Sprintf("cannot add to state %s: all state of the node has its %d bytes (script.limits.state)", name, limit)}
	case limit > 0:
		return nil
	case s.used.Load()+n > DefaultNodeBytes:
		return &FullError{fmt.Sprintf("cannot add to state %s: all state of the node has its %d bytes; raise script.limits.state", name, DefaultNodeBytes)}
	case s.Total != nil && s.Total.used.Load()+n > DefaultTotalBytes:
		return &FullError{fmt.Sprintf("cannot add to state %s: the state of all nodes has %d bytes, and the block has no script.limits.state, which gives it room of its own", name, DefaultTotalBytes)}
	}
	return nil
}
