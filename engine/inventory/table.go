package inventory

import (
	"maps"
	"sync"
	"sync/atomic"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/ruleset"
)

// table contains the results for series, under consecutive rules that differ
// only in their targets: a series whose target does not change keeps its
// handle.
type table struct {
	memo    batch.Memo[*atomic.Pointer[made]]
	columns batch.ColumnMemo[change]

	mu sync.Mutex
	// Replaced handles. Components downstream should still know them when the
	// pending staleness markers arrive.
	replaced []*batch.Series // since the last sweep
	dying    []*batch.Series // before that
}

// change is the result for a column under the rules with a number.
type change struct {
	by uint64
	*batch.Change
}

// made is the result for a series.
type made struct {
	by     uint64            // number of the last rules that matched it
	labels map[string]string // nil if it matches no target
	series *batch.Series
}

func newTable() *table {
	t := new(table)
	t.memo.Evicted = func(s *batch.Series, p *atomic.Pointer[made]) {
		if !s.Released() { // a late batch contains a series that previously had this ID
			t.columns.Revoke()
		}
		release(s, p)
	}
	return t
}

// apply returns the result for b under the rules with the number by. copied
// returns the labels to copy to a series.
func (t *table) apply(b *batch.Metrics, by uint64, copied func(*batch.Series) map[string]string) *batch.Metrics {
	c, at, ok := t.columns.Get(b.Origin(), b.Series)
	if !ok || c.by != by {
		c = change{by, t.change(b.Series, by, copied)}
		t.columns.Put(b.Origin(), b.Series, c, at)
	}
	return c.Apply(b)
}

// change returns the result for a column.
func (t *table) change(column []*batch.Series, by uint64, copied func(*batch.Series) map[string]string) *batch.Change {
	return ruleset.NewChange(column, func(s *batch.Series) *batch.Series { return t.series(s, by, copied) })
}

// series returns the result for s under the rules with the number by. copied
// returns the labels to copy to it.
func (t *table) series(s *batch.Series, by uint64, copied func(*batch.Series) map[string]string) *batch.Series {
	p, ok := t.memo.Get(s)
	if !ok {
		p = new(atomic.Pointer[made])
		first := &made{by: by, labels: copied(s)}
		first.series = withLabels(s, first.labels)
		p.Store(first)
		if got := t.memo.Put(s, p); got != p {
			release(s, p) // another goroutine was first
			p = got
		}
	}
	for {
		m := p.Load()
		if m.by == by {
			return m.series
		}
		next := &made{by: by, labels: copied(s), series: m.series}
		same := maps.Equal(next.labels, m.labels)
		if !same {
			next.series = withLabels(s, next.labels)
		}
		switch swapped := p.CompareAndSwap(m, next); {
		case !swapped && next.series != m.series:
			giveBack(s, next.series)
		case swapped && next.series != m.series && m.series != s:
			t.mu.Lock()
			t.replaced = append(t.replaced, m.series)
			t.mu.Unlock()
		}
	}
}

func (t *table) removeExpired() {
	t.columns.Sweep()
	t.memo.Sweep(release)
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range t.dying {
		s.Release()
	}
	t.dying, t.replaced = t.replaced, nil
}

func (t *table) close() {
	t.removeExpired()
	t.removeExpired()
	t.memo.Clear(release)
	t.columns.Revoke()
}

func release(s *batch.Series, p *atomic.Pointer[made]) { giveBack(s, p.Load().series) }

func giveBack(s, derived *batch.Series) {
	if derived != s {
		derived.Release()
	}
}

var builders = sync.Pool{New: func() any { return new(batch.Builder) }}

// withLabels returns s with other labels, or s itself if it has them.
func withLabels(s *batch.Series, labels map[string]string) *batch.Series {
	if len(labels) == 0 {
		return s
	}
	b := builders.Get().(*batch.Builder)
	defer builders.Put(b)
	b.Reset(s)
	for name, value := range labels {
		b.Set(name, value)
	}
	return b.Series(s)
}
