package discovery

import (
	"fmt"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	sd "github.com/prometheus/prometheus/discovery"
)

// metrics are the metrics of the component and of the discovery. They outlive the
// component: its successor registers them again.
type metrics struct {
	targets prometheus.Gauge
	updates prometheus.Counter
	errors  prometheus.Counter
	refused prometheus.Counter

	theirs    sd.DiscovererMetrics
	collected collected
}

// collected is a Registerer that stores its collectors.
type collected []prometheus.Collector

func (c *collected) Register(p prometheus.Collector) error {
	*c = append(*c, p)
	return nil
}

func (c *collected) MustRegister(ps ...prometheus.Collector) { *c = append(*c, ps...) }

func (c *collected) Unregister(p prometheus.Collector) bool {
	before := len(*c)
	*c = slices.DeleteFunc(*c, func(o prometheus.Collector) bool { return o == p })
	return len(*c) < before
}

func newMetrics(cfg sd.Config) (*metrics, error) {
	m := &metrics{
		targets: prometheus.NewGauge(prometheus.GaugeOpts{Name: "weir_discovery_targets", Help: "Targets that are exported."}),
		updates: prometheus.NewCounter(prometheus.CounterOpts{Name: "weir_discovery_updates_total", Help: "Times that the exported targets changed."}),
		errors:  prometheus.NewCounter(prometheus.CounterOpts{Name: "weir_discovery_errors_total", Help: "Errors that the discovery reported."}),
		refused: prometheus.NewCounter(prometheus.CounterOpts{Name: "weir_discovery_refused_updates_total",
			Help: "Updates that were not used because they had too many targets or too large labels; the last targets stay."}),
	}
	m.collected = collected{m.targets, m.updates, m.errors, m.refused}
	refresh := sd.NewRefreshMetrics(&m.collected)
	m.theirs = cfg.NewDiscovererMetrics(&m.collected, refresh)
	for _, r := range []interface{ Register() error }{refresh, m.theirs} {
		if err := r.Register(); err != nil {
			return nil, fmt.Errorf("cannot collect the metrics of discovery %s: %w", cfg.Name(), err)
		}
	}
	return m, nil
}

func (m *metrics) register(r prometheus.Registerer) error {
	for _, c := range m.collected {
		if err := r.Register(c); err != nil {
			return fmt.Errorf("cannot register metrics: %w", err)
		}
	}
	return nil
}

// counter returns the counter with the given name, or nil.
func (m *metrics) counter(name string) prometheus.Counter {
	for _, c := range m.collected {
		counter, ok := c.(prometheus.Counter)
		if !ok {
			continue
		}
		reg := prometheus.NewRegistry()
		if reg.Register(c) != nil {
			continue
		}
		if fams, err := reg.Gather(); err == nil && len(fams) == 1 && fams[0].GetName() == name {
			return counter
		}
	}
	return nil
}

func value(c prometheus.Counter) float64 {
	var d dto.Metric
	if err := c.Write(&d); err != nil {
		return 0
	}
	return d.GetCounter().GetValue()
}
