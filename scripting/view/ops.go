package view

import (
	"fmt"
	"math"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/scripting/expr"
)

// predicate is a compiled expression and what its label part said of a series.
type predicate struct {
	use
	prog *expr.Program
	memo batch.Memo[expr.Verdict]
}

// number is a compiled expression for a value.
type number struct {
	use
	prog *expr.Program
}

// DropWhere drops the rows that match the expression. The error is an
// *expr.Error; rows before the failing one are dropped by then.
//
// Rows without a value to judge (staleness markers, native histograms) are
// dropped when the parts of the expression that do not read the value say so;
// when there are none, they stay.
func (m *Metrics) DropWhere(src string) error {
	return m.where(src, expr.True)
}

// KeepWhere drops the rows that do not match the expression. A row without a
// value to judge stays unless a part of the expression that does not read the
// value is false. The error is an *expr.Error.
func (m *Metrics) KeepWhere(src string) error {
	return m.where(src, expr.False)
}

// where drops the rows whose verdict is drop.
func (m *Metrics) where(src string, drop expr.Verdict) error {
	p, err := m.predicate(src)
	if err != nil {
		return err
	}
	m.flush()
	rest := p.prog.HasRest()
	for i, s := range m.series {
		if len(m.flags) > 0 && m.flags[i]&isDropped != 0 {
			continue
		}
		verdict, ok := p.memo.Get(s)
		if !ok {
			verdict = m.labelPart(p, s)
		}
		if verdict == expr.True && rest || verdict == expr.Open {
			if verdict, err = m.judge(p, i, verdict); err != nil {
				return err
			}
		}
		if verdict == drop {
			m.Drop(i)
		}
	}
	return nil
}

// matches reports whether row i, which must be alive, matches.
func (m *Metrics) matches(p *predicate, i int) (bool, error) {
	verdict, ok := p.memo.Get(m.series[i])
	if !ok {
		verdict = m.labelPart(p, m.series[i])
	}
	if verdict == expr.True && p.prog.HasRest() || verdict == expr.Open {
		var err error
		if verdict, err = m.judge(p, i, verdict); err != nil {
			return false, err
		}
	}
	return verdict == expr.True, nil
}

func (m *Metrics) labelPart(p *predicate, s *batch.Series) expr.Verdict {
	m.sample.Series = s
	verdict := p.prog.LabelPart(&m.sample)
	if s.Released() {
		return verdict // its ID may be another's by now
	}
	return p.memo.Put(s, verdict)
}

// judge evaluates what the label part, which said so, left to tell of row i.
func (m *Metrics) judge(p *predicate, i int, said expr.Verdict) (expr.Verdict, error) {
	m.sample.Series, m.sample.Time = m.series[i], m.t[i]
	if p.prog.ReadsValue() && !m.Judged(i) {
		return p.prog.WithoutValue(&m.sample)
	}
	m.sample.Value = m.v[i]
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

// Scale multiplies the values of the rows that match the expression, or of all
// when src is "". A native histogram is multiplied as PromQL does: sum, count
// and every bucket, as a float histogram. Staleness markers stay. The bounds
// of classic and native buckets and the values of exemplars are not scaled.
// An error in the expression is an *expr.Error.
func (m *Metrics) Scale(src string, factor float64) error {
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
	for i, v := range m.v {
		if !m.Alive(i) || batch.IsStale(v) {
			continue
		}
		if p != nil {
			if ok, err := m.matches(p, i); err != nil {
				return err
			} else if !ok {
				continue
			}
		}
		m.writeV()[i] = v * factor
	}
	return m.scaleHistograms(p, factor)
}

// SetValueWhere sets the values of the rows that match the predicate where, or
// of all when it is "", to what the expression to results in. Staleness
// markers and native histograms stay. An error in an expression is an
// *expr.Error.
func (m *Metrics) SetValueWhere(where, to string) error {
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
	for i := range m.series {
		if !m.Alive(i) || !m.Judged(i) {
			continue
		}
		if p != nil {
			if ok, err := m.matches(p, i); err != nil {
				return err
			} else if !ok {
				continue
			}
		}
		m.sample.Series, m.sample.Time, m.sample.Value = m.series[i], m.t[i], m.v[i]
		f, err := n.prog.Float(&m.sample)
		if err != nil {
			return err
		}
		m.writeV()[i] = unmarked(f)
	}
	return nil
}

func (m *Metrics) predicate(src string) (*predicate, error) {
	if p, ok := m.preds[src]; ok {
		return p, nil
	}
	p, err := m.gen.predicate(src)
	if err == nil {
		cache(m, m.preds, src, p)
	}
	return p, err
}

func (m *Metrics) number(src string) (*number, error) {
	if p, ok := m.numbers[src]; ok {
		return p, nil
	}
	p, err := m.gen.number(src)
	if err == nil {
		cache(m, m.numbers, src, p)
	}
	return p, err
}

// cache remembers v beside the generation's map, within the same bound.
func cache[K comparable, V any](m *Metrics, c map[K]V, k K, v V) {
	if len(c) < m.gen.opts.MaxMemos {
		c[k] = v
	}
}
