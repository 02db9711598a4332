package generation

import "github.com/weir-run/weir/engine/batch"

// Mapper makes other series of series. What becomes of one is decided once, by
// its labels, and remembered until it is released: the same input handle gives
// the same output handle in every batch.
//
// All methods are safe for concurrent use.
type Mapper struct {
	derive func(*batch.Series) *batch.Series
	memo   batch.Memo[*batch.Series] // nil: dropped
}

var _ Rules = (*Mapper)(nil)

// NewMapper returns a Mapper that asks derive what becomes of a series: the
// series itself, one that was made by its Derive, or nil, which drops it.
func NewMapper(derive func(*batch.Series) *batch.Series) *Mapper {
	m := &Mapper{derive: derive}
	m.memo.Evicted = release
	return m
}

// Apply returns what becomes of b, see Map.
func (m *Mapper) Apply(b *batch.Metrics) (out *batch.Metrics, dropped int) {
	return Map(b, m.Series)
}

// Map returns b with the series that become of its own, and how many rows were
// dropped because that is nil. It is b itself when nothing changes; else the
// columns that did not change are shared. The result may be empty.
func Map(b *batch.Metrics, become func(*batch.Series) *batch.Series) (out *batch.Metrics, dropped int) {
	var series []*batch.Series // what b.Series becomes, nil while it is the same
	for i, s := range b.Series {
		d := become(s)
		if d == nil {
			dropped++
		}
		if series != nil {
			series[i] = d
		} else if d != s {
			series = make([]*batch.Series, len(b.Series))
			copy(series, b.Series[:i])
			series[i] = d
		}
	}
	if series == nil {
		return b, 0
	}
	if dropped == 0 {
		c := *b
		c.Series = series
		return &c, 0
	}
	out = b.Select(func(row int) bool { return series[row] != nil })
	kept := out.Series[:0] // Select made a new column
	for _, s := range series {
		if s != nil {
			kept = append(kept, s)
		}
	}
	return out, dropped
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
func (m *Mapper) Sweep() { m.memo.Sweep(release) }

// Close releases everything that was derived; after it, what is asked is derived anew.
// Batches that hold the handles stay valid.
func (m *Mapper) Close() { m.memo.Clear(release) }

func release(s, d *batch.Series) {
	if d != nil && d != s {
		d.Release()
	}
}
