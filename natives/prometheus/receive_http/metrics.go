package receivehttp

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-run/weir/natives/intake"
)

var exemplarDropReasons = []string{"invalid_labels", "too_long", "no_sample"}

// metrics are a component's own.
type metrics struct {
	requests  *prometheus.CounterVec
	received  prometheus.Counter
	bodies    prometheus.Counter
	joined    prometheus.Counter
	exemplars *prometheus.CounterVec
	gauges    []prometheus.Collector
}

func newMetrics(c *Component) *metrics {
	gauge := func(name, help string, f func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, f)
	}
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_receive_http_requests_total",
			Help: "Requests by how they were answered.",
		}, []string{"outcome"}),
		received: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "weir_receive_http_received_bytes_total",
			Help: "Bytes of the bodies that were read, as they came.",
		}),
		bodies: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "weir_receive_http_body_bytes_total",
			Help: "Bytes of the bodies that were read, decompressed.",
		}),
		joined: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "weir_receive_http_repeated_requests_total",
			Help: "Requests whose body was under way already, or accepted without the client having heard of it.",
		}),
		exemplars: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_receive_http_exemplars_dropped_total",
			Help: "Exemplars that were not accepted, by reason.",
		}, []string{"reason"}),
		gauges: []prometheus.Collector{
			gauge("weir_receive_http_series", "Series that are known.", func() float64 { return float64(c.known.Load().len()) }),
			gauge("weir_receive_http_inflight_bytes", "Memory reserved for requests that are not answered.", func() float64 { return float64(c.budget.Used()) }),
			gauge("weir_receive_http_inflight_requests", "Requests that are being read or wait to be accepted.", func() float64 { return float64(c.requests.Load()) }),
			gauge("weir_receive_http_connections", "Open connections.", func() float64 { return float64(c.server.Connections()) }),
		},
	}
	for _, o := range intake.Outcomes {
		m.requests.WithLabelValues(o)
	}
	for _, r := range exemplarDropReasons {
		m.exemplars.WithLabelValues(r)
	}
	return m
}

func (m *metrics) all() []prometheus.Collector {
	return append([]prometheus.Collector{m.requests, m.received, m.bodies, m.joined, m.exemplars}, m.gauges...)
}
