package component

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// Register makes metrics visible until the first that cannot be, and says why
// not. Those that a component took over from the previous one, which still runs,
// may be visible already.
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
