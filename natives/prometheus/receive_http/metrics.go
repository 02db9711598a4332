package receivehttp

import "github.com/prometheus/client_golang/prometheus"

func newExemplarsDropped() *prometheus.CounterVec {
	v := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "weir_receive_http_exemplars_dropped_total",
		Help: "Exemplars that were not accepted, by reason.",
	}, []string{"reason"})
	for _, r := range []string{"invalid_labels", "too_long", "no_sample"} {
		v.WithLabelValues(r)
	}
	return v
}
