package state

import (
	"fmt"
	"sync/atomic"
)

// Default limits of the size of entries in bytes, as counted by EntrySize.
const (
	DefaultNodeBytes  = 256 << 20 // of a node
	DefaultTotalBytes = 1 << 30   // of all nodes whose block sets no limit
)

// Share is the common limit for the collections of a node, or for all nodes.
// The zero value has no limit. It is safe for concurrent use.
type Share struct {
	used, limit atomic.Int64
	Total       *Share // the Share that contains this one; may be nil
}

func (s *Share) add(n int64) {
	s.used.Add(n)
	if s.Total != nil {
		s.Total.used.Add(n)
	}
}

// Limit sets the maximum number of bytes. 0 means the default; the limit of
// Total then also applies.
func (s *Share) Limit(bytes int64) { s.limit.Store(bytes) }

// Used returns the number of used bytes.
func (s *Share) Used() int64 { return s.used.Load() }

// full returns an error if there is no room for n more bytes of the collection
// called name, and nil if there is.
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
