package batch

// Change replaces the series of some rows of a batch and drops other rows,
// based on the series of each row alone. It is immutable.
type Change struct {
	rows   Rows      // the remaining rows
	series []*Series // the new series of the remaining rows
	from   int       // the original number of rows
	same   bool      // whether all remaining rows keep their series
}

// NewChange returns the Change that replaces each series of column with the
// series in become; nil drops the row. It takes ownership of become.
func NewChange(column, become []*Series) *Change {
	c := &Change{from: len(column), same: true}
	left := become[:0]
	for i, s := range become {
		if s == nil {
			c.same = false
			continue
		}
		c.same = c.same && s == column[i]
		c.rows.Add(i)
		left = append(left, s)
	}
	if c.same {
		return &Change{from: len(column), same: true}
	}
	c.series = left[:len(left):len(left)]
	return c
}

// NewSelection returns the Change that keeps only the given rows of column.
func NewSelection(column []*Series, rows *Rows) *Change {
	if rows.n == len(column) {
		return &Change{from: len(column), same: true}
	}
	return &Change{rows: rows.Clone(), series: pick(rows, column), from: len(column)}
}

// Apply returns b with its rows changed. It returns b itself if nothing
// changes; otherwise, the result shares the columns that did not change. All
// results share one slice of series. The result may be empty.
func (c *Change) Apply(b *Metrics) *Metrics {
	switch {
	case c.same:
		return b
	case len(c.series) < c.from:
		return b.withRows(c.series, &c.rows)
	}
	out := *b
	out.Series = c.series
	return &out
}

// ApplyLogs is like Apply, for a batch of log lines.
func (c *Change) ApplyLogs(b *Logs) *Logs {
	switch {
	case c.same:
		return b
	case len(c.series) < c.from:
		return b.withRows(c.series, &c.rows)
	}
	out := *b
	out.Stream = c.series
	return &out
}

// Dropped returns the number of dropped rows.
func (c *Change) Dropped() int {
	if c.same {
		return 0
	}
	return c.from - len(c.series)
}
