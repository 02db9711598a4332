package set

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/expr"
	"github.com/weir-run/weir/engine/view"
	"github.com/weir-run/weir/natives/expr/internal/clause"
)

// rules are the expressions of one set of arguments and the series derived with
// them.
type rules struct {
	args    *Arguments
	cache   *view.Cache
	samples *programs // nil if the rules do not support samples
	lines   *programs // nil if the rules do not support lines

	// last is the series that the newest sample of a series was changed to, for
	// the staleness marker. It is only used if labels depend on samples.
	last batch.Memo[*atomic.Pointer[batch.Series]]
}

// programs are the expressions for samples or for lines.
type programs struct {
	series []edit        // evaluated once per series or stream
	rows   []edit        // evaluated for each sample or line
	value  *expr.Program // nil if the value is not changed
	line   *expr.Program // nil if the line is not changed
}

// edit sets a label, the name, or structured metadata.
type edit struct {
	argument string
	label    string // __name__ for the name; the name of the metadata
	prog     *expr.Program
}

const argumentMeta = "meta"

func newRules(a *Arguments) *rules {
	r := &rules{args: a, cache: view.NewCache(view.Options{})}
	signals, _ := a.fit().Signals()
	if signals&batch.SignalMetrics != 0 {
		p := new(programs)
		if a.Name != nil {
			p.add(edit{"name", batch.NameLabel, a.Name.Compile()})
		}
		for _, l := range a.Labels {
			p.add(edit{"label", l.Name, l.Value.Compile().Metrics})
		}
		if a.Value != nil {
			p.value = a.Value.Compile()
		}
		r.samples = p
	}
	if signals&batch.SignalLogs != 0 {
		p := new(programs)
		for _, l := range a.Labels {
			p.add(edit{"label", l.Name, l.Value.Compile().Logs})
		}
		for _, m := range a.Meta {
			p.rows = append(p.rows, edit{argumentMeta, m.Name, m.Value.Compile()})
		}
		if a.Line != nil {
			p.line = a.Line.Compile()
		}
		r.lines = p
	}
	return r
}

func (p *programs) add(e edit) {
	if e.prog.ReadsSample() {
		p.rows = append(p.rows, e)
	} else {
		p.series = append(p.series, e)
	}
}

// Sweep removes released series from the cache.
func (r *rules) Sweep() {
	r.last.Sweep(nil)
	r.cache.Sweep()
}

// Close releases all derived handles.
func (r *rules) Close() { r.cache.Close() }

var windows = sync.Pool{New: func() any { return new(view.Metrics) }}

// call is the state of a call for one batch of samples.
type call struct {
	*programs
	once
	b      *batch.Metrics
	w      *view.Metrics
	last   *batch.Memo[*atomic.Pointer[batch.Series]]
	failed *clause.Batch
}

// apply applies the expressions to b. If the expressions were changed to
// expressions for lines and the sender of samples has not noticed yet, it returns
// b unchanged.
func (r *rules) apply(b *batch.Metrics, now time.Time, failed *clause.Batch) view.Result[*batch.Metrics] {
	if r.samples == nil {
		return view.Result[*batch.Metrics]{Batch: b}
	}
	w := windows.Get().(*view.Metrics)
	defer windows.Put(w)
	w.Reset(b, r.cache, now)
	defer w.Done()
	k := &call{programs: r.samples, once: once{edits: r.samples.series, column: b.Series, add: failed.Add}, b: b, w: w, last: &r.last, failed: failed}
	if !k.run(&w.Window) {
		return view.Result[*batch.Metrics]{Batch: b}
	}
	if len(k.rows) > 0 || k.value != nil {
		for i := range b.Series {
			if !k.failedOn(i) {
				k.row(i)
			}
		}
	}
	return w.Apply()
}

// row changes one sample, or leaves it unchanged if an expression fails.
func (k *call) row(i int) {
	k.w.Mark(i)
	argument, err := k.edit(i)
	if err != nil {
		k.w.Rollback()
		k.failed.Add(argument, k.b.Series[i], err)
	}
	if len(k.rows) > 0 && !batch.IsStale(k.b.V[i]) {
		k.remember(k.b.Series[i], k.w.Series(i))
	}
}

// remember stores the series to which the newest sample of s was changed.
func (k *call) remember(s, became *batch.Series) {
	last, ok := k.last.Get(s)
	if !ok {
		if s.Released() {
			return // its ID may belong to another series by now
		}
		last = k.last.Put(s, new(atomic.Pointer[batch.Series]))
	}
	last.Store(became)
}

func (k *call) edit(i int) (argument string, err error) {
	judged := clause.Judged(k.b, i)
	k.x.Series, k.x.Time, k.x.Value = k.b.Series[i], k.b.T[i], k.b.V[i]
	if len(k.rows) > 0 {
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

// labels sets the labels that depend on the sample. A marker gets the labels of
// the previous sample. For a native histogram, labels that depend on the value
// are not changed.
func (k *call) labels(i int, judged bool) (argument string, err error) {
	var before *batch.Series
	if batch.IsStale(k.b.V[i]) {
		if last, ok := k.last.Get(k.b.Series[i]); ok {
			before = last.Swap(nil)
		}
	}
	for _, e := range k.rows {
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
