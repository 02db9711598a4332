package view

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weir-run/weir/engine/batch"
)

// Record is a record outside of a batch: the result of Copy, or a record that a
// script emits.
type Record struct {
	Name   string
	Labels []batch.Label // any order, without the name; a label with an empty value is ignored
	Value  float64       // ignored when Stale or Histogram is set
	Time   int64         // Unix ms
	Stale  bool
	// Type, Help and Unit become the metadata of a new series.
	Type, Help, Unit string

	Histogram batch.Histogram // Row is ignored; the zero value means no histogram
	Exemplars []batch.Exemplar
	Start     int64
	HasStart  bool

	from *batch.Series // the series that it was copied from
}

// SetValue sets the value. It returns an error for a copy of a native
// histogram. A staleness marker ignores the value.
func (r *Record) SetValue(v float64) error {
	if r.Histogram.Int != nil || r.Histogram.Float != nil {
		return fmt.Errorf("cannot set the value of a copy of %s: it is a native histogram; multiply it with scale before you copy it", r.Name)
	}
	r.Value = v
	return nil
}

// emittedSample contains the data of an emitted record except its series and
// time.
type emittedSample struct {
	v         float64
	hist      batch.Histogram
	exemplars []batch.Exemplar
	start     int64
	hasStart  bool
}

// Copy returns row i as edited. The record stays valid after the batch.
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

// Emit appends a record to the result. It is not visible in the window, and
// batch operations do not affect it. Its handle is derived from the series that
// it was copied from, or interned.
func (m *Metrics) Emit(r Record) error { return m.EmitTo(0, r) }

// EmitTo is like Emit, for a way; see Route.
func (m *Metrics) EmitTo(way int, r Record) error {
	m.traceEdit()
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
	// If the source of a copy has ended, nothing would release a handle derived
	// from it.
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
