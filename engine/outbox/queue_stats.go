package outbox

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/journal"
)

// Why records are not delivered, besides the journal's reasons.
const (
	ReasonRejected = "rejected"     // by the sink
	ReasonError    = "script_error" // in the sink
	ReasonScript   = "script"       // the sink dropped them

	// ReasonQuarantine is of records that are in quarantine. They are not
	// counted as lost: a replay may deliver them.
	ReasonQuarantine = "quarantine"

	reasonUnreadable = "unreadable" // damage that the journal did not find
)

// Reasons are all for which records are lost, sorted.
var Reasons = slices.Sorted(slices.Values(append([]string{ReasonRejected, ReasonError, ReasonScript, reasonUnreadable}, journal.DropReasons...)))

// counts are since the queue was made.
type counts struct {
	retried atomic.Int64

	mu   sync.Mutex
	sent map[batch.Signals]int64
	lost map[batch.Signals]map[string]int64
	past journal.Stats // what journals that are closed had dropped
}

// deliver counts records that were delivered.
func (c *counts) deliver(of batch.Signals, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sent == nil {
		c.sent = map[batch.Signals]int64{}
	}
	c.sent[of] += int64(n)
}

// countLost counts records that are lost.
func (c *counts) countLost(of batch.Signals, reason string, n int) {
	if n == 0 || reason == ReasonQuarantine {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lost == nil {
		c.lost = map[batch.Signals]map[string]int64{}
	}
	if c.lost[of] == nil {
		c.lost[of] = map[string]int64{}
	}
	c.lost[of][reason] += int64(n)
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
		a.DroppedBlocks, a.DroppedSamples, a.DroppedKinds = map[string]int64{}, map[string]int64{}, map[string]map[uint8]int64{}
	}
	for reason, n := range b.DroppedBlocks {
		a.DroppedBlocks[reason] += n
		a.DroppedSamples[reason] += b.DroppedSamples[reason]
		if a.DroppedKinds[reason] == nil {
			a.DroppedKinds[reason] = map[uint8]int64{}
		}
		for kind, n := range b.DroppedKinds[reason] {
			a.DroppedKinds[reason][kind] += n
		}
	}
	return a
}

// Stats are a queue's figures at one moment.
type Stats struct {
	Sent    int64            // records that were delivered
	Retried int64            // records that were offered again
	Lost    map[string]int64 // records by reason; every one of Reasons is there
	Journal journal.Stats    // what it counts goes on over its end

	Samples, Lines Figures // the same by signal
}

// Figures are those of one signal.
type Figures struct {
	Sent    int64            // records that were delivered
	Waiting int64            // records in the journal that are not done
	Lost    map[string]int64 // records by reason
}

// Stats returns the figures now. The maps are the caller's.
func (q *Queue) Stats() Stats {
	st := Stats{Retried: q.counts.retried.Load(), Lost: map[string]int64{}}
	q.calls.RLock()
	if q.journal != nil {
		st.Journal = q.journal.Stats()
	}
	q.counts.mu.Lock()
	defer q.counts.mu.Unlock()
	defer q.calls.RUnlock()
	st.Journal = sum(st.Journal, q.counts.past)
	figures := func(of batch.Signals, kind uint8) Figures {
		f := Figures{Sent: q.counts.sent[of], Waiting: st.Journal.Kinds[kind], Lost: map[string]int64{}}
		st.Sent += f.Sent
		for _, reason := range Reasons {
			f.Lost[reason] = q.counts.lost[of][reason] + st.Journal.DroppedKinds[reason][kind]
			st.Lost[reason] += f.Lost[reason]
		}
		return f
	}
	st.Samples = figures(batch.SignalMetrics, kindMetrics)
	st.Lines = figures(batch.SignalLogs, kindLogs)
	return st
}

// Delivered counts records that were delivered without the journal.
func (q *Queue) Delivered(of batch.Signals, n int) { q.counts.deliver(of, n) }
