package process

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/clock"
)

// metricKind is the kind of a metric that a user defines.
type metricKind int

const (
	counterKind metricKind = iota
	gaugeKind
	histogramKind
)

// maxSeries is the maximum number of series of a metric. Lines of further streams
// are not counted by the metric.
const maxSeries = 20_000

// custom is the set of metrics that the stages of a node define. A metric keeps
// its values across reloads as long as a stage defines it in the same way. Stages
// with the same definition share the metric.
type custom struct {
	refused *prometheus.CounterVec

	mu    sync.Mutex
	clock clock.Clock
	all   map[string]*customMetric // by definition
	shown []*customMetric          // the metrics of the current pipeline
}

func newCustom() *custom {
	return &custom{
		all: map[string]*customMetric{},
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "loki_process_metrics_refused_total",
			Help: "Lines that a metric of stage.metrics does not count because it has too many series.",
		}, []string{"metric"}),
	}
}

// metric returns the metric with this definition and creates it if necessary.
func (c *custom) metric(kind metricKind, name, help string, idle time.Duration, buckets []float64) *customMetric {
	key := fmt.Sprintf("%d %q %q %s %v", kind, name, help, idle, buckets)
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.all[key]
	if m == nil {
		m = &customMetric{kind: kind, name: name, help: help, idle: idle, buckets: buckets, series: map[string]*customSeries{}, refused: c.refused.WithLabelValues(name)}
		c.all[key] = m
	}
	return m
}

// show exposes the metrics ms and removes all other metrics.
func (c *custom) show(ms []*customMetric, clk clock.Clock) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.clock, c.shown = clk, nil
	for key, m := range c.all {
		if !slices.Contains(ms, m) {
			delete(c.all, key)
			continue
		}
		c.shown = append(c.shown, m)
	}
}

// current returns the exposed metrics and the time.
func (c *custom) current() (ms []*customMetric, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.clock == nil {
		return nil, now
	}
	return c.shown, c.clock.Now()
}

// removeIdle removes series that have not changed for too long.
func (c *custom) removeIdle() {
	ms, now := c.current()
	for _, m := range ms {
		m.mu.Lock()
		m.prune(now)
		m.mu.Unlock()
		m.byStream.Sweep(nil)
	}
}

// Describe describes only the constant metric, which identifies the collector:
// the names of the other metrics change with the configuration.
func (c *custom) Describe(ch chan<- *prometheus.Desc) { c.refused.Describe(ch) }

// Collect sends the metrics. It then removes the series that have not changed for
// too long, so that their last value is sent once.
func (c *custom) Collect(ch chan<- prometheus.Metric) {
	ms, now := c.current()
	for _, m := range ms {
		m.mu.Lock()
		m.collect(ch)
		m.prune(now)
		m.mu.Unlock()
	}
	c.refused.Collect(ch)
}

// customMetric is one metric and its series, by the labels of the streams.
type customMetric struct {
	kind       metricKind
	name, help string
	idle       time.Duration
	buckets    []float64
	refused    prometheus.Counter
	byStream   batch.Memo[*customSeries]

	mu     sync.Mutex
	series map[string]*customSeries // by labels
}

// customSeries is guarded by the metric's mu.
type customSeries struct {
	key     string
	desc    *prometheus.Desc
	changed time.Time
	gone    bool
	v       float64 // for a histogram, the sum
	n       uint64
	counts  []uint64 // by bucket, not cumulative
}

// seriesOf returns the series of a stream, or nil if there are too many. The
// caller holds mu.
func (m *customMetric) seriesOf(s *batch.Stream) *customSeries {
	known, ok := m.byStream.Get(s)
	if ok && !known.gone {
		return known
	}
	if ok { // the series was removed, and another stream may have created it again
		if cs := m.series[known.key]; cs != nil {
			return cs
		}
	}
	var key strings.Builder
	labels := prometheus.Labels{}
	for name, v := range s.Labels() {
		if strings.HasPrefix(name, "__") || !model.LegacyValidation.IsValidLabelName(name) {
			continue
		}
		if name == "component_id" || m.kind == histogramKind && name == "le" {
			name = "exported_" + name // weir uses the name itself
		}
		labels[name] = v
		fmt.Fprintf(&key, "%q=%q,", name, v)
	}
	cs := m.series[key.String()]
	if cs == nil {
		if len(m.series) >= maxSeries {
			m.refused.Inc()
			return nil
		}
		if ok {
			*known = customSeries{key: known.key, desc: known.desc, counts: make([]uint64, len(m.buckets))}
			m.series[known.key] = known
			return known
		}
		cs = &customSeries{key: key.String(), desc: prometheus.NewDesc(m.name, m.help, nil, labels), counts: make([]uint64, len(m.buckets))}
		m.series[cs.key] = cs
	}
	if !ok {
		m.byStream.Put(s, cs)
	}
	return cs
}

// prune removes idle series. The caller holds mu.
func (m *customMetric) prune(now time.Time) {
	for key, s := range m.series {
		if now.Sub(s.changed) >= m.idle {
			s.gone = true
			delete(m.series, key)
		}
	}
}

func (s *customSeries) observe(buckets []float64, v float64) {
	s.v += v
	s.n++
	if i := sort.SearchFloat64s(buckets, v); i < len(buckets) {
		s.counts[i]++
	}
}

// collect sends the series. The caller holds mu.
func (m *customMetric) collect(ch chan<- prometheus.Metric) {
	for _, s := range m.series {
		var metric prometheus.Metric
		var err error
		switch m.kind {
		case counterKind:
			metric, err = prometheus.NewConstMetric(s.desc, prometheus.CounterValue, s.v)
		case gaugeKind:
			metric, err = prometheus.NewConstMetric(s.desc, prometheus.GaugeValue, s.v)
		case histogramKind:
			cumulative := make(map[float64]uint64, len(m.buckets))
			var n uint64
			for i, b := range m.buckets {
				n += s.counts[i]
				cumulative[b] = n
			}
			metric, err = prometheus.NewConstHistogram(s.desc, s.n, s.v, cumulative)
		}
		if err != nil {
			metric = prometheus.NewInvalidMetric(s.desc, err)
		}
		ch <- metric
	}
}
