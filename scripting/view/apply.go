package view

import "github.com/weir-run/weir/engine/batch"

// Result is what a script made of a batch.
type Result struct {
	// Batch is the source batch itself when nothing was edited.
	Batch *batch.Metrics
	// Dropped and Emitted count rows.
	Dropped, Emitted int
	// Collisions counts the rows that have the labels and the timestamp of an
	// earlier row: of each such pair a sink keeps one. It is looked for only
	// when labels were edited or records emitted. Collision is one of them.
	Collisions int
	Collision  *batch.Series
}

// Apply returns the batch with the edits, which shares every column that was
// not edited. The window stays as it is; it must be Reset before it is edited
// again.
func (m *Metrics) Apply() Result {
	m.flush()
	r := Result{Batch: m.in, Dropped: m.dropped, Emitted: len(m.emitted)}
	relabelled := m.ownSeries || len(m.emitted) > 0
	if !relabelled && !m.ownT && !m.ownV && !m.ownH && !m.stripped && m.dropped == 0 {
		return r
	}
	out := &batch.Metrics{
		Source: m.in.Source, Series: m.series, T: m.t, V: m.v,
		Histograms: m.hists, Exemplars: m.in.Exemplars, Starts: m.in.Starts,
	}
	if m.stripped {
		m.strip(out)
	}
	if m.dropped > 0 {
		out = m.keep(out)
	}
	if len(m.emitted) > 0 {
		m.append(out)
	}
	r.Batch = out
	if relabelled && len(out.Series) > 0 {
		r.Collisions, r.Collision = m.gen.collisions.find(out)
	}
	// The columns are the result's now.
	m.ownSeries, m.ownT, m.ownV, m.ownH = false, false, false, false
	return r
}

// strip leaves out the sparse cells of stripped rows.
func (m *Metrics) strip(out *batch.Metrics) {
	out.Histograms = without(out.Histograms, func(h batch.Histogram) bool { return m.isStripped(h.Row) })
	out.Exemplars = without(out.Exemplars, func(e batch.Exemplar) bool { return m.isStripped(e.Row) })
	out.Starts = without(out.Starts, func(s batch.Start) bool { return m.isStripped(s.Row) })
}

// without returns the cells that are not gone, cells itself when all stay.
func without[C any](cells []C, gone func(C) bool) []C {
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

// keep returns the rows of b that were not dropped.
func (m *Metrics) keep(b *batch.Metrics) *batch.Metrics {
	n := len(b.Series) - m.dropped
	out := &batch.Metrics{Source: b.Source}
	// A column that is this batch's own is closed up where it is.
	out.Series, out.T, out.V = b.Series[:0], b.T[:0], b.V[:0]
	if !m.ownSeries {
		out.Series = make([]*batch.Series, 0, n)
	}
	if !m.ownT {
		out.T = make([]int64, 0, n)
	}
	if !m.ownV {
		out.V = make([]float64, 0, n)
	}
	for i, f := range m.flags {
		if f&isDropped != 0 {
			continue
		}
		out.Series = append(out.Series, b.Series[i])
		out.T = append(out.T, b.T[i])
		out.V = append(out.V, b.V[i])
	}
	if m.ownSeries {
		clear(b.Series[n:])
	}
	if len(b.Histograms)+len(b.Exemplars)+len(b.Starts) == 0 {
		return out
	}
	m.keepSparse(b, out)
	return out
}

func (m *Metrics) keepSparse(b, out *batch.Metrics) {
	row, at := 0, 0 // at is the new number of row, if it is alive
	renumber := func(i int) (int, bool) {
		for ; row < i; row++ {
			if m.flags[row]&isDropped == 0 {
				at++
			}
		}
		return at, m.flags[i]&isDropped == 0
	}
	for _, c := range b.Histograms {
		if j, ok := renumber(c.Row); ok {
			c.Row = j
			out.Histograms = append(out.Histograms, c)
		}
	}
	row, at = 0, 0
	for _, c := range b.Exemplars {
		if j, ok := renumber(c.Row); ok {
			c.Row = j
			out.Exemplars = append(out.Exemplars, c)
		}
	}
	row, at = 0, 0
	for _, c := range b.Starts {
		if j, ok := renumber(c.Row); ok {
			c.Row = j
			out.Starts = append(out.Starts, c)
		}
	}
}

// append adds the emitted records to out, whose columns may be shared.
func (m *Metrics) append(out *batch.Metrics) {
	n, k := len(out.Series), len(m.emitted)
	out.Series = append(make([]*batch.Series, 0, n+k), out.Series...)
	out.T = append(make([]int64, 0, n+k), out.T...)
	out.V = append(make([]float64, 0, n+k), out.V...)
	out.Histograms = out.Histograms[:len(out.Histograms):len(out.Histograms)]
	out.Exemplars = out.Exemplars[:len(out.Exemplars):len(out.Exemplars)]
	out.Starts = out.Starts[:len(out.Starts):len(out.Starts)]
	for j, e := range m.emitted {
		row := n + j
		out.Series = append(out.Series, e.series)
		out.T = append(out.T, e.t)
		out.V = append(out.V, e.v)
		if e.hist.Int != nil || e.hist.Float != nil {
			h := e.hist
			h.Row = row
			out.Histograms = append(out.Histograms, h)
		}
		for _, x := range e.exemplars {
			x.Row = row
			out.Exemplars = append(out.Exemplars, x)
		}
		if e.hasStart {
			out.Starts = append(out.Starts, batch.Start{Row: row, T: e.start})
		}
	}
}
