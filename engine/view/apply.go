package view

import (
	"math"
	"slices"

	"github.com/weir-run/weir/engine/batch"
)

// Result is the batch that a script produced, with counts.
type Result[B interface{ *batch.Metrics | *batch.Logs }] struct {
	// Batch is the source batch itself if nothing was edited.
	Batch B
	// Dropped, Emitted and Routed count rows. A row that is emitted to an output
	// counts as emitted and as routed. Routed is not set for log lines.
	Dropped, Emitted, Routed int
	// Collisions counts the samples with the same labels and timestamp as an
	// earlier sample. A sink keeps only one sample of each such pair. They are
	// counted only if labels were edited or samples emitted. Collision is the
	// series of one of them.
	Collisions int
	Collision  *batch.Series
}

// Apply returns the batch with the edits. The result shares every column that
// was not edited. The window does not change; it must be Reset before it is
// edited again.
func (m *Metrics) Apply() Result[*batch.Metrics] {
	m.flush()
	m.forgetNothings()
	m.follow()
	r := Result[*batch.Metrics]{Batch: m.in, Dropped: m.dropped - m.routed, Emitted: len(m.emitted), Routed: m.routed}
	emitted := m.emittedBy(1) // everything leaves by way 0
	r.Routed += len(m.emitted) - emitted
	m.whole = m.in
	relabelled := !batch.SameColumn(m.series.rows, m.in.Series) || emitted > 0
	if !relabelled && !m.t.own && !m.v.own && !m.hists.own && !m.stripped && m.dropped == 0 && len(m.ends) == 0 {
		return r
	}
	m.whole = &batch.Metrics{
		Source: m.in.Source, Way: m.in.Way, Series: m.series.rows, T: m.t.rows, V: m.v.rows,
		Histograms: m.hists.rows, Exemplars: m.in.Exemplars, Starts: m.in.Starts,
	}
	if m.stripped {
		m.strip(m.whole)
	}
	out := m.whole
	if m.dropped > 0 {
		out = m.left(out)
	}
	shape := m.shape
	if emitted > 0 || len(m.ends) > 0 {
		o := *out
		out = &o
		m.appendEmitted(out, 1)
		m.appendEnds(out, 1)
		shape = nil
	}
	r.Batch = out
	if relabelled && len(out.Series) > 0 {
		r.Collisions, r.Collision = m.cache.collisionsOf(shape, out)
	}
	// The columns now belong to the result.
	m.series.own, m.t.own, m.v.own, m.hists.own = false, false, false, false
	return r
}

// left returns b without the dropped rows.
func (m *Metrics) left(b *batch.Metrics) *batch.Metrics {
	if m.shape != nil {
		return m.shape.changed(m.in.Series).Apply(b)
	}
	return b.Select(m.Alive)
}

// forgetNothings discards copies of columns that equal the columns of the
// source, for example after a rollback or after a value was set to itself.
func (m *Metrics) forgetNothings() {
	m.series.revert(m.in.Series, slices.Equal[[]*batch.Series])
	m.t.revert(m.in.T, slices.Equal[[]int64])
	m.v.revert(m.in.V, sameBits)
	if m.stripped {
		m.stripped = slices.ContainsFunc(m.flags, func(f flags) bool { return f&isStripped != 0 })
	}
}

func sameBits(a, b []float64) bool {
	return slices.EqualFunc(a, b, func(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) })
}

// strip removes the sparse cells of stripped rows.
func (m *Metrics) strip(out *batch.Metrics) {
	out.Histograms = removeCells(out.Histograms, func(h batch.Histogram) bool { return m.isStripped(h.Row) })
	out.Exemplars = removeCells(out.Exemplars, func(e batch.Exemplar) bool { return m.isStripped(e.Row) })
	out.Starts = removeCells(out.Starts, func(s batch.Start) bool { return m.isStripped(s.Row) })
}

// removeCells returns the cells for which gone is false. It returns cells
// itself if all of them stay.
func removeCells[C any](cells []C, gone func(C) bool) []C {
	for i, c := range cells {
		if !gone(c) {
			continue
		}
		kept := append([]C(nil), cells[:i]...)
		for _, c := range cells[i+1:] {
			if !gone(c) {
				kept = append(kept, c)
			}
		}
		return kept
	}
	return cells
}

// appendEmitted appends the records that were emitted to any of the ways, given
// as bits, to out. The columns of out may be shared.
func (m *Metrics) appendEmitted(out *batch.Metrics, ways uint64) {
	n, k := len(out.Series), m.emittedBy(ways)
	if k == 0 {
		return
	}
	out.Series = append(make([]*batch.Series, 0, n+k), out.Series...)
	out.T = append(make([]int64, 0, n+k), out.T...)
	out.V = append(make([]float64, 0, n+k), out.V...)
	out.Histograms = out.Histograms[:len(out.Histograms):len(out.Histograms)]
	out.Exemplars = out.Exemplars[:len(out.Exemplars):len(out.Exemplars)]
	out.Starts = out.Starts[:len(out.Starts):len(out.Starts)]
	for _, e := range m.emitted {
		if ways>>e.way&1 == 0 {
			continue
		}
		row := len(out.Series)
		out.Series = append(out.Series, e.series)
		out.T = append(out.T, e.t)
		out.V = append(out.V, e.rest.v)
		if e.rest.hist.Int != nil || e.rest.hist.Float != nil {
			h := e.rest.hist
			h.Row = row
			out.Histograms = append(out.Histograms, h)
		}
		for _, x := range e.rest.exemplars {
			x.Row = row
			out.Exemplars = append(out.Exemplars, x)
		}
		if e.rest.hasStart {
			out.Starts = append(out.Starts, batch.Start{Row: row, T: e.rest.start})
		}
	}
}
