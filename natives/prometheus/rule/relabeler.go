package rule

import (
	"sync"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"

	"github.com/weir-run/weir/engine/batch"
)

// Relabeler applies rules to batches. What the rules make of a series is
// decided once and remembered until the series is released: the same input
// handle gives the same output handle in every batch.
//
// All methods are safe for concurrent use.
type Relabeler struct {
	cfgs []*relabel.Config
	memo batch.Memo[*batch.Series] // nil: dropped
}

// NewRelabeler returns a Relabeler for rules in the order given.
func NewRelabeler(rules []*Rule) *Relabeler {
	r := &Relabeler{cfgs: Configs(rules)}
	r.memo.Evicted = release
	return r
}

// Apply returns what the rules leave of b, and how many rows they dropped. It
// is b itself when they change nothing; else the columns that did not change
// are shared. The result may be empty.
func (r *Relabeler) Apply(b *batch.Metrics) (out *batch.Metrics, dropped int) {
	if len(r.cfgs) == 0 {
		return b, 0
	}
	var series []*batch.Series // what b.Series becomes, nil while it is the same
	for i, s := range b.Series {
		d := r.Series(s)
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

// Series returns what the rules make of s: s itself, a handle derived from it,
// or nil when they drop it or leave no label.
func (r *Relabeler) Series(s *batch.Series) *batch.Series {
	if d, ok := r.memo.Get(s); ok {
		return d
	}
	d := r.derive(s)
	got := r.memo.Put(s, d)
	if got != d && d != s && d != nil {
		d.Release() // another goroutine was first
	}
	return got
}

// Sweep forgets released series and releases what was derived from them.
func (r *Relabeler) Sweep() { r.memo.Sweep(release) }

// Close releases everything that was derived; after it, what is asked is derived anew.
// Batches that hold the handles stay valid.
func (r *Relabeler) Close() { r.memo.Clear(release) }

func release(s, d *batch.Series) {
	if d != nil && d != s {
		d.Release()
	}
}

// scratch is what deriving one series needs; it happens once a series.
type scratch struct {
	builder *labels.Builder
	in      labels.ScratchBuilder
	out     []batch.Label
}

var scratches = sync.Pool{New: func() any {
	return &scratch{builder: labels.NewBuilder(labels.EmptyLabels()), in: labels.NewScratchBuilder(16)}
}}

func (r *Relabeler) derive(s *batch.Series) *batch.Series {
	c := scratches.Get().(*scratch)
	defer scratches.Put(c)
	c.in.Reset()
	for n, v := range s.Labels() {
		c.in.Add(n, v)
	}
	c.builder.Reset(c.in.Labels())
	if !relabel.ProcessBuilder(c.builder, r.cfgs...) {
		return nil
	}
	clear(c.out)
	c.out = c.out[:0]
	c.builder.Labels().Range(func(l labels.Label) {
		if l.Value != "" {
			c.out = append(c.out, batch.Label{Name: l.Name, Value: l.Value})
		}
	})
	if len(c.out) == 0 {
		return nil
	}
	same := 0
	for n, v := range s.Labels() {
		if same == len(c.out) || c.out[same] != (batch.Label{Name: n, Value: v}) {
			return s.Derive(c.out)
		}
		same++
	}
	if same < len(c.out) {
		return s.Derive(c.out)
	}
	return s
}
