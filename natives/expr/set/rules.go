package set

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/natives/expr/clause"
	"github.com/weir-run/weir/scripting/expr"
	"github.com/weir-run/weir/scripting/view"
)

// rules are the expressions of one generation and what they made of series.
type rules struct {
	args  *Arguments
	gen   *view.Generation
	once  []edit // for each series
	each  []edit // for each sample
	value *expr.Program

	// last is what the newest sample of a series became, for its marker; only
	// of series that each makes others of.
	last batch.Memo[*atomic.Pointer[batch.Series]]
}

// edit sets a label, or the name.
type edit struct {
	argument, label string // label is __name__ for the name
	prog            *expr.Program
}

func newRules(a *Arguments) *rules {
	r := &rules{args: a, gen: view.NewGeneration(view.Options{})}
	add := func(e edit) {
		if e.prog.ReadsSample() {
			r.each = append(r.each, e)
		} else {
			r.once = append(r.once, e)
		}
	}
	if a.Name != nil {
		add(edit{"name", batch.NameLabel, a.Name.Compile()})
	}
	for _, l := range a.Labels {
		add(edit{"label", l.Name, l.Value.Compile()})
	}
	if a.Value != nil {
		r.value = a.Value.Compile()
	}
	return r
}

// Sweep forgets released series.
func (r *rules) Sweep() {
	r.last.Sweep(nil)
	r.gen.Sweep()
}

// Close gives back all handles that were derived.
func (r *rules) Close() { r.gen.Close() }

var windows = sync.Pool{New: func() any { return new(view.Metrics) }}

// call is one batch.
type call struct {
	*rules
	b      *batch.Metrics
	w      *view.Metrics
	x      expr.Sample
	failed *clause.Batch
	asIs   []bool // rows that an expression of once failed on; nil while there are none
}

// apply returns b as the expressions make it.
func (r *rules) apply(b *batch.Metrics, now time.Time, failed *clause.Batch) view.Result {
	w := windows.Get().(*view.Metrics)
	defer windows.Put(w)
	w.Reset(b, r.gen, now)
	defer w.Done()
	k := &call{rules: r, b: b, w: w, failed: failed}
	if len(r.once) > 0 {
		if err := w.RunSeries(k.series); err != nil {
			panic("BUG: " + err.Error()) // series returns ErrSkip only
		}
	}
	if len(r.each) > 0 || r.value != nil {
		for i := range b.Series {
			if k.asIs == nil || !k.asIs[i] {
				k.row(i)
			}
		}
	}
	return w.Apply()
}

// series is called once for each series, or, while it fails, for each sample.
func (k *call) series(i int, s *view.Series) error {
	k.x.Series = k.b.Series[i]
	for _, e := range k.once {
		text, err := e.prog.Text(&k.x)
		if err == nil {
			err = setSeries(s, e.label, text)
		}
		if err != nil {
			k.failed.Add(e.argument, k.b.Series[i], err)
			if k.asIs == nil {
				k.asIs = make([]bool, len(k.b.Series))
			}
			k.asIs[i] = true
			return view.ErrSkip
		}
	}
	return nil
}

func setSeries(s *view.Series, label, text string) error {
	if label == batch.NameLabel {
		return s.SetName(text)
	}
	return s.SetLabel(label, text)
}

// row changes one sample, or leaves it as it is when an expression fails.
func (k *call) row(i int) {
	k.w.Mark(i)
	argument, err := k.edit(i)
	if err != nil {
		k.w.Rollback()
		k.failed.Add(argument, k.b.Series[i], err)
	}
	if len(k.each) > 0 && !batch.IsStale(k.b.V[i]) {
		k.remember(k.b.Series[i], k.w.Series(i))
	}
}

// remember notes what the newest sample of s became.
func (k *call) remember(s, became *batch.Series) {
	last, ok := k.last.Get(s)
	if !ok {
		if s.Released() {
			return // its ID may be another's by now
		}
		last = k.last.Put(s, new(atomic.Pointer[batch.Series]))
	}
	last.Store(became)
}

func (k *call) edit(i int) (argument string, err error) {
	judged := clause.Judged(k.b, i)
	k.x.Series, k.x.Time, k.x.Value = k.b.Series[i], k.b.T[i], k.b.V[i]
	if len(k.each) > 0 {
		if argument, err := k.labels(i, judged); err != nil {
			return argument, err
		}
	}
	if k.value == nil || !judged {
		return "", nil
	}
	v, err := k.value.Float(&k.x)
	if err == nil {
		err = k.w.SetValue(i, v)
	}
	return "value", err
}

// labels sets what depends on the sample. A marker becomes what the sample
// before it became; of a native histogram a label that depends on the value
// stays as it is.
func (k *call) labels(i int, judged bool) (argument string, err error) {
	var before *batch.Series
	if batch.IsStale(k.b.V[i]) {
		if last, ok := k.last.Get(k.b.Series[i]); ok {
			before = last.Swap(nil)
		}
	}
	for _, e := range k.each {
		var text string
		switch {
		case before != nil:
			text = before.Label(e.label)
		case e.prog.ReadsValue() && !judged:
			continue
		default:
			if text, err = e.prog.Text(&k.x); err != nil {
				return e.argument, err
			}
		}
		if e.label == batch.NameLabel {
			err = k.w.SetName(i, text)
		} else {
			err = k.w.SetLabel(i, e.label, text)
		}
		if err != nil {
			return e.argument, err
		}
	}
	return "", nil
}
