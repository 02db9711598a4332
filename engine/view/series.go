package view

import (
	"errors"
	"iter"

	"github.com/weir-run/weir/engine/batch"
)

// ErrSkip is returned by a series hook to leave a row unchanged and to be
// called again for the next batch.
var ErrSkip = errors.New("series skipped")

// Series is the argument of the series hook for a new series, and of the stream
// hook for a new stream. It has labels, but no sample or line. It is valid
// until the hook returns.
type Series struct {
	handle  *batch.Series
	edit    batch.Builder
	set     int  // bytes of labels
	logs    bool // it is a stream
	dropped bool
	trace   func(undo bool) // see Trace
	row     int             // of the window, while running
	running bool            // the hook runs
}

// Stream is the argument of the stream hook for a new stream.
type Stream = Series

// Name returns the metric name.
func (s *Series) Name() string { return s.edit.Get(batch.NameLabel) }

// Label returns the value of a label, or "" if it is missing. The name does not
// count as a label.
func (s *Series) Label(name string) string {
	if name == batch.NameLabel && !s.logs {
		return ""
	}
	return s.edit.Get(name)
}

// Labels yields the labels in name order, without the metric name. The series
// may be edited during the iteration, which still yields the original labels.
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

// Type returns the metric type in Prometheus's terms.
func (s *Series) Type() string { return typeOf(s.handle) }

// Help returns the help text, or "" if it is unknown.
func (s *Series) Help() string {
	if md := s.handle.Meta(); md != nil {
		return md.Help
	}
	return ""
}

// Unit returns the unit, or "" if it is unknown.
func (s *Series) Unit() string {
	if md := s.handle.Meta(); md != nil {
		return md.Unit
	}
	return ""
}

// SetName renames the series.
func (s *Series) SetName(name string) error {
	s.traceEdit()
	if err := checkName(name); err != nil {
		return err
	}
	s.edit.Set(batch.NameLabel, name)
	return nil
}

// SetLabel sets a label. An empty value removes it.
func (s *Series) SetLabel(name, value string) error {
	s.traceEdit()
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

// Drop drops the series: all its samples, including its staleness marker.
func (s *Series) Drop() {
	s.traceEdit()
	s.dropped = true
}

// RunSeries applies the series hook, or the stream hook on lines. It calls fn
// for every row whose series has no cached decision. i is a row of the series,
// for messages. The decision is cached and applied. If fn returns ErrSkip, the
// row does not change and RunSeries continues. Any other error stops it and is
// returned unchanged; nothing is cached for that series.
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
	e := &m.asked
	e.handle, e.logs, e.set, e.dropped = s, m.logs, 0, false
	e.edit.Reset(s)
	e.row, e.running = i, true
	err := fn(i, e)
	e.running = false
	if err != nil {
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
