package batch

import (
	"iter"
	"slices"
)

// Rows is an ordered set of rows of a batch, stored as runs of adjacent rows.
// The zero value is empty.
type Rows struct {
	runs []run
	n    int
}

// run contains the rows i with from <= i < to.
type run struct{ from, to int }

// RowsBetween returns the rows i with from <= i < to.
func RowsBetween(from, to int) (r Rows) {
	if to > from {
		r = Rows{runs: []run{{from, to}}, n: to - from}
	}
	return r
}

// Add adds a row, which must be greater than all rows in r.
func (r *Rows) Add(row int) {
	r.n++
	if k := len(r.runs); k > 0 && r.runs[k-1].to == row {
		r.runs[k-1].to++
		return
	}
	r.runs = append(r.runs, run{row, row + 1})
}

// Reset removes all rows and keeps the memory.
func (r *Rows) Reset() { r.runs, r.n = r.runs[:0], 0 }

// Clone returns a copy that does not share memory.
func (r *Rows) Clone() Rows { return Rows{slices.Clone(r.runs), r.n} }

// Len returns the number of rows.
func (r *Rows) Len() int { return r.n }

// All yields the rows.
func (r *Rows) All() iter.Seq[int] {
	return func(yield func(int) bool) {
		for _, n := range r.runs {
			for i := n.from; i < n.to; i++ {
				if !yield(i) {
					return
				}
			}
		}
	}
}

// pick returns the elements at the rows.
func pick[E any](r *Rows, from []E) []E {
	to := make([]E, 0, r.n)
	for _, n := range r.runs {
		to = append(to, from[n.from:n.to]...)
	}
	return to
}

// times returns the timestamps of the rows. The samples of a scrape usually
// have equal timestamps; then it returns a part of from, unless it is cheaper to
// copy the timestamps of a few rows than to compare all.
func (r *Rows) times(from []int64) []int64 {
	if r.n < len(from)/16 {
		return pick(r, from)
	}
	for _, t := range from {
		if t != from[0] {
			return pick(r, from)
		}
	}
	return from[:r.n:r.n]
}

// pickCells returns the cells of a sparse column whose rows are in r, with
// their new row numbers.
func pickCells[C any](r *Rows, cells []C, row func(*C) *int) (to []C) {
	if len(cells) == 0 {
		return nil
	}
	before, k := 0, 0 // the number of rows before run k
	for _, c := range cells {
		at := row(&c)
		for k < len(r.runs) && r.runs[k].to <= *at {
			before += r.runs[k].to - r.runs[k].from
			k++
		}
		if k == len(r.runs) {
			break
		}
		if n := r.runs[k]; n.from <= *at {
			*at += before - n.from
			to = append(to, c)
		}
	}
	return to
}

// withRows returns the batch with only the rows r, whose handles are series.
func (b *Metrics) withRows(series []*Series, r *Rows) *Metrics {
	return &Metrics{
		Source: b.Source, Way: b.Way, Series: series, T: r.times(b.T), V: pick(r, b.V),
		Histograms: pickCells(r, b.Histograms, func(h *Histogram) *int { return &h.Row }),
		Exemplars:  pickCells(r, b.Exemplars, func(e *Exemplar) *int { return &e.Row }),
		Starts:     pickCells(r, b.Starts, func(s *Start) *int { return &s.Row }),
	}
}

// Select returns a batch with only the rows for which keep is true, or b itself
// if keep is true for all rows. The batches share handles, but not columns.
func (b *Metrics) Select(keep func(row int) bool) *Metrics {
	r := rowsWhere(len(b.Series), keep)
	return b.Only(&r)
}

// rowsWhere returns the rows below n for which keep is true.
func rowsWhere(n int, keep func(row int) bool) (r Rows) {
	for i := range n {
		if keep(i) {
			r.Add(i)
		}
	}
	return r
}

// rowsOf returns the given rows, which must be ascending.
func rowsOf(rows []int) (r Rows) {
	for _, i := range rows {
		r.Add(i)
	}
	return r
}

// Only returns a batch with only the given rows, or b itself if these are all
// rows. The batches share handles, but not columns.
func (b *Metrics) Only(r *Rows) *Metrics {
	if r.n == len(b.Series) {
		return b
	}
	return b.withRows(pick(r, b.Series), r)
}

// Rows returns a new batch of the given rows, which must be ascending.
func (b *Metrics) Rows(rows []int) *Metrics {
	r := rowsOf(rows)
	return b.withRows(pick(&r, b.Series), &r)
}
