package component

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// Register registers metrics until one of them fails, and returns that error.
// Metrics that a component took over from its predecessor, which still runs,
// may already be registered.
func Register(r prometheus.Registerer, metrics ...prometheus.Collector) error {
	for _, m := range metrics {
		err := r.Register(m)
		if there, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok && there.ExistingCollector == m {
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}
