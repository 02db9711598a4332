package write

import "github.com/prometheus/client_golang/prometheus"

// collector reads all endpoints when it is scraped; nothing is counted twice
// on the hot path.
type collector struct{ c *Component }

// Describe implements prometheus.Collector.
func (collector) Describe(ch chan<- *prometheus.Desc) { outboxes.Metrics.Describe(ch) }

// Collect implements prometheus.Collector.
func (k collector) Collect(ch chan<- prometheus.Metric) {
	for _, e := range k.c.endpoints.Current() {
		e.Collect(ch)
	}
}
