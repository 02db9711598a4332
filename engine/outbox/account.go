package outbox

import (
	"maps"
	"sync"
	"sync/atomic"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/journal"
)

// Account counts the outcomes of an outbox's records during the life of the
// outbox, over all journals that it opens. It is safe for concurrent use.
type Account struct {
	Retried atomic.Int64 // records that were sent again
	Bytes   atomic.Int64 // of requests that were accepted
	Seconds Seconds      // of attempts to send

	reasons  []string // why records are lost; each is reported from the start
	signalOf func(kind uint8) batch.Signals

	mu      sync.Mutex
	samples counts
	lines   counts
	past    journal.Stats // of journals that are closed

	reporting  sync.Mutex
	lastReport Stats // the result of the last ReportTo
}

// counts are the counts of one signal that the journal does not keep.
type counts struct {
	sent int64
	lost map[string]int64
}

// Stats are the statistics of an outbox at one moment.
type Stats struct {
	Figures               // of both signals
	Retried int64         // records that were sent again
	Samples Figures       // the samples in Figures
	Lines   Figures       // the lines in Figures
	Journal journal.Stats // its counters include those of closed journals
}

// Figures are the counts of one signal, or of both.
type Figures struct {
	Sent    int64            // records that were delivered
	Waiting int64            // records in the journal that are not done
	Lost    map[string]int64 // records by reason; contains every known reason
}

// of returns the counts of a signal. mu is held.
func (a *Account) of(s batch.Signals) *counts {
	if s == batch.SignalLogs {
		return &a.lines
	}
	return &a.samples
}

// CountSent counts records that were delivered.
func (a *Account) CountSent(of batch.Signals, n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.of(of).sent += int64(n)
}

// CountLost counts records that will never be delivered.
func (a *Account) CountLost(of batch.Signals, reason string, n int) {
	if n == 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	c := a.of(of)
	if c.lost == nil {
		c.lost = map[string]int64{}
	}
	c.lost[reason] += int64(n)
}

// keep adds the counts of a journal that was closed.
func (a *Account) keep(st journal.Stats) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.past = addCounters(a.past, st)
}

// stats returns the statistics, including those of the journal at the same
// moment.
func (a *Account) stats(j journal.Stats) Stats {
	a.mu.Lock()
	defer a.mu.Unlock()
	st := Stats{Retried: a.Retried.Load(), Journal: addCounters(j, a.past)}
	st.Samples = Figures{Sent: a.samples.sent, Lost: a.lost(a.samples.lost)}
	st.Lines = Figures{Sent: a.lines.sent, Lost: a.lost(a.lines.lost)}
	figures := func(kind uint8) *Figures {
		if a.signalOf(kind) == batch.SignalLogs {
			return &st.Lines
		}
		return &st.Samples
	}
	for kind, n := range st.Journal.Kinds {
		figures(kind).Waiting += n
	}
	for reason, kinds := range st.Journal.DroppedKinds {
		for kind, n := range kinds {
			figures(kind).Lost[reason] += n
		}
	}
	st.Figures = Figures{Sent: st.Samples.Sent + st.Lines.Sent, Waiting: st.Samples.Waiting + st.Lines.Waiting, Lost: maps.Clone(st.Samples.Lost)}
	for reason, n := range st.Lines.Lost {
		st.Lost[reason] += n
	}
	return st
}

// lost returns a copy of lost with all reasons.
func (a *Account) lost(lost map[string]int64) map[string]int64 {
	all := make(map[string]int64, len(a.reasons))
	for _, reason := range a.reasons {
		all[reason] = 0
	}
	maps.Copy(all, lost)
	return all
}

// addCounters adds the counters of b to a, and modifies the maps of a.
func addCounters(a, b journal.Stats) journal.Stats {
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

// ReportTo adds the records that were delivered and lost since the last call to
// a node's Stats. It returns the statistics of the outbox.
func (b *Outbox) ReportTo(stats *flow.Stats) Stats {
	b.reporting.Lock()
	defer b.reporting.Unlock()
	st := b.Stats()
	report := func(of batch.Signals, now, last Figures) {
		stats.CountOut(of, int(now.Sent-last.Sent))
		for reason, n := range now.Lost {
			stats.CountDropped(of, reason, int(n-last.Lost[reason]))
		}
	}
	report(batch.SignalMetrics, st.Samples, b.lastReport.Samples)
	report(batch.SignalLogs, st.Lines, b.lastReport.Lines)
	b.lastReport = st
	return st
}
