package scripting

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/outbox"
)

// sinkMetrics are the figures of a node's queue, read when they are scraped.
type sinkMetrics struct {
	queue   *outbox.Queue
	o       component.Options
	seconds *prometheus.HistogramVec

	mu   sync.Mutex
	told outbox.Stats // to Options.Stats
}

var (
	descSinkSent    = prometheus.NewDesc("weir_script_sink_records_sent_total", "Samples and log lines that the sink delivered.", nil, nil)
	descSinkRetried = prometheus.NewDesc("weir_script_sink_records_retried_total", "Samples and log lines that were sent again because the attempt before did not deliver them.", nil, nil)
	descSinkDropped = prometheus.NewDesc("weir_script_sink_records_dropped_total", "Samples and log lines that were taken in and will not be delivered, by reason.", []string{"reason"}, nil)
	descSinkPending = prometheus.NewDesc("weir_script_sink_records_pending", "Samples and log lines in the journal that are not delivered yet.", nil, nil)
)

func newSinkMetrics(q *outbox.Queue, o component.Options) *sinkMetrics {
	return &sinkMetrics{queue: q, o: o, seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "weir_script_sink_send_seconds", Help: "Time that an attempt to send a batch took, by outcome.",
		Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
	}, []string{"outcome"})}
}

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
	m.seconds.WithLabelValues(outcome).Observe(took.Seconds())
}

// updateStats tells the node's figures what was sent and lost since the last call, and
// returns the queue's.
func (m *sinkMetrics) updateStats() outbox.Stats {
	m.mu.Lock()
	defer m.mu.Unlock()
	st := m.queue.Stats()
	count := func(of batch.Signals, now, told outbox.Figures) {
		m.o.Stats.CountOut(of, int(now.Sent-told.Sent))
		for reason, n := range now.Lost {
			m.o.Stats.CountDropped(of, reason, int(n-told.Lost[reason]))
		}
	}
	count(batch.SignalMetrics, st.Samples, m.told.Samples)
	count(batch.SignalLogs, st.Lines, m.told.Lines)
	m.told = st
	return st
}

// Describe implements prometheus.Collector.
func (m *sinkMetrics) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descSinkSent, descSinkRetried, descSinkDropped, descSinkPending} {
		ch <- d
	}
	m.seconds.Describe(ch)
	outbox.Describe(ch)
}

// Collect implements prometheus.Collector.
func (m *sinkMetrics) Collect(ch chan<- prometheus.Metric) {
	st := m.queue.Stats()
	counter := func(d *prometheus.Desc, n int64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
	}
	counter(descSinkSent, st.Sent)
	counter(descSinkRetried, st.Retried)
	for reason, n := range st.Lost {
		counter(descSinkDropped, n, reason)
	}
	ch <- prometheus.MustNewConstMetric(descSinkPending, prometheus.GaugeValue, float64(st.Journal.Samples))
	m.seconds.Collect(ch)
	outbox.Collect(ch, m.o.ID, st.Journal, m.o.Clock.Now())
}

// sinkInfo is what the page shows of a sink.
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

// debug tells how the sink is; nil: it is none.
func (s *sink) debug() *sinkInfo {
	if s == nil {
		return nil
	}
	q := s.c.mem.outbox
	st := q.Stats()
	in := &sinkInfo{
		Journal: q.Dir(), PendingBlocks: st.Journal.Blocks, PendingRecords: st.Journal.Samples, JournalBytes: st.Journal.Bytes, OldestAge: "0s",
		Sent: st.Sent, Retried: st.Retried, Dropped: st.Lost,
	}
	if oldest := st.Journal.Oldest; !oldest.IsZero() {
		in.OldestAge = s.c.opts.Clock.Now().Sub(oldest).Round(time.Second).String()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.why != nil {
		in.LastError = s.why.Error()
	}
	return in
}
