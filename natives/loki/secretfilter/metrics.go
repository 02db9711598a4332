package secretfilter

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// maxOrigins is the maximum number of origins; further ones are counted as
// "other".
const maxOrigins = 1000

// metrics are the metrics of a node. They survive its components.
type metrics struct {
	redacted *prometheus.CounterVec
	bypassed prometheus.Counter
	timedOut prometheus.Counter
	took     prometheus.Counter

	mu      sync.Mutex
	origins map[string]struct{}
}

func newMetrics() *metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	return &metrics{
		redacted: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_secretfilter_secrets_redacted_total",
			Help: "Secrets that were redacted, by the rule that found them and the value of origin_label.",
		}, []string{"rule", "origin"}),
		bypassed: counter("weir_secretfilter_lines_bypassed_total", "Lines that were not looked at because of rate."),
		timedOut: counter("weir_secretfilter_lines_timed_out_total", "Lines for which processing_timeout was too short."),
		took:     counter("weir_secretfilter_processing_seconds_total", "Time that it took to look at lines."),
		origins:  map[string]struct{}{},
	}
}

func (m *metrics) all() []prometheus.Collector {
	return []prometheus.Collector{m.redacted, m.bypassed, m.timedOut, m.took}
}

func (m *metrics) found(rule, origin string) {
	m.redacted.WithLabelValues(rule, m.boundOrigin(origin)).Inc()
}

// boundOrigin returns origin, or "other" if there are too many.
func (m *metrics) boundOrigin(origin string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.origins[origin]; !ok {
		if len(m.origins) >= maxOrigins {
			return "other"
		}
		m.origins[origin] = struct{}{}
	}
	return origin
}

func (m *metrics) add(c counts, took time.Duration) {
	m.bypassed.Add(float64(c.bypassed))
	m.timedOut.Add(float64(c.timedOut))
	m.took.Add(took.Seconds())
}

// counts are the counters for one batch.
type counts struct{ bypassed, timedOut, dropped, slow int }
