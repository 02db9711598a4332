package process

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
)

// MetricsArguments are the arguments of stage.metrics.
type MetricsArguments struct {
	// The metrics to create, each with the labels of the lines' streams.
	Metrics []MetricArguments `alloy:"metric,enum,optional"`
}

// MetricArguments is one metric. Exactly one of its fields is set.
type MetricArguments struct {
	// A value that only grows.
	Counter *CounterArguments `alloy:"counter,block,optional"`
	// A value that goes up and down.
	Gauge *GaugeArguments `alloy:"gauge,block,optional"`
	// How often values are in ranges.
	Histogram *HistogramArguments `alloy:"histogram,block,optional"`
}

// MetricCommon are the arguments that all kinds of metrics have.
type MetricCommon struct {
	// The name, after the prefix.
	Name string `alloy:"name,attr"`
	// The help text of the metric.
	Description string `alloy:"description,attr,optional"`
	// The extracted value to read. Default: the value with the name of the metric.
	Source string `alloy:"source,attr,optional"`
	// The prefix of the name. Default: loki_process_custom_.
	Prefix string `alloy:"prefix,attr,optional"`
	// How long a series is kept after its last change.
	MaxIdle time.Duration `alloy:"max_idle_duration,attr,optional"`
	// The value that the source must have for a line to count.
	Value string `alloy:"value,attr,optional"`
}

func (m *MetricCommon) fullName() string {
	if m.Prefix != "" {
		return m.Prefix + m.Name
	}
	return "loki_process_custom_" + m.Name
}

func (m *MetricCommon) source() string {
	if m.Source != "" {
		return m.Source
	}
	return m.Name
}

// check returns all errors in the arguments, joined.
func (m *MetricCommon) check() error {
	var errs []error
	if m.MaxIdle < time.Second {
		errs = append(errs, fmt.Errorf("max_idle_duration is %s, must be at least 1s", m.MaxIdle))
	}
	if n := m.fullName(); m.Name == "" || !model.LegacyValidation.IsValidMetricName(n) {
		errs = append(errs, fmt.Errorf("name makes %q, which is no name of a metric: letters, digits, _ and : make one, and no digit is the first", n))
	}
	return errors.Join(errs...)
}

const defaultIdle = 5 * time.Minute

// CounterArguments are the arguments of metric.counter.
type CounterArguments struct {
	MetricCommon `alloy:",squash"`
	// The effect of a line: inc adds one, add adds the value of source.
	Action string `alloy:"action,attr"`
	// Whether all lines count, regardless of the extracted values.
	MatchAll bool `alloy:"match_all,attr,optional"`
	// Whether the bytes of lines are added; it needs match_all and action add.
	CountEntryBytes bool `alloy:"count_entry_bytes,attr,optional"`
}

// SetToDefault keeps idle series for five minutes.
func (a *CounterArguments) SetToDefault() {
	*a = CounterArguments{MetricCommon: MetricCommon{MaxIdle: defaultIdle}}
}

// Validate returns all errors in the arguments, joined.
func (a *CounterArguments) Validate() error {
	errs := []error{a.check()}
	if a.Action != actionInc && a.Action != actionAdd {
		errs = append(errs, fmt.Errorf("action is %q, want inc or add", a.Action))
	}
	if a.MatchAll && a.Value != "" {
		errs = append(errs, errors.New("match_all and value cannot both be set"))
	}
	if a.CountEntryBytes && (!a.MatchAll || a.Action != actionAdd) {
		errs = append(errs, errors.New("count_entry_bytes needs match_all = true and action = \"add\""))
	}
	return errors.Join(errs...)
}

// Warnings reports a counter that counts nothing.
func (a *CounterArguments) Warnings() []string {
	if a.MatchAll && a.Action == actionAdd && !a.CountEntryBytes {
		return []string{"match_all counts nothing with action = \"add\" and without count_entry_bytes: write action = \"inc\" to count lines"}
	}
	return nil
}

// GaugeArguments are the arguments of metric.gauge.
type GaugeArguments struct {
	MetricCommon `alloy:",squash"`
	// The effect of a line: set, add and sub use the value of source; inc and dec use
	// one.
	Action string `alloy:"action,attr"`
}

// SetToDefault keeps idle series for five minutes.
func (a *GaugeArguments) SetToDefault() {
	*a = GaugeArguments{MetricCommon: MetricCommon{MaxIdle: defaultIdle}}
}

// Values of action.
const (
	actionInc = "inc"
	actionDec = "dec"
	actionSet = "set"
	actionAdd = "add"
	actionSub = "sub"
)

// Validate returns all errors in the arguments, joined.
func (a *GaugeArguments) Validate() error {
	errs := []error{a.check()}
	if !slices.Contains([]string{actionInc, actionDec, actionSet, actionAdd, actionSub}, a.Action) {
		errs = append(errs, fmt.Errorf("action is %q, want set, inc, dec, add or sub", a.Action))
	}
	return errors.Join(errs...)
}

// HistogramArguments are the arguments of metric.histogram.
type HistogramArguments struct {
	MetricCommon `alloy:",squash"`
	// The upper bounds of the ranges, ascending.
	Buckets []float64 `alloy:"buckets,attr"`
}

// SetToDefault keeps idle series for five minutes.
func (a *HistogramArguments) SetToDefault() {
	*a = HistogramArguments{MetricCommon: MetricCommon{MaxIdle: defaultIdle}}
}

// Validate returns all errors in the arguments, joined.
func (a *HistogramArguments) Validate() error {
	errs := []error{a.check()}
	for i := 1; i < len(a.Buckets); i++ {
		if !(a.Buckets[i-1] < a.Buckets[i]) {
			errs = append(errs, fmt.Errorf("buckets must ascend, but %v comes after %v", a.Buckets[i], a.Buckets[i-1]))
		}
	}
	return errors.Join(errs...)
}

// metricsStage updates metrics from rows.
type metricsStage struct{ updates []update }

// update is the change that a row makes to one metric.
type update struct {
	*customMetric
	MetricCommon
	slot   int // of the source, negative if all rows count
	action string
	bytes  bool
}

func (a *MetricsArguments) compile(c *compiler) (stage, error) {
	s := new(metricsStage)
	for _, m := range a.Metrics {
		u := update{slot: -1}
		var buckets []float64
		var kind metricKind
		switch {
		case m.Counter != nil:
			kind, u.MetricCommon, u.action, u.bytes = counterKind, m.Counter.MetricCommon, m.Counter.Action, m.Counter.CountEntryBytes
		case m.Gauge != nil:
			kind, u.MetricCommon, u.action = gaugeKind, m.Gauge.MetricCommon, m.Gauge.Action
		case m.Histogram != nil:
			kind, u.MetricCommon, buckets = histogramKind, m.Histogram.MetricCommon, m.Histogram.Buckets
			if len(buckets) == 0 {
				buckets = prometheus.DefBuckets
			}
		}
		if m.Counter == nil || !m.Counter.MatchAll {
			u.slot = c.read(u.source())
		}
		u.customMetric = c.mem.custom.metric(kind, u.fullName(), u.Description, u.MaxIdle, buckets)
		c.pl.metrics = append(c.pl.metrics, u.customMetric)
		s.updates = append(s.updates, u)
	}
	return s, nil
}

func (s *metricsStage) run(_ context.Context, p *pass) {
	now := p.pl.clock.Now()
	for i := range s.updates {
		s.updates[i].run(p, now)
	}
}

func (u *update) run(p *pass, now time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, r := range p.rows {
		n, ok := u.amount(p, r)
		if !ok {
			continue
		}
		if s := u.seriesOf(p.stream[r]); s != nil {
			s.changed = now
			u.change(s, n)
		}
	}
}

// amount returns the number by which a row changes the metric. ok is false if the
// row does not count.
func (u *update) amount(p *pass, row int) (n float64, ok bool) {
	if u.slot < 0 {
		return float64(len(p.line[row])), u.bytes || u.action == actionInc
	}
	v := p.get(u.slot, row)
	if !v.exists() {
		return 0, false
	}
	if u.Value != "" {
		if t, ok := v.str(); !ok || t != u.Value {
			return 0, false
		}
	}
	if u.action == actionInc || u.action == actionDec {
		return 1, true
	}
	if n, ok = v.num(); ok {
		return n, u.action != actionAdd || u.kind != counterKind || n >= 0
	}
	// A duration such as 1.5s is converted to seconds.
	d, err := time.ParseDuration(v.text)
	return d.Seconds(), err == nil && (u.kind != counterKind || d >= 0)
}

// change changes a series by n. The caller holds mu of the metric.
func (u *update) change(s *customSeries, n float64) {
	switch {
	case u.kind == histogramKind:
		s.observe(u.buckets, n)
	case u.action == actionInc:
		s.v++
	case u.action == actionDec:
		s.v--
	case u.action == actionSet:
		s.v = n
	case u.action == actionSub:
		s.v -= n
	default:
		s.v += n
	}
}
