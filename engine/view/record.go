package view

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weir-run/weir/engine/batch"
)

// Record is a record of its own: what Copy returns, and what a script emits.
type Record struct {
	Name   string
	Labels []batch.Label // any order; without the name; an empty value is no label
	Value  float64       // ignored when Stale or Histogram is set
	Time   int64         // Unix ms
	Stale  bool
	// Type, Help and Unit become the metadata of a new series.
	Type, Help, Unit string

	Histogram batch.Histogram // Row is ignored; the zero value is none
	Exemplars []batch.Exemplar
	Start     int64
	HasStart  bool

	from *batch.Series // the series that it was copied from
}

// SetValue sets the value. A copy of a native histogram has none, and a staleness
// marker ignores it.
func (r *Record) SetValue(v float64) error {
	if r.Histogram.Int != nil || r.Histogram.Float != nil {
		return fmt.Errorf("cannot set the value of a copy of %s: it is a native histogram; multiply it with scale before you copy it", r.Name)
	}
	r.Value = v
	return nil
}

// emittedSample is what an emitted record has besides its series and its time.
type emittedSample struct {
	v         float64
	hist      batch.Histogram
	exemplars []batch.Exemplar
	start     int64
	hasStart  bool
}

// Copy returns row i as edited, as a record that outlives the batch.
func (m *Metrics) Copy(i int) Record {
	s := m.Series(i)
	r := Record{
		Name: s.Name(), Value: m.v.rows[i], Time: m.t.rows[i], Stale: m.Stale(i),
		Type: m.Type(i), Help: m.Help(i), Unit: m.Unit(i),
		Exemplars: slices.Clone(m.Exemplars(i)), from: s,
	}
	for n, v := range s.Labels() {
		if n != batch.NameLabel {
			r.Labels = append(r.Labels, batch.Label{Name: n, Value: v})
		}
	}
	r.Histogram, _ = m.Histogram(i)
	r.Start, r.HasStart = m.Start(i)
	return r
}

// Emit appends a record to the result. It is not seen through the window: the
// batch operations do not touch it. Its handle is derived from the series that
// it was copied from, or interned.
func (m *Metrics) Emit(r Record) error { return m.EmitTo(0, r) }

// EmitTo is Emit to a way; see Route.
func (m *Metrics) EmitTo(way int, r Record) error {
	b := &m.scratch
	b.Reset(nil)
	if err := checkName(r.Name); err != nil {
		return err
	}
	if err := checkCount(r.Labels); err != nil {
		return err
	}
	if err := m.chargeRows(1, 100+len(r.Name)+labelBytes(r.Labels)); err != nil {
		return err
	}
	b.Set(batch.NameLabel, r.Name)
	for _, l := range r.Labels {
		if err := checkLabelName(l.Name, false); err != nil {
			return err
		}
		if err := checkLabelValue(l.Name, l.Value); err != nil {
			return err
		}
		b.Set(l.Name, l.Value)
	}
	if !knownType(r.Type) {
		return fmt.Errorf("cannot emit type %q: it is one of %s", r.Type, strings.Join(metricTypes, ", "))
	}
	e := emittedSample{v: withoutMarker(r.Value), start: r.Start, hasStart: r.HasStart}
	switch {
	case r.Stale:
		e.v, e.hasStart = batch.Stale(), false
	case r.Histogram.Int != nil && r.Histogram.Float != nil:
		return fmt.Errorf("cannot emit %s: it has two histograms", r.Name)
	case r.Histogram.Int != nil:
		e.hist, e.v, e.exemplars = r.Histogram, r.Histogram.Int.Sum, r.Exemplars
	case r.Histogram.Float != nil:
		e.hist, e.v, e.exemplars = r.Histogram, r.Histogram.Float.Sum, r.Exemplars
	default:
		e.exemplars = r.Exemplars
	}
	m.emitted = append(m.emitted, emitted[emittedSample]{way: way, series: m.handleOf(r, b), t: r.Time, rest: e})
	return nil
}

func (m *Metrics) handleOf(r Record, b *batch.Builder) *batch.Series {
	// A copy that lies around until its source ended must not be derived from
	// it: nothing would give the handle back.
	if r.from != nil && !r.from.Released() && sameMeta(r.from.Meta(), r) {
		s, _ := m.cache.derive(r.from, b, m.now)
		return s
	}
	var meta *batch.Metadata
	if r.Type != "" || r.Help != "" || r.Unit != "" {
		meta = &batch.Metadata{Type: batch.MetricType(r.Type), Help: r.Help, Unit: r.Unit}
	}
	return m.cache.intern.Intern(b.Labels(), meta, m.now)
}

// sameMeta reports whether a record still has the metadata of the series that
// it was copied from.
func sameMeta(md *batch.Metadata, r Record) bool {
	if md == nil {
		return (r.Type == "" || r.Type == "unknown") && r.Help == "" && r.Unit == ""
	}
	t := string(md.Type)
	if t == "" {
		t = "unknown"
	}
	return t == r.Type && md.Help == r.Help && md.Unit == r.Unit
}

var metricTypes = []string{"counter", "gauge", "histogram", "gaugehistogram", "summary", "info", "stateset", "unknown"}

func knownType(t string) bool { return t == "" || slices.Contains(metricTypes, t) }
