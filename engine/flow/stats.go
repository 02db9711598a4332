package flow

import (
	"sync"
	"sync/atomic"

	"github.com/weir-run/weir/engine/batch"
)

// Stats counts the samples and the log lines that pass through one node. The
// engine reads the counters for metrics and the web UI. A Receiver and an
// Output of the node write them. They also store a pointer to the last batch;
// batches are immutable. The zero value is ready to use. All methods are safe
// for concurrent use.
type Stats struct {
	In  atomic.Uint64 // samples that the node received through the gate and accepted
	Out atomic.Uint64 // samples accepted by a receiver, or by an endpoint of a sink, counted once for each

	LinesIn  atomic.Uint64 // like In
	LinesOut atomic.Uint64 // like Out

	lastIn, lastOut         atomic.Pointer[batch.Metrics]
	lastLogsIn, lastLogsOut atomic.Pointer[batch.Logs]

	taps  atomic.Pointer[[]*Tap] // nil without taps; written with mu held
	meter atomic.Pointer[Meter]  // nil if nobody looks

	mu           sync.Mutex
	dropped      map[string]uint64
	droppedLines map[string]uint64
}

// LastIn returns the last batch that arrived at the gate, accepted or not. It
// is nil if there was none. It is shared and must not be modified.
func (s *Stats) LastIn() *batch.Metrics { return s.lastIn.Load() }

// LastOut returns the last batch that the node sent to a receiver. It is nil if
// there was none. It is shared and must not be modified.
func (s *Stats) LastOut() *batch.Metrics { return s.lastOut.Load() }

// LastLogsIn is like LastIn, for log lines.
func (s *Stats) LastLogsIn() *batch.Logs { return s.lastLogsIn.Load() }

// LastLogsOut is like LastOut, for log lines.
func (s *Stats) LastLogsOut() *batch.Logs { return s.lastLogsOut.Load() }

// CountOut adds n samples or log lines to Out or LinesOut.
func (s *Stats) CountOut(of batch.Signals, n int) {
	out := &s.Out
	if of == batch.SignalLogs {
		out = &s.LinesOut
	}
	out.Add(uint64(max(n, 0)))
}

// CountDropped calls Drop or DropLines, depending on the signal.
func (s *Stats) CountDropped(of batch.Signals, reason string, n int) {
	if of == batch.SignalLogs {
		s.DropLines(reason, n)
		return
	}
	s.Drop(reason, n)
}

// Drop counts n samples that the node will never send. reason is from a closed
// set, in lower_snake_case. Samples that a user filters out are counted too.
func (s *Stats) Drop(reason string, n int) { s.drop(&s.dropped, reason, n) }

// DropLines is like Drop, for log lines.
func (s *Stats) DropLines(reason string, n int) { s.drop(&s.droppedLines, reason, n) }

func (s *Stats) drop(by *map[string]uint64, reason string, n int) {
	if n <= 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if *by == nil {
		*by = map[string]uint64{}
	}
	(*by)[reason] += uint64(n)
}

// Dropped returns the counts by reason; the caller owns the map.
func (s *Stats) Dropped() map[string]uint64 { return s.counts(&s.dropped) }

// DroppedLines is Dropped for log lines.
func (s *Stats) DroppedLines() map[string]uint64 { return s.counts(&s.droppedLines) }

// Lost returns the number of dropped samples and log lines for all reasons.
func (s *Stats) Lost() (n uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, by := range []map[string]uint64{s.dropped, s.droppedLines} {
		for _, v := range by {
			n += v
		}
	}
	return n
}

func (s *Stats) counts(by *map[string]uint64) map[string]uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make(map[string]uint64, len(*by))
	for r, n := range *by {
		out[r] = n
	}
	return out
}
