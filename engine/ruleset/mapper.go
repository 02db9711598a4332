package ruleset

import "github.com/weir-run/weir/engine/batch"

// Mapper maps series to other series. The result for a series depends on its
// labels alone. It is computed once and cached until the series is released:
// the same input handle gives the same output handle in every batch.
//
// All methods are safe for concurrent use.
type Mapper struct {
	derive  func(*batch.Series) *batch.Series
	memo    batch.Memo[*batch.Series] // nil: dropped
	columns batch.ColumnMemo[*batch.Change]
}

var _ Rules = (*Mapper)(nil)

// NewMapper returns a Mapper that calls derive for each series. It returns the
// series itself, a result of its Derive, or nil, which drops it.
func NewMapper(derive func(*batch.Series) *batch.Series) *Mapper {
	m := &Mapper{derive: derive}
	m.memo.Evicted = func(s, d *batch.Series) {
		if !s.Released() { // a late batch contains a series that previously had this ID
			m.columns.Revoke()
		}
		release(s, d)
	}
	return m
}

// Apply returns b after mapping, and the number of dropped rows. It returns b
// itself if nothing changes; otherwise, unchanged columns are shared. The
// result may be empty.
func (m *Mapper) Apply(b *batch.Metrics) (out *batch.Metrics, dropped int) {
	c, at, ok := m.columns.Get(b.Origin(), b.Series)
	if !ok {
		c = NewChange(b.Series, m.Series)
		m.columns.Put(b.Origin(), b.Series, c, at)
	}
	return c.Apply(b), c.Dropped()
}

// ApplyLogs is like Apply, for a batch of log lines. Their columns rarely
// repeat, and are not cached.
func (m *Mapper) ApplyLogs(b *batch.Logs) (out *batch.Logs, dropped int) {
	c := NewChange(b.Stream, m.Series)
	return c.ApplyLogs(b), c.Dropped()
}

// NewChange returns the change of a column; a series for which become returns
// nil is dropped. become is called once for equal neighbours.
func NewChange(column []*batch.Series, become func(*batch.Series) *batch.Series) *batch.Change {
	to := make([]*batch.Series, len(column))
	var last, became *batch.Series
	for i, s := range column {
		if s != last {
			last, became = s, become(s)
		}
		to[i] = became
	}
	return batch.NewChange(column, to)
}

// Series returns the result for s: s itself, a handle derived from it, or nil
// if it is dropped.
func (m *Mapper) Series(s *batch.Series) *batch.Series {
	if d, ok := m.memo.Get(s); ok {
		return d
	}
	d := m.derive(s)
	got := m.memo.Put(s, d)
	if got != d && d != s && d != nil {
		d.Release() // another goroutine was first
	}
	return got
}

// Sweep removes released series and releases the handles that were derived from
// them.
func (m *Mapper) Sweep() {
	m.columns.Sweep()
	m.memo.Sweep(release)
}

// Close releases all derived handles; later calls derive them again. Batches
// with these handles stay valid.
func (m *Mapper) Close() {
	m.memo.Clear(release)
	m.columns.Revoke()
}

func release(s, d *batch.Series) {
	if d != nil && d != s {
		d.Release()
	}
}
