package receivehttp

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-run/weir/natives/prometheus/internal/valid"
)

func newExemplarsDropped() *prometheus.CounterVec {
	v := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "weir_receive_http_exemplars_dropped_total",
		Help: "Exemplars that were not accepted, by reason.",
	}, []string{"reason"})
	for _, r := range []string{valid.ExemplarLabels, valid.ExemplarLength, "no_sample"} {
		v.WithLabelValues(r)
	}
	return v
}

func newHistogramsReduced() prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{
		Name: "weir_receive_http_histograms_reduced_total",
		Help: "Native histograms whose resolution was reduced to schema 8, the finest that storages support.",
	})
}
