package write

import "github.com/prometheus/client_golang/prometheus"

// collector reads the counters of all endpoints when it is scraped, so that the
// hot path does not count anything twice.
type collector struct{ c *Component }

// Describe implements prometheus.Collector.
func (collector) Describe(ch chan<- *prometheus.Desc) { outboxes.Metrics.Describe(ch) }

// Collect implements prometheus.Collector.
func (k collector) Collect(ch chan<- prometheus.Metric) {
	for _, e := range k.c.endpoints.Current() {
		e.Collect(ch)
	}
}
