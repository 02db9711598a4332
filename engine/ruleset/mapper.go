package ruleset

import "github.com/weir-run/weir/engine/batch"

// Mapper makes other series of series. What becomes of one is decided once, by
// its labels, and remembered until it is released: the same input handle gives
// the same output handle in every batch.
//
// All methods are safe for concurrent use.
type Mapper struct {
	derive  func(*batch.Series) *batch.Series
	memo    batch.Memo[*batch.Series] // nil: dropped
	columns batch.ColumnMemo[*batch.Change]
}

var _ Rules = (*Mapper)(nil)

// NewMapper returns a Mapper that asks derive what becomes of a series: the
// series itself, one that was made by its Derive, or nil, which drops it.
func NewMapper(derive func(*batch.Series) *batch.Series) *Mapper {
	m := &Mapper{derive: derive}
	m.memo.Evicted = func(s, d *batch.Series) {
		if !s.Released() { // a batch came late, of a series that had its ID before
			m.columns.Revoke()
		}
		release(s, d)
	}
	return m
}

// Apply returns what becomes of b, and how many rows were dropped. It is b
// itself when nothing changes; else the columns that did not change are shared.
// The result may be empty.
func (m *Mapper) Apply(b *batch.Metrics) (out *batch.Metrics, dropped int) {
	c, at, ok := m.columns.Get(b.Origin(), b.Series)
	if !ok {
		c = NewChange(b.Series, m.Series)
		m.columns.Put(b.Origin(), b.Series, c, at)
	}
	return c.Apply(b), c.Dropped()
}

// ApplyLogs is Apply for a batch of log lines. Their columns are seldom the same
// twice, and none is kept.
func (m *Mapper) ApplyLogs(b *batch.Logs) (out *batch.Logs, dropped int) {
	c := NewChange(b.Stream, m.Series)
	return c.ApplyLogs(b), c.Dropped()
}

// NewChange returns what becomes of a column; a series that becomes nil is
// dropped. become is asked once for neighbours that are the same.
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

// Series returns what becomes of s: s itself, a handle derived from it, or nil
// when it is dropped.
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

// Sweep forgets released series and releases what was derived from them.
func (m *Mapper) Sweep() {
	m.columns.Sweep()
	m.memo.Sweep(release)
}

// Close releases everything that was derived; after it, what is asked is derived anew.
// Batches that hold the handles stay valid.
func (m *Mapper) Close() {
	m.memo.Clear(release)
	m.columns.Revoke()
}

func release(s, d *batch.Series) {
	if d != nil && d != s {
		d.Release()
	}
}
