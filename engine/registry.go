package engine

import (
	"errors"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/proto"
)

// registry is the Registerer of one instance. Each instance has its own, so
// that an old and a new one can have the same metrics.
type registry struct {
	prometheus.Registerer
	all *prometheus.Registry
	log *slog.Logger
}

func newRegistry(id string, log *slog.Logger) *registry {
	all := prometheus.NewRegistry()
	return &registry{prometheus.WrapRegistererWith(prometheus.Labels{"component_id": id}, all), all, log.With("component_id", id)}
}

// Register registers c. Panics of c do not end the process.
func (r *registry) Register(c prometheus.Collector) error {
	err := r.Registerer.Register(careful{c, r.log})
	if twice, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
		if have, ok := twice.ExistingCollector.(careful); ok {
			twice.ExistingCollector = have.Collector
		}
		twice.NewCollector = c
		return twice
	}
	return err
}

// MustRegister panics if Register returns an error.
func (r *registry) MustRegister(cs ...prometheus.Collector) {
	for _, c := range cs {
		if err := r.Register(c); err != nil {
			panic(err)
		}
	}
}

// careful is a collector that does not panic.
type careful struct {
	prometheus.Collector
	log *slog.Logger
}

// Collect sends the metrics of the collector up to a panic, if there is one.
func (c careful) Collect(ch chan<- prometheus.Metric) {
	if err := guard(func() error { c.Collector.Collect(ch); return nil }); err != nil {
		c.log.Error("cannot collect a component's metrics", "err", err)
	}
}

// gather returns the registered metrics. Metrics that cannot be gathered are
// left out.
func (r *registry) gather() []*dto.MetricFamily {
	fams, err := r.all.Gather()
	if err != nil {
		r.log.Warn("cannot gather all of a component's metrics", "err", err)
	}
	return fams
}

// collect adds the node's metrics to all: those of its newest instance. To keep
// counters across a reload, a component takes them from its predecessor.
func (n *node) collect(all *families) {
	n.mu.Lock()
	var newest *instance
	for g, age := range n.instances {
		if newest == nil || age > n.instances[newest] {
			newest = g
		}
	}
	n.mu.Unlock()
	if newest == nil {
		return
	}
	fams, _ := ask(newest, askMetrics, newest.registry.gather) // gather logs its errors
	for _, f := range fams {
		for _, m := range f.Metric {
			all.add(f, m)
		}
	}
}

// families merges metrics of several registries. The first metric with a name
// determines its type and labels; different metrics with that name are left
// out.
type families struct {
	help  map[string]string
	types map[string]dto.MetricType
	list  []prometheus.Metric
}

func newFamilies() *families {
	return &families{help: map[string]string{}, types: map[string]dto.MetricType{}}
}

func (fs *families) add(f *dto.MetricFamily, m *dto.Metric) {
	name := f.GetName()
	if t, ok := fs.types[name]; !ok {
		fs.types[name], fs.help[name] = f.GetType(), f.GetHelp()
	} else if t != f.GetType() {
		return
	}
	var labels []string
	for _, l := range m.Label {
		labels = append(labels, l.GetName())
	}
	fs.list = append(fs.list, gathered{prometheus.NewDesc(name, fs.help[name], labels, nil), m})
}

func (fs *families) send(ch chan<- prometheus.Metric) {
	for _, m := range fs.list {
		ch <- m
	}
}

// gathered is a metric that was gathered already.
type gathered struct {
	desc *prometheus.Desc
	m    *dto.Metric
}

// Desc returns its description.
func (g gathered) Desc() *prometheus.Desc { return g.desc }

// Write copies it to out.
func (g gathered) Write(out *dto.Metric) error {
	proto.Merge(out, g.m)
	return nil
}
