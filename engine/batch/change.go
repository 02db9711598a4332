package batch

// Change is what becomes of the rows of a batch by their series alone: some
// have other series, some are dropped. It is immutable.
type Change struct {
	rows   Rows      // that are left
	series []*Series // theirs
	from   int       // how many rows there were
	same   bool      // the series of all rows are what they were
}

// NewChange returns the Change of a column to what becomes of each of its
// series; nil is dropped. It takes ownership of become.
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

// NewSelection returns the Change of a column that leaves those rows.
func NewSelection(column []*Series, rows *Rows) *Change {
	if rows.n == len(column) {
		return &Change{from: len(column), same: true}
	}
	return &Change{rows: rows.Clone(), series: pick(rows, column), from: len(column)}
}

// Apply returns b with the change of its column: b itself when nothing changes;
// else the columns that did not change are shared. The series of the result are
// the same slice each time. The result may be empty.
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

// ApplyLogs is Apply for a batch of log lines.
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

// Dropped returns how many rows are dropped.
func (c *Change) Dropped() int {
	if c.same {
		return 0
	}
	return c.from - len(c.series)
}
