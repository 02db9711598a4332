package syslog

import "github.com/prometheus/client_golang/prometheus"

// metrics are the metrics of a component. The engine counts dropped lines.
type metrics struct {
	received    prometheus.Counter
	cut         prometheus.Counter
	refused     prometheus.Counter
	forgotten   prometheus.Counter
	connections prometheus.Collector
	streams     prometheus.Collector
}

func newMetrics(c *Component) *metrics {
	return &metrics{
		received: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "weir_source_syslog_received_bytes_total",
			Help: "Bytes that were read, of messages that parse or not.",
		}),
		cut: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "weir_source_syslog_cut_messages_total",
			Help: "Messages that were cut to max_message_length, or by the end of their connection.",
		}),
		refused: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "weir_source_syslog_refused_connections_total",
			Help: "TCP connections that were closed at once because there were max_connections.",
		}),
		forgotten: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "weir_source_syslog_forgotten_streams_total",
			Help: "Sets of labels that were forgotten because too many were known. No line is lost; a set that comes again is made again.",
		}),
		connections: prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "weir_source_syslog_connections",
			Help: "Open TCP connections.",
		}, func() float64 {
			n := 0
			for _, l := range c.info().Listeners {
				n += l.Connections
			}
			return float64(n)
		}),
		streams: prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "weir_source_syslog_streams",
			Help: "Sets of labels that are known, before the rules.",
		}, func() float64 { return float64(c.countStreams()) }),
	}
}

func (m *metrics) all() []prometheus.Collector {
	return []prometheus.Collector{m.received, m.cut, m.refused, m.forgotten, m.connections, m.streams}
}
