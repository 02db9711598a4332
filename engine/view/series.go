package view

import (
	"errors"
	"iter"

	"github.com/weir-run/weir/engine/batch"
)

// ErrSkip is what a series hook returns to leave a row as it is and to be
// asked again in the next batch.
var ErrSkip = errors.New("series skipped")

// Series is what the series hook sees of one new series, and the stream hook of
// one new stream: labels, no sample and no line.
// It is valid until the hook returns.
type Series struct {
	handle  *batch.Series
	edit    batch.Builder
	set     int  // bytes of labels
	logs    bool // it is a stream
	dropped bool
}

// Stream is what the stream hook sees of one new stream.
type Stream = Series

// Name returns the metric name.
func (s *Series) Name() string { return s.edit.Get(batch.NameLabel) }

// Label returns a label, "" when it is missing. The name is no label.
func (s *Series) Label(name string) string {
	if name == batch.NameLabel && !s.logs {
		return ""
	}
	return s.edit.Get(name)
}

// Labels yields the labels in name order, without the metric name. The series
// may be edited meanwhile; the loop sees it as it was.
func (s *Series) Labels() iter.Seq2[string, string] {
	ls := append([]batch.Label(nil), s.edit.Labels()...)
	return func(yield func(string, string) bool) {
		for _, l := range ls {
			if (l.Name != batch.NameLabel || s.logs) && !yield(l.Name, l.Value) {
				return
			}
		}
	}
}

// Type returns the metric type in Prometheus's words.
func (s *Series) Type() string { return typeOf(s.handle) }

// Help returns the help text, "" when none is known.
func (s *Series) Help() string {
	if md := s.handle.Meta(); md != nil {
		return md.Help
	}
	return ""
}

// Unit returns the unit, "" when none is known.
func (s *Series) Unit() string {
	if md := s.handle.Meta(); md != nil {
		return md.Unit
	}
	return ""
}

// SetName renames the series.
func (s *Series) SetName(name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	s.edit.Set(batch.NameLabel, name)
	return nil
}

// SetLabel sets a label; an empty value removes it.
func (s *Series) SetLabel(name, value string) error {
	if err := checkLabelName(name, s.logs); err != nil {
		return err
	}
	if err := checkLabelValue(name, value); err != nil {
		return err
	}
	if err := roomFor(&s.edit, name); err != nil {
		return err
	}
	s.edit.Set(name, value)
	s.set += len(name) + len(value)
	return nil
}

// Drop drops the series: every sample of it, its staleness marker too.
func (s *Series) Drop() { s.dropped = true }

// RunSeries applies the series hook, on lines the stream hook: fn is called for every row whose series
// the cache has not decided on yet, with row i as a hint for messages.
// What it decides is remembered and applied. ErrSkip leaves that row alone and
// goes on; any other error ends the run, is returned as it is, and nothing is
// remembered for that series.
func (m *Window) RunSeries(fn func(i int, s *Series) error) error {
	m.flush()
	from := m.currentShape()
	if from != nil {
		if st := from.step(seriesOp); st != nil {
			m.setShape(st.to)
			return nil
		}
	}
	m.passing = false
	memo := m.cache.hooked(m.logs)
	for i, s := range m.series.rows {
		if len(m.flags) > 0 && m.flags[i]&isDropped != 0 {
			continue
		}
		d, ok := memo.Get(s)
		if !ok {
			var err error
			if d, err = m.runSeries(i, s, fn); errors.Is(err, ErrSkip) {
				m.passing = true
				continue
			} else if err != nil {
				m.forgetShape()
				return err
			}
		}
		switch d {
		case s:
		case nil:
			m.drop(i)
		default:
			m.series.write()[i] = d
		}
	}
	m.done(from, seriesOp, !m.passing)
	return nil
}

func (m *Window) runSeries(i int, s *batch.Series, fn func(int, *Series) error) (*batch.Series, error) {
	e := &Series{handle: s, logs: m.logs}
	e.edit.Reset(s)
	if err := fn(i, e); err != nil {
		return nil, err
	}
	if e.dropped {
		if s.Released() {
			m.passing = true
			return nil, nil
		}
		return m.cache.hooked(m.logs).Put(s, nil), nil
	}
	if err := m.chargeRows(1, e.set); err != nil {
		return nil, err
	}
	d, lasting := m.cache.derive(s, &e.edit, m.now)
	if !lasting {
		m.passing = true
		return d, nil
	}
	return m.cache.hooked(m.logs).Put(s, d), nil
}
