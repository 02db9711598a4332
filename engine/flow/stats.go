package flow

import (
	"sync"
	"sync/atomic"

	"github.com/weir-run/weir/engine/batch"
)

// Stats counts the samples that pass through one node. The engine reads them
// for metrics and the page; a Receiver and an Output of the node write them, and
// leave the last batch in them, which is a pointer: batches are immutable.
// The zero value is ready. All methods are safe for concurrent use.
type Stats struct {
	In  atomic.Uint64 // samples that came in through the gate and were accepted
	Out atomic.Uint64 // samples accepted by a receiver, once for each receiver

	lastIn, lastOut atomic.Pointer[batch.Metrics]

	mu      sync.Mutex
	dropped map[string]uint64
}

// LastIn returns the last batch that came to the gate, whether it was accepted
// or not; nil when there was none. It is shared: nobody writes to it.
func (s *Stats) LastIn() *batch.Metrics { return s.lastIn.Load() }

// LastOut returns the last batch that the node handed to a receiver; nil when
// there was none. It is shared: nobody writes to it.
func (s *Stats) LastOut() *batch.Metrics { return s.lastOut.Load() }

// Drop counts n samples that the node will never send on. reason is one of a
// closed set, lower_snake_case. Filtering a user asked for counts too.
func (s *Stats) Drop(reason string, n int) {
	if n <= 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dropped == nil {
		s.dropped = map[string]uint64{}
	}
	s.dropped[reason] += uint64(n)
}

// Dropped returns the counts by reason; the caller owns the map.
func (s *Stats) Dropped() map[string]uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make(map[string]uint64, len(s.dropped))
	for r, n := range s.dropped {
		out[r] = n
	}
	return out
}
