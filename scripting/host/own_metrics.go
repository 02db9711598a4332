package host

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/weir-run/weir/scripting"
)

const (
	// ownPrefix is the prefix of a script's own metrics. No metric of weir begins
	// with it.
	ownPrefix = "weir_script_custom_"
	// maxOwnSeries is the maximum number of series of a node's scripts, and
	// maxOwnNames the maximum number of their metrics.
	maxOwnSeries = 1000
	maxOwnNames  = 200
	// maxOwnLabels, maxOwnLabel and maxOwnValue limit the labels of a series,
	// maxOwnHelp its help. The last three are in bytes.
	maxOwnLabels = 10
	maxOwnLabel  = 100
	maxOwnValue  = 256
	maxOwnHelp   = 1000
	// ownIdle is the number of sweeps, of a minute each, after which a series is
	// removed that no version since the last reload has used.
	ownIdle = 15
)

// MetricKind is a kind of metric.
type MetricKind uint8

const (
	ownCounter MetricKind = iota
	ownGauge
	ownHistogram
)

// String returns the name of the function that creates a metric of this kind.
func (k MetricKind) String() string { return [...]string{"counter", "gauge", "histogram"}[k] }

// Metrics are the metrics that the scripts of one node define. The node's
// instances pass them on.
type Metrics struct {
	refused     prometheus.Counter
	description *prometheus.Desc

	mu       sync.Mutex
	families map[string]*family // by name as shown
	count    int                // of series
}

// family is a metric: all series with one name.
type family struct {
	kind   MetricKind
	help   string
	labels []string // sorted
	series map[string]*Series
}

// Series is one series. It has no metric if there were too many.
type Series struct {
	name      string
	counter   prometheus.Counter
	gauge     prometheus.Gauge
	histogram prometheus.Histogram

	instance uint64 // that used it last; guarded by Metrics.mu
	idle     int    // sweeps since its last use; guarded by Metrics.mu
	used     atomic.Bool
}

// NewMetrics returns the metrics of a node without any series.
func NewMetrics() *Metrics {
	return &Metrics{
		refused: prometheus.NewCounter(prometheus.CounterOpts{Name: "weir_script_custom_refused_total",
			Help: fmt.Sprintf("Updates of series of ctx.metrics that were ignored because the limit of %d series or %d metrics was reached.", maxOwnSeries, maxOwnNames)}),
		description: prometheus.NewDesc("weir_script_custom_series", "Series that the script has in ctx.metrics.", nil, nil),
		families:    map[string]*family{},
	}
}

func (s *Series) touch() *Series {
	s.used.Store(true)
	return s
}

var (
	ownName  = regexp.MustCompile(`^[a-z][a-z0-9_]{0,99}$`)
	ownLabel = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)
)

// Series returns a series, and creates it if necessary. msg describes the error
// in the argument called name.
func (m *Metrics) Series(instance uint64, kind MetricKind, name string, labels *scripting.Map, help string) (s *Series, wrong, msg string) {
	if !ownName.MatchString(name) {
		return nil, "name", fmt.Sprintf("must consist of lower-case letters, digits and underscores, begin with a letter and have at most 100 characters, unlike %.120q", name)
	}
	full := ownPrefix + name
	if kind == ownCounter && !strings.HasSuffix(full, "_total") {
		full += "_total"
	}
	if len(help) > maxOwnHelp {
		return nil, "help", fmt.Sprintf("cannot have %d bytes: the limit is %d", len(help), maxOwnHelp)
	}
	values := map[string]string{}
	if labels != nil {
		if n := labels.Len(); n > maxOwnLabels {
			return nil, "labels", fmt.Sprintf("cannot have %d labels: the limit is %d", n, maxOwnLabels)
		}
		for _, l := range labels.Keys() {
			v, _ := labels.Get(l)
			text := strings.ToValidUTF8(fmt.Sprint(v), "\ufffd")
			switch {
			case len(l) > maxOwnLabel || !ownLabel.MatchString(l) || strings.HasPrefix(l, "__") || l == "component_id" || l == "le":
				return nil, "labels", fmt.Sprintf("cannot have the label %.120q", l)
			case len(text) > maxOwnValue:
				return nil, "labels", fmt.Sprintf("cannot have a label value of %d bytes: the limit is %d", len(text), maxOwnValue)
			}
			values[strings.Clone(l)] = strings.Clone(text) // they may be parts of long texts
		}
	}
	names := slices.Sorted(maps.Keys(values))
	var key strings.Builder
	for _, n := range names {
		key.WriteString(values[n])
		key.WriteByte(0xff)
	}

	m.mu.Lock()
	defer m.mu.Unlock()
	f := m.families[full]
	if f == nil {
		if help == "" {
			help = "A metric defined by the script."
		}
		f = &family{kind: kind, help: strings.Clone(strings.ToValidUTF8(help, "\ufffd")), labels: names, series: map[string]*Series{}}
	}
	switch {
	case f.kind != kind:
		return nil, "name", fmt.Sprintf("is already used by a %s", f.kind)
	case !slices.Equal(f.labels, names):
		return nil, "labels", fmt.Sprintf("must be the labels of the first use: [%s], not [%s]", strings.Join(f.labels, " "), strings.Join(names, " "))
	}
	s = f.series[key.String()]
	if s == nil {
		if m.count >= maxOwnSeries || len(f.series) == 0 && len(m.families) >= maxOwnNames {
			m.refused.Inc()
			return &Series{name: full}, "", ""
		}
		s = newSeries(kind, full, f.help, values)
		f.series[key.String()] = s
		m.families[full] = f
		m.count++
	}
	s.instance = instance
	s.touch()
	return s, "", ""
}

func newSeries(kind MetricKind, name, help string, labels prometheus.Labels) *Series {
	s := &Series{name: name}
	switch kind {
	case ownCounter:
		s.counter = prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help, ConstLabels: labels})
	case ownGauge:
		s.gauge = prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: labels})
	case ownHistogram:
		s.histogram = prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, ConstLabels: labels})
	}
	return s
}

func (s *Series) collector() prometheus.Collector {
	switch {
	case s.counter != nil:
		return s.counter
	case s.gauge != nil:
		return s.gauge
	}
	return s.histogram
}

// RemoveOutdated removes the series that belong to an older version of the
// script.
func (m *Metrics) RemoveOutdated(instance uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name, f := range m.families {
		for key, s := range f.series {
			if s.idle++; s.used.Swap(false) {
				s.idle = 0
			}
			if s.instance < instance && s.idle >= ownIdle {
				delete(f.series, key)
				m.count--
			}
		}
		if len(f.series) == 0 {
			delete(m.families, name)
		}
	}
}

// Describe sends one description, by which a registry identifies the collector;
// the metrics of scripts are not known in advance.
func (m *Metrics) Describe(ch chan<- *prometheus.Desc) { ch <- m.description }

// Collect sends all of them.
func (m *Metrics) Collect(ch chan<- prometheus.Metric) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.count == 0 {
		return // the script has no metrics
	}
	ch <- prometheus.MustNewConstMetric(m.description, prometheus.GaugeValue, float64(m.count))
	m.refused.Collect(ch)
	for _, f := range m.families {
		for _, s := range f.series {
			s.collector().Collect(ch)
		}
	}
}
