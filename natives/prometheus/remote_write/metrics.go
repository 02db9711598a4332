package remotewrite

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-run/weir/natives/prometheus/internal/valid"
)

// stats are the counters of an endpoint that its account does not contain.
type stats struct {
	metadata, metadataFailed atomic.Int64
	fallbacks                atomic.Int64
	spreads                  atomic.Int64

	exemplarsTooLong, exemplarsInvalid atomic.Int64 // dropped exemplars
}

// collector reads the counters of all endpoints when it is scraped, so that the
// hot path does not count anything twice.
type collector struct{ c *Component }

func desc(name, help string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, []string{"endpoint"}, nil)
}

var (
	descMetadata       = desc("weir_remote_write_metadata_sent_total", "Metric families whose metadata the endpoint accepted.")
	descMetadataFailed = desc("weir_remote_write_metadata_failed_total", "Metric families whose metadata could not be sent.")
	descFallbacks      = desc("weir_remote_write_fallbacks_total", "Times that the endpoint turned out not to take remote write 2.0, and got 1.0 from then on.")
	descSpreads        = desc("weir_remote_write_spreads_total", "Times that a shard did not keep up with one request at a time, and its blocks were spread over several.")
	descExemplars      = prometheus.NewDesc("weir_remote_write_exemplars_dropped_total", "Exemplars that were not sent, by reason.", []string{"endpoint", "reason"}, nil)
	descValues         = desc("weir_remote_write_header_values", "Values of header_from_label that came within the last ten minutes.")
)

// Describe implements prometheus.Collector.
func (collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descMetadata, descMetadataFailed, descFallbacks, descSpreads, descExemplars, descValues} {
		ch <- d
	}
	outboxes.Metrics.Describe(ch)
}

// Collect implements prometheus.Collector.
func (k collector) Collect(ch chan<- prometheus.Metric) {
	for _, e := range k.c.endpoints.Current() {
		e.collect(ch)
	}
}

func (e *endpoint) collect(ch chan<- prometheus.Metric) {
	put := func(d *prometheus.Desc, t prometheus.ValueType, v float64) {
		ch <- prometheus.MustNewConstMetric(d, t, v, e.Label())
	}
	e.Collect(ch)
	put(descMetadata, prometheus.CounterValue, float64(e.stats.metadata.Load()))
	put(descMetadataFailed, prometheus.CounterValue, float64(e.stats.metadataFailed.Load()))
	put(descFallbacks, prometheus.CounterValue, float64(e.stats.fallbacks.Load()))
	put(descSpreads, prometheus.CounterValue, float64(e.stats.spreads.Load()))
	for reason, n := range map[string]*atomic.Int64{valid.ExemplarLength: &e.stats.exemplarsTooLong, valid.ExemplarLabels: &e.stats.exemplarsInvalid} {
		ch <- prometheus.MustNewConstMetric(descExemplars, prometheus.CounterValue, float64(n.Load()), e.Label(), reason)
	}
	if s := e.settings.Load(); s.args.HeaderFromLabel != nil {
		put(descValues, prometheus.GaugeValue, float64(s.values.len()))
	}
}
