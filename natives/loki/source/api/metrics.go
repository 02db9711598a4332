package api

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-run/weir/natives/intake"
)

// metrics are a component's own.
type metrics struct {
	requests *prometheus.CounterVec
	received prometheus.Counter
	bodies   prometheus.Counter
	joined   prometheus.Counter
	gauges   []prometheus.Collector
}

func newMetrics(c *Component) *metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	gauge := func(name, help string, f func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, f)
	}
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_source_api_requests_total",
			Help: "Requests by how they were answered.",
		}, []string{"outcome"}),
		received: counter("weir_source_api_received_bytes_total", "Bytes of the bodies that were read, as they came."),
		bodies:   counter("weir_source_api_body_bytes_total", "Bytes of the bodies that were read, decompressed."),
		joined:   counter("weir_source_api_repeated_requests_total", "Requests whose body was under way already, or accepted without the client having heard of it."),
		gauges: []prometheus.Collector{
			gauge("weir_source_api_streams", "Sets of labels that are known, before the rules.", func() float64 { return float64(c.set.Load().streams.Len()) }),
			gauge("weir_source_api_inflight_bytes", "Memory reserved for requests that are not answered.", func() float64 { return float64(c.budget.Used()) }),
			gauge("weir_source_api_inflight_requests", "Requests that are being read or wait to be accepted.", func() float64 { return float64(c.requests.Load()) }),
			gauge("weir_source_api_connections", "Open connections.", func() float64 { return float64(c.server.Connections()) }),
		},
	}
	for _, o := range intake.Outcomes {
		m.requests.WithLabelValues(o)
	}
	return m
}

func (m *metrics) all() []prometheus.Collector {
	return append([]prometheus.Collector{m.requests, m.received, m.bodies, m.joined}, m.gauges...)
}
