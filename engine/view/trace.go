package view

import (
	"slices"

	"github.com/weir-run/weir/engine/batch"
)

// Trace sets a function that is called before each edit of a row, before each
// operation on all rows, before each emitted record and, with undo set, before a
// Rollback. fn may read the window, also with Snapshot, but not edit it. nil, the
// default, ends the tracing.
func (m *Window) Trace(fn func(undo bool)) { m.trace, m.asked.trace = fn, fn }

// traceEdit is called before an edit.
func (m *Window) traceEdit() {
	if m.trace != nil {
		m.trace(false)
	}
}

func (s *Series) traceEdit() {
	if s.trace != nil {
		s.trace(false)
	}
}

// asEdited returns a copy of the handles of all rows, with the edits of a hook for
// labels that runs.
func (m *Window) asEdited() []*batch.Series {
	m.flush()
	out := slices.Clone(m.series.rows)
	if m.asked.running {
		s := batch.NewSeries(m.asked.edit.Labels())
		s.SetMeta(m.asked.handle.Meta())
		out[m.asked.row] = s
	}
	return out
}

// leaves reports whether row i leaves by any way, as far as it is known.
func (m *Window) leaves(i int) bool {
	return m.leavesBy(AllWays, i) && !(m.asked.running && m.asked.row == i && m.asked.dropped)
}

// Snapshot returns a copy of the rows that leave by any way, as edited so far, and of
// the emitted records from number from on.
func (m *Metrics) Snapshot(from int) (rows, added *batch.Metrics) {
	whole := &batch.Metrics{
		Series: m.asEdited(), T: slices.Clone(m.t.rows), V: slices.Clone(m.v.rows),
		Histograms: slices.Clone(m.hists.rows), Exemplars: m.in.Exemplars, Starts: m.in.Starts,
	}
	if m.stripped {
		m.strip(whole)
	}
	added = new(batch.Metrics)
	all := m.emitted
	m.emitted = all[min(from, len(all)):]
	m.appendEmitted(added, AllWays)
	m.emitted = all
	return whole.Select(m.leaves), added
}

// Snapshot is like Metrics.Snapshot.
func (m *Logs) Snapshot(from int) (rows, added *batch.Logs) {
	whole := &batch.Logs{
		Stream: m.asEdited(), T: slices.Clone(m.t.rows), Line: slices.Clone(m.line.rows), Meta: slices.Clone(m.meta.rows),
	}
	added = new(batch.Logs)
	all := m.emitted
	m.emitted = all[min(from, len(all)):]
	m.appendEmitted(added, AllWays)
	m.emitted = all
	return whole.Select(m.leaves), added
}
