package node

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/outbox"
)

// sinkMetrics are the metrics of a node's queue. They are read at each scrape.
type sinkMetrics struct {
	queue *outbox.Queue
	o     component.Options
}

var queueMetrics = outbox.NewQueueMetrics()

// observe counts an attempt to send records.
func (m *sinkMetrics) observe(out outbox.Outcome, records int, took time.Duration) {
	outcome, lost := "sent", 0
	for _, n := range out.Lost {
		lost += n
	}
	switch {
	case len(out.Left) == records:
		outcome = "retry"
	case lost == records:
		outcome = "dropped"
	case len(out.Left)+lost > 0:
		outcome = "partial"
	}
	m.queue.Seconds.Observe(outcome, took)
}

// updateStats adds the records sent and lost since the last call to the node's
// Stats, and returns the queue's statistics.
func (m *sinkMetrics) updateStats() outbox.Stats { return m.queue.ReportTo(m.o.Stats) }

// Describe implements prometheus.Collector.
func (m *sinkMetrics) Describe(ch chan<- *prometheus.Desc) { queueMetrics.Describe(ch) }

// Collect implements prometheus.Collector.
func (m *sinkMetrics) Collect(ch chan<- prometheus.Metric) { m.queue.Collect(ch, m.o.ID) }

// sinkInfo is the state that the web UI shows of a sink.
type sinkInfo struct {
	Journal        string           `json:"journal"`
	PendingBlocks  int64            `json:"pending_blocks"`
	PendingRecords int64            `json:"pending_records"`
	JournalBytes   int64            `json:"journal_bytes"`
	OldestAge      string           `json:"oldest_age"`
	Sent           int64            `json:"records_sent"`
	Retried        int64            `json:"records_retried"`
	Dropped        map[string]int64 `json:"records_dropped"`
	LastError      string           `json:"last_error,omitempty"`
}

// debug returns the state of the sink, or nil if s is nil.
func (s *sink) debug() *sinkInfo {
	if s == nil {
		return nil
	}
	q := s.c.mem.outbox
	st := q.Stats()
	in := &sinkInfo{
		Journal: q.Dir(), PendingBlocks: st.Journal.Blocks, PendingRecords: st.Journal.Samples, JournalBytes: st.Journal.Bytes, OldestAge: q.OldestAge(st),
		Sent: st.Sent, Retried: st.Retried, Dropped: st.Lost,
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.why != nil {
		in.LastError = s.why.Error()
	}
	return in
}
