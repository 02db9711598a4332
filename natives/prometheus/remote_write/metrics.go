package remotewrite

import (
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-run/weir/natives/journaling"
)

// stats count what became of an endpoint's samples.
type stats struct {
	sent, retried, bytes     atomic.Int64
	metadata, metadataFailed atomic.Int64
	fallbacks                atomic.Int64

	seconds journaling.Seconds

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
	descSent           = desc("weir_remote_write_samples_sent_total", "Samples that the endpoint accepted.")
	descRetried        = desc("weir_remote_write_samples_retried_total", "Samples sent again because the request before was not answered well.")
	descDropped        = desc("weir_remote_write_samples_dropped_total", "Samples that were taken in and will never arrive at the endpoint, by reason.", "reason")
	descBytes          = desc("weir_remote_write_sent_bytes_total", "Bytes of request bodies that the endpoint accepted.")
	descSeconds        = desc("weir_remote_write_send_seconds", "Time from a request to its answer, by outcome.", "outcome")
	descPending        = desc("weir_remote_write_samples_pending", "Samples in the journal that the endpoint has not accepted yet.")
	descMetadata       = desc("weir_remote_write_metadata_sent_total", "Metric families whose metadata the endpoint accepted.")
	descMetadataFailed = desc("weir_remote_write_metadata_failed_total", "Metric families whose metadata could not be sent.")
	descFallbacks      = desc("weir_remote_write_fallbacks_total", "Times that the endpoint turned out not to take remote write 2.0, and got 1.0 from then on.")
	descValues         = desc("weir_remote_write_header_values", "Values of header_from_label that came within the last ten minutes.")
)

// Describe implements prometheus.Collector.
func (collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		descSent, descRetried, descDropped, descBytes, descSeconds, descPending, descMetadata, descMetadataFailed, descFallbacks, descValues,
	} {
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
	s := e.settings.Load()
	name := s.args.label()
	put := func(d *prometheus.Desc, t prometheus.ValueType, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, t, v, append([]string{name}, labels...)...)
	}
	counter := func(d *prometheus.Desc, v int64, labels ...string) {
		put(d, prometheus.CounterValue, float64(v), labels...)
	}
	counter(descSent, e.stats.sent.Load())
	counter(descRetried, e.stats.retried.Load())
	counter(descBytes, e.stats.bytes.Load())
	counter(descMetadata, e.stats.metadata.Load())
	counter(descMetadataFailed, e.stats.metadataFailed.Load())
	counter(descFallbacks, e.stats.fallbacks.Load())
	if s.args.HeaderFromLabel != nil {
		put(descValues, prometheus.GaugeValue, float64(s.values.len()))
	}
	e.stats.seconds.Collect(ch, descSeconds, name)
	dropped, st := e.dropped()
	for reason, n := range dropped {
		counter(descDropped, n, reason)
	}
	put(descPending, prometheus.GaugeValue, float64(st.Samples))
	journaling.Collect(ch, name, st, e.clock.Now())
}
