package outbox

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/weir-run/weir/engine/journal"
)

// Why records are not delivered, beside the journal's reasons.
const (
	ReasonRejected   = "rejected"     // by the sink
	ReasonError      = "script_error" // in the sink
	ReasonQuarantine = "quarantine"   // they are in quarantine
	ReasonScript     = "script"       // the sink dropped them

	reasonUnreadable = "unreadable" // damage that the journal did not find
)

// Reasons are all there are, sorted.
var Reasons = slices.Sorted(slices.Values(append([]string{ReasonRejected, ReasonError, ReasonQuarantine, ReasonScript, reasonUnreadable}, journal.DropReasons...)))

// counts are since the queue was made.
type counts struct {
	sent, retried atomic.Int64

	mu   sync.Mutex
	lost map[string]int64
	past journal.Stats // what journals that are closed had dropped
}

func (c *counts) lose(reason string, n int) {
	if n == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lost == nil {
		c.lost = map[string]int64{}
	}
	c.lost[reason] += int64(n)
}

// closed keeps what a journal that is closed has counted.
func (c *counts) closed(st journal.Stats) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.past = sum(c.past, st)
}

// sum adds what only grows of b to a, whose maps it writes to.
func sum(a, b journal.Stats) journal.Stats {
	a.SkippedBytes += b.SkippedBytes
	if a.DroppedBlocks == nil {
		a.DroppedBlocks, a.DroppedSamples = map[string]int64{}, map[string]int64{}
	}
	for reason, n := range b.DroppedBlocks {
		a.DroppedBlocks[reason] += n
		a.DroppedSamples[reason] += b.DroppedSamples[reason]
	}
	return a
}

// Stats are a queue's figures at one moment.
type Stats struct {
	Sent    int64            // records that were delivered
	Retried int64            // records that were offered again
	Lost    map[string]int64 // records by reason; every one of Reasons is there
	Journal journal.Stats    // what it counts goes on over its end
}

// Stats returns the figures now. The maps are the caller's.
func (q *Queue) Stats() Stats {
	st := Stats{Sent: q.counts.sent.Load(), Retried: q.counts.retried.Load(), Lost: map[string]int64{}}
	q.calls.RLock()
	if q.journal != nil {
		st.Journal = q.journal.Stats()
	}
	q.counts.mu.Lock()
	st.Journal = sum(st.Journal, q.counts.past)
	lost := maps.Clone(q.counts.lost)
	q.counts.mu.Unlock()
	q.calls.RUnlock()
	for _, reason := range Reasons {
		st.Lost[reason] = lost[reason] + st.Journal.DroppedSamples[reason]
	}
	return st
}
