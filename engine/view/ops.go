package view

import (
	"fmt"
	"math"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/expr"
)

// predicate is a compiled expression with a memo of the verdicts of its label
// part by series.
type predicate struct {
	use
	op   uint64
	prog *expr.Program
	memo batch.Memo[expr.Verdict]
}

// number is a compiled expression that returns a value.
type number struct {
	use
	prog *expr.Program
}

// DropWhere drops the rows that match the expression. The error is an
// *expr.Error. In case of an error, the rows that match by their labels have
// been dropped, and of the remaining rows those before the failing one.
//
// Rows without a float value (staleness markers, native histograms) are dropped
// if the parts of the expression that do not read the value decide it. If there
// are no such parts, the rows stay.
func (m *Window) DropWhere(src string) error {
	return m.dropWhere(src, 'd', expr.True)
}

// KeepWhere drops the rows that do not match the expression. A row without a
// float value stays, unless a part of the expression that does not read the
// value is false. The error is that of DropWhere.
func (m *Window) KeepWhere(src string) error {
	return m.dropWhere(src, 'k', expr.False)
}

// dropWhere drops the rows whose verdict is drop. does is the code of the
// operation.
func (m *Window) dropWhere(src string, does byte, drop expr.Verdict) error {
	m.traceEdit()
	p, err := m.predicate(src)
	if err != nil {
		return err
	}
	m.flush()
	return m.judgeAll(p, m.whereLabels(p, op{p.op, does}, drop), func(i int, verdict expr.Verdict) error {
		if verdict == drop {
			m.Drop(i)
		}
		return nil
	})
}

// judgeAll calls f with the verdict for each of the open rows. The error is
// that of the expression or of f.
func (m *Window) judgeAll(p *predicate, open *openRows, f func(i int, verdict expr.Verdict) error) error {
	for i := range open.All() {
		said := expr.True
		if open.failed {
			said = m.labelPart(p, m.series.rows[i])
		}
		verdict, err := m.judge(p, i, said)
		if err == nil {
			err = f(i, verdict)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// whereLabels drops the rows that are decided by their labels, and returns the
// rows that must be judged individually.
func (m *Window) whereLabels(p *predicate, o op, drop expr.Verdict) *openRows {
	from := m.currentShape()
	if from != nil {
		if st := from.step(o); st != nil {
			m.setShape(st.to)
			return &st.open
		}
	}
	m.open.reset()
	for i, s := range m.series.rows {
		if len(m.flags) > 0 && m.flags[i]&isDropped != 0 {
			continue
		}
		switch verdict := m.labelPart(p, s); {
		case p.opens(verdict):
			m.open.add(i, verdict)
		case verdict == drop:
			m.drop(i)
		}
	}
	if from == nil {
		return &m.open
	}
	st := step{op: o, to: m.asShape(from), open: m.open.clone()}
	from.addStep(st)
	m.shape = st.to
	return &m.open
}

// opens reports whether the sample decides, given the verdict of the labels.
func (p *predicate) opens(verdict expr.Verdict) bool {
	return verdict == expr.Open || verdict == expr.True && p.prog.HasRest()
}

// matching calls f for every row that is not dropped and matches p. If p is
// nil, all such rows match. Rows that match by their labels come first. The
// error is that of the expression or of f.
func (m *Window) matching(p *predicate, f func(i int) error) error {
	if p == nil {
		for i := m.Next(0); i >= 0; i = m.Next(i + 1) {
			if err := f(i); err != nil {
				return err
			}
		}
		return nil
	}
	yes, open := m.matchingLabels(p)
	for i := range yes.All() {
		if err := f(i); err != nil {
			return err
		}
	}
	return m.judgeAll(p, open, func(i int, verdict expr.Verdict) error {
		if verdict != expr.True {
			return nil
		}
		return f(i)
	})
}

// matchingLabels returns the rows that are not dropped and match p by their
// labels, and the rows that must be judged individually.
func (m *Window) matchingLabels(p *predicate) (yes *batch.Rows, open *openRows) {
	o := op{p.op, '?'}
	from := m.currentShape()
	if from != nil {
		if st := from.step(o); st != nil {
			return &st.yes, &st.open
		}
	}
	m.yes.Reset()
	m.open.reset()
	for i, s := range m.series.rows {
		if !m.Alive(i) {
			continue
		}
		switch verdict := m.labelPart(p, s); {
		case p.opens(verdict):
			m.open.add(i, verdict)
		case verdict == expr.True:
			m.yes.Add(i)
		}
	}
	if from != nil {
		from.addStep(step{op: o, to: from, yes: m.yes.Clone(), open: m.open.clone()})
	}
	return &m.yes, &m.open
}

// matches reports whether row i, which must not be dropped, matches.
func (m *Window) matches(p *predicate, i int) (bool, error) {
	verdict := m.labelPart(p, m.series.rows[i])
	if p.opens(verdict) {
		var err error
		if verdict, err = m.judge(p, i, verdict); err != nil {
			return false, err
		}
	}
	return verdict == expr.True, nil
}

// labelPart returns the verdict for the labels of s.
func (m *Window) labelPart(p *predicate, s *batch.Series) expr.Verdict {
	if verdict, ok := p.memo.Get(s); ok {
		return verdict
	}
	m.sample.Series = s
	verdict := p.prog.LabelPart(&m.sample)
	if s.Released() {
		return verdict // another series may have its ID by now
	}
	return p.memo.Put(s, verdict)
}

// judgeRow evaluates the part of p that depends on row i. said is the verdict
// of its label part.
func (m *Metrics) judgeRow(p *predicate, i int, said expr.Verdict) (expr.Verdict, error) {
	m.sample.Series, m.sample.Time = m.series.rows[i], m.t.rows[i]
	if p.prog.ReadsValue() && !m.Judged(i) {
		return p.prog.WithoutValue(&m.sample)
	}
	m.sample.Value = m.v.rows[i]
	var ok bool
	var err error
	if said == expr.True {
		ok, err = p.prog.Rest(&m.sample)
	} else {
		ok, err = p.prog.Bool(&m.sample)
	}
	if ok {
		return expr.True, err
	}
	return expr.False, err
}

// Scale multiplies the values of the rows that match the expression src, or of
// all rows if src is "". A native histogram is multiplied as in PromQL: sum,
// count and every bucket, as a float histogram. Staleness markers do not
// change. The bounds of classic and native buckets and the values of exemplars
// are not scaled. An error in the expression is an *expr.Error.
func (m *Metrics) Scale(src string, factor float64) error {
	m.traceEdit()
	if math.IsNaN(factor) {
		return fmt.Errorf("cannot scale by NaN")
	}
	if factor == 1 {
		if src == "" {
			return nil
		}
		_, err := m.predicate(src)
		return err
	}
	var p *predicate
	if src != "" {
		var err error
		if p, err = m.predicate(src); err != nil {
			return err
		}
	}
	m.flush()
	err := m.matching(p, func(i int) error {
		if v := m.v.rows[i]; !batch.IsStale(v) {
			m.v.write()[i] = v * factor
		}
		return nil
	})
	if err != nil {
		return err
	}
	return m.scaleHistograms(p, factor)
}

// SetValueWhere sets the values of the rows that match the predicate where, or
// of all rows if where is "", to the result of the expression to. Staleness
// markers and native histograms do not change. An error in an expression is an
// *expr.Error.
func (m *Metrics) SetValueWhere(where, to string) error {
	m.traceEdit()
	n, err := m.number(to)
	if err != nil {
		return err
	}
	var p *predicate
	if where != "" {
		if p, err = m.predicate(where); err != nil {
			return err
		}
	}
	m.flush()
	return m.matching(p, func(i int) error {
		if !m.Judged(i) {
			return nil
		}
		m.sample.Series, m.sample.Time, m.sample.Value = m.series.rows[i], m.t.rows[i], m.v.rows[i]
		f, err := n.prog.Float(&m.sample)
		if err == nil {
			m.v.write()[i] = withoutMarker(f)
		}
		return err
	})
}

func (m *Window) predicate(src string) (*predicate, error) {
	if p, ok := m.preds[src]; ok {
		return p, nil
	}
	p, err := m.cache.predicate(src, m.logs)
	if err == nil {
		cache(m, m.preds, src, p)
	}
	return p, err
}

func (m *Window) number(src string) (*number, error) {
	if p, ok := m.numbers[src]; ok {
		return p, nil
	}
	p, err := m.cache.number(src)
	if err == nil {
		cache(m, m.numbers, src, p)
	}
	return p, err
}

// cache stores v in the VM's own map c. The map has the same size limit as that
// of the cache.
func cache[K comparable, V any](m *Window, c map[K]V, k K, v V) {
	if len(c) < m.cache.opts.MaxMemos {
		c[k] = v
	}
}
