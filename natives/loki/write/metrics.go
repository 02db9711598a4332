package write

import (
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-run/weir/natives/journaling"
)

// stats count what became of an endpoint's lines.
type stats struct {
	sent, retried, bytes atomic.Int64
	seconds              journaling.Seconds

	mu      sync.Mutex
	dropped map[string]int64 // but for what the journal counts
}

// collector reads all endpoints when it is scraped; nothing is counted twice
// on the hot path.
type collector struct{ c *Component }

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, append([]string{"endpoint"}, labels...), nil)
}

var (
	descSent    = desc("weir_loki_write_lines_sent_total", "Lines that the endpoint accepted.")
	descRetried = desc("weir_loki_write_lines_retried_total", "Lines sent again because the request before was not answered well.")
	descDropped = desc("weir_loki_write_lines_dropped_total", "Lines that were taken in and will never arrive at the endpoint, by reason. "+
		"Of what Loki refuses in part of a request, these are those that its answer tells of.", "reason")
	descBytes   = desc("weir_loki_write_sent_bytes_total", "Bytes of request bodies that the endpoint accepted.")
	descSeconds = desc("weir_loki_write_send_seconds", "Time from a request to its answer, by outcome.", "outcome")
	descPending = desc("weir_loki_write_lines_pending", "Lines in the journal that the endpoint has not accepted yet.")
)

// Describe implements prometheus.Collector.
func (collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descSent, descRetried, descDropped, descBytes, descSeconds, descPending} {
		ch <- d
	}
	journaling.Describe(ch)
}

// Collect implements prometheus.Collector.
func (k collector) Collect(ch chan<- prometheus.Metric) {
	for _, e := range k.c.endpoints.Current() {
		e.collect(ch)
	}
}

func (e *endpoint) collect(ch chan<- prometheus.Metric) {
	name := e.settings.Load().args.label()
	put := func(d *prometheus.Desc, t prometheus.ValueType, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, t, v, append([]string{name}, labels...)...)
	}
	counter := func(d *prometheus.Desc, v int64, labels ...string) {
		put(d, prometheus.CounterValue, float64(v), labels...)
	}
	counter(descSent, e.stats.sent.Load())
	counter(descRetried, e.stats.retried.Load())
	counter(descBytes, e.stats.bytes.Load())
	e.stats.seconds.Collect(ch, descSeconds, name)
	dropped, st := e.dropped()
	for reason, n := range dropped {
		counter(descDropped, n, reason)
	}
	put(descPending, prometheus.GaugeValue, float64(st.Samples))
	journaling.Collect(ch, name, st, e.clock.Now())
}
