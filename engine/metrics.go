package engine

import (
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
)

// metrics are the engine's own metrics, except those that are read from nodes.
type metrics struct {
	reloads       *prometheus.CounterVec
	reloadSeconds prometheus.Histogram
	refusals      *prometheus.CounterVec
	builds        *prometheus.CounterVec
	buildSeconds  prometheus.Histogram
	updates       prometheus.Counter
	evaluations   prometheus.Counter
	current       prometheus.Gauge
	polling       prometheus.Gauge
	stalled       prometheus.Gauge
	stalls        prometheus.Counter
	abandoned     prometheus.Gauge
	fetches       *prometheus.CounterVec
	outdated      *prometheus.GaugeVec
}

func newMetrics() *metrics {
	m := &metrics{
		reloads: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "weir_engine_reloads_total",
			Help: "Changes of the configuration or of scripts, the start included, by outcome: applied, partial (a node stayed on its last good version) or refused."}, []string{"outcome"}),
		reloadSeconds: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "weir_engine_reload_seconds",
			Help: "How long it took to make or refuse a change.", Buckets: prometheus.ExponentialBuckets(0.001, 4, 8)}),
		refusals: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "weir_engine_reload_refusals_total",
			Help: "New versions of scripts that a step refused, once for each node, by step: compile, check, test, shadow, canary or build."}, []string{"step"}),
		builds: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "weir_engine_builds_total",
			Help: "Components that were built, by outcome: ok or failed."}, []string{"outcome"}),
		buildSeconds: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "weir_engine_build_seconds",
			Help: "How long it took to build a component.", Buckets: prometheus.ExponentialBuckets(0.0001, 8, 7)}),
		updates: prometheus.NewCounter(prometheus.CounterOpts{Name: "weir_engine_updates_total",
			Help: "Components that took new arguments while they ran."}),
		evaluations: prometheus.NewCounter(prometheus.CounterOpts{Name: "weir_engine_evaluations_total",
			Help: "Evaluations of a node's arguments."}),
		current: prometheus.NewGauge(prometheus.GaugeOpts{Name: "weir_engine_config_current",
			Help: "1 when the config that runs is the one that was read last, 0 when that was refused."}),
		polling: prometheus.NewGauge(prometheus.GaugeOpts{Name: "weir_engine_files_polled",
			Help: "1 while files are looked at every second, because not all changes come as events or none are wanted; else 0."}),
	}
	m.stalled = prometheus.NewGauge(prometheus.GaugeOpts{Name: "weir_engine_operations_stalled",
		Help: "Operations of nodes, of removed nodes and of the engine that have not returned in time: builds, updates, calls, sends, stops."})
	m.stalls = prometheus.NewCounter(prometheus.CounterOpts{Name: "weir_engine_stalls_total",
		Help: "Times a node became unhealthy because an operation had not returned in time."})
	m.abandoned = prometheus.NewGauge(prometheus.GaugeOpts{Name: "weir_engine_nodes_abandoned",
		Help: "Removed nodes that have not stopped within 15 s. They keep their memory until they do."})
	m.fetches = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "weir_import_fetches_total",
		Help: "Fetches of the content of remote imports, by outcome: ok, changed (it is not the content in weir.lock) or failed."}, []string{"outcome"})
	m.outdated = prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "weir_import_update_available",
		Help: "1 if the source of the remote import has other content than weir.lock, 0 if it has the same; missing until it was looked at."}, []string{"component_id"})
	m.current.Set(1)
	for _, o := range []string{"applied", "partial", "refused"} {
		m.reloads.WithLabelValues(o)
	}
	for _, s := range []string{component.StepCompile, component.StepCheck, component.StepTest, component.StepShadow, component.StepCanary, component.StepBuild} {
		m.refusals.WithLabelValues(s)
	}
	for _, o := range []string{"ok", "changed", "failed"} {
		m.fetches.WithLabelValues(o)
	}
	for _, o := range []string{"ok", "failed"} {
		m.builds.WithLabelValues(o)
	}
	return m
}

func (m *metrics) reloaded(outcome string, took time.Duration) {
	m.reloads.WithLabelValues(outcome).Inc()
	m.reloadSeconds.Observe(took.Seconds())
}

func (m *metrics) built(took time.Duration, err error) {
	outcome := "ok"
	if err != nil {
		outcome = "failed"
	}
	m.builds.WithLabelValues(outcome).Inc()
	m.buildSeconds.Observe(took.Seconds())
}

var (
	descIn = prometheus.NewDesc("weir_component_samples_in_total",
		"Samples that came in through the node's receiver and were accepted.", []string{"component_id"}, nil)
	descOut = prometheus.NewDesc("weir_component_samples_out_total",
		"Samples that were accepted by a receiver the node sends to, or by an endpoint of a sink, once for each.", []string{"component_id"}, nil)
	descDropped = prometheus.NewDesc("weir_component_samples_dropped_total",
		"Samples that the node did not send on, by reason.", []string{"component_id", "reason"}, nil)
	descLinesIn = prometheus.NewDesc("weir_component_lines_in_total",
		"Log lines that came in through the node's receiver and were accepted.", []string{"component_id"}, nil)
	descLinesOut = prometheus.NewDesc("weir_component_lines_out_total",
		"Log lines that were accepted by a receiver the node sends to, or by an endpoint of a sink, once for each.", []string{"component_id"}, nil)
	descLinesDropped = prometheus.NewDesc("weir_component_lines_dropped_total",
		"Log lines that the node did not send on, by reason.", []string{"component_id", "reason"}, nil)
	descHealth = prometheus.NewDesc("weir_component_health",
		"1 for the state the node is in: unknown, healthy, unhealthy or exited.", []string{"component_id", "state"}, nil)
	descUnhealthy = prometheus.NewDesc("weir_component_unhealthy_since_timestamp_seconds",
		"Unix time since when the node is unhealthy, for each reason; missing while it is not.", []string{"component_id", "reason"}, nil)
	descBuilds = prometheus.NewDesc("weir_component_builds_total",
		"Times the node's component was built and took over, the first included.", []string{"component_id"}, nil)
	descRestarts = prometheus.NewDesc("weir_component_restarts_total",
		"Times the node's component failed while it ran and was started again.", []string{"component_id"}, nil)
	descRemoving = prometheus.NewDesc("weir_engine_nodes_removing",
		"Nodes that were removed from the graph and have not stopped yet.", nil, nil)
	descCoalesced = prometheus.NewDesc("weir_engine_exports_coalesced_total",
		"Exports of nodes that were replaced by newer ones before they could be followed.", nil, nil)
	descBuild = prometheus.NewDesc("weir_build_info",
		"1, with the version as a label.", []string{"version"}, nil)
)

// collector collects all metrics of the engine and its components. It describes
// nothing, because the metrics of components are not known in advance.
type collector struct{ e *Engine }

// Describe sends nothing.
func (collector) Describe(chan<- *prometheus.Desc) {}

// Collect sends all metrics.
func (c collector) Collect(ch chan<- prometheus.Metric) {
	m := c.e.metrics
	for _, own := range []prometheus.Collector{m.reloads, m.reloadSeconds, m.refusals, m.builds, m.buildSeconds, m.updates, m.evaluations, m.current, m.polling, m.stalled, m.stalls, m.abandoned, m.fetches, m.outdated} {
		own.Collect(ch)
	}
	ch <- prometheus.MustNewConstMetric(descRemoving, prometheus.GaugeValue, float64(c.e.removing.len()))
	ch <- prometheus.MustNewConstMetric(descCoalesced, prometheus.CounterValue, float64(c.e.box.coalesced()))
	ch <- prometheus.MustNewConstMetric(descBuild, prometheus.GaugeValue, 1, strings.ToValidUTF8(c.e.o.Version, "?"))
	all := newFamilies()
	snap := c.e.graph.Load()
	for _, h := range snap.heads {
		i := h.state.Load()
		if !strings.HasPrefix(i.Name, "import.") && i.Name != "foreach" {
			continue // their nodes have the metrics of instances
		}
		health(ch, i.ID, i.Health.State)
		unhealthy(ch, i.ID, i.Problems)
	}
	for _, n := range snap.nodes {
		counter := func(d *prometheus.Desc, v uint64, labels ...string) {
			ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), append([]string{n.id}, labels...)...)
		}
		s := n.state.Load()
		if n.shown.Load().m.muted {
			continue
		}
		counter(descIn, n.stats.In.Load())
		counter(descOut, n.stats.Out.Load())
		if (s.reg.Accepts|s.reg.Sends)&batch.SignalLogs != 0 {
			counter(descLinesIn, n.stats.LinesIn.Load())
			counter(descLinesOut, n.stats.LinesOut.Load())
		}
		counter(descBuilds, s.builds)
		counter(descRestarts, s.restarts)
		for reason, v := range n.stats.Dropped() {
			counter(descDropped, v, strings.ToValidUTF8(reason, "?"))
		}
		for reason, v := range n.stats.DroppedLines() {
			counter(descLinesDropped, v, strings.ToValidUTF8(reason, "?"))
		}
		health(ch, n.id, s.health.State)
		unhealthy(ch, n.id, s.problems)
		n.collect(all)
	}
	all.send(ch)
}

// unhealthy sends the start times of a node's problems.
func unhealthy(ch chan<- prometheus.Metric, id string, problems []component.Health) {
	for _, p := range problems {
		ch <- prometheus.MustNewConstMetric(descUnhealthy, prometheus.GaugeValue, float64(p.Time.UnixMilli())/1000, id, strings.ToValidUTF8(p.Reason, "?"))
	}
}

// health sends the health state of a node.
func health(ch chan<- prometheus.Metric, id string, is component.HealthState) {
	for _, state := range []component.HealthState{component.Unknown, component.Healthy, component.Unhealthy, component.Exited} {
		v := 0.0
		if state == is {
			v = 1
		}
		ch <- prometheus.MustNewConstMetric(descHealth, prometheus.GaugeValue, v, id, state.String())
	}
}
