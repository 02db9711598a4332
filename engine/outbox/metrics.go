package outbox

import (
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-run/weir/engine/journal"
)

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, append([]string{"endpoint"}, labels...), nil)
}

// Metrics are the metrics of the outboxes of a component.
type Metrics struct{ sent, retried, dropped, bytes, seconds, pending *prometheus.Desc }

// NewMetrics returns the metrics of endpoints. Their names begin with weir_ and
// name. rows is the name of the counted rows, such as "lines". note is appended
// to the help of the counter of dropped rows. The metrics have the label
// endpoint.
func NewMetrics(name, rows, note string) *Metrics {
	m := newMetrics("weir_"+name+"_", rows, strings.ToUpper(rows[:1])+rows[1:], note, "endpoint")
	m.bytes = desc("weir_"+name+"_sent_bytes_total", "Bytes of request bodies that the endpoint accepted.")
	return m
}

func newMetrics(prefix, rows, title, note string, labels ...string) *Metrics {
	d := func(name, help string, more ...string) *prometheus.Desc {
		return prometheus.NewDesc(prefix+name, help, append(slices.Clone(labels), more...), nil)
	}
	return &Metrics{
		sent:    d(rows+"_sent_total", title+" that were delivered."),
		retried: d(rows+"_retried_total", title+" that were sent again because the previous attempt failed."),
		dropped: d(rows+"_dropped_total", title+" that were accepted and will never be delivered, by reason."+note, "reason"),
		seconds: d("send_seconds", "Duration of an attempt to send, by outcome.", "outcome"),
		pending: d(rows+"_pending", title+" in the journal that are not delivered yet."),
	}
}

// Describe sends the descriptions of an outbox's metrics.
func (m *Metrics) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{m.sent, m.retried, m.dropped, m.bytes, m.seconds, m.pending, descBytes, descAge, descBlocks, descDropped, descSkipped} {
		if d != nil {
			ch <- d
		}
	}
}

// collect sends the metrics. endpoint is the label of the journal's metrics.
func (b *Outbox) collect(ch chan<- prometheus.Metric, m *Metrics, endpoint string, labels ...string) {
	st := b.Stats()
	counter := func(d *prometheus.Desc, v int64, more ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), append(slices.Clone(labels), more...)...)
	}
	counter(m.sent, st.Sent)
	counter(m.retried, st.Retried)
	if m.bytes != nil {
		counter(m.bytes, b.Bytes.Load())
	}
	for reason, n := range st.Lost {
		counter(m.dropped, n, reason)
	}
	ch <- prometheus.MustNewConstMetric(m.pending, prometheus.GaugeValue, float64(st.Waiting), labels...)
	b.Seconds.Collect(ch, m.seconds, labels...)
	collectJournal(ch, endpoint, st.Journal, b.Clock.Now())
}

var (
	descBytes   = desc("weir_journal_size_bytes", "Size of the journal on disk.")
	descAge     = desc("weir_journal_oldest_age_seconds", "Age of the oldest pending block; 0 when none is pending.")
	descBlocks  = desc("weir_journal_pending_blocks", "Blocks in the journal that are not done.")
	descDropped = desc("weir_journal_blocks_dropped_total", "Blocks that were dropped from the journal, by reason. The number of samples in a block with a damaged header is not known.", "reason")
	descSkipped = desc("weir_journal_skipped_bytes_total", "Bytes in the journal that were no blocks: damage and unfinished writes.")
)

// collectJournal sends the metrics of a journal.
func collectJournal(ch chan<- prometheus.Metric, endpoint string, st journal.Stats, now time.Time) {
	put := func(d *prometheus.Desc, t prometheus.ValueType, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, t, v, append([]string{endpoint}, labels...)...)
	}
	age := 0.0
	if !st.Oldest.IsZero() {
		age = max(now.Sub(st.Oldest).Seconds(), 0) // the clock may have been set back
	}
	put(descBytes, prometheus.GaugeValue, float64(st.Bytes))
	put(descAge, prometheus.GaugeValue, age)
	put(descBlocks, prometheus.GaugeValue, float64(st.Blocks))
	for _, reason := range journal.DropReasons {
		put(descDropped, prometheus.CounterValue, float64(st.DroppedBlocks[reason]), reason)
	}
	put(descSkipped, prometheus.CounterValue, float64(st.SkippedBytes))
}
