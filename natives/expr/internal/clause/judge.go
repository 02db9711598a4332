package clause

import (
	"slices"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/expr"
	"github.com/weir-run/weir/engine/flow"
)

// Judges are the predicates for samples and for log lines. A predicate is nil if
// the expression does not support the signal.
type Judges struct{ Samples, Lines *Judge }

// NewJudges compiles p. It panics on one that UnmarshalText refuses.
func NewJudges(p Predicate) Judges {
	c := p.Compile()
	return Judges{newJudge(c.Metrics), newJudge(c.Logs)}
}

// Sweep removes released series and streams from the cache.
func (j Judges) Sweep() {
	for _, j := range []*Judge{j.Samples, j.Lines} {
		if j != nil {
			j.memo.Sweep(nil)
		}
	}
}

// Judge evaluates a predicate for rows and caches the results of the labels. It
// is safe for concurrent use.
type Judge struct {
	prog *expr.Program
	rest bool
	memo batch.Memo[expr.Verdict]
}

func newJudge(p *expr.Program) *Judge {
	if p == nil {
		return nil
	}
	return &Judge{prog: p, rest: p.HasRest()}
}

// Labels evaluates the labels of s. The result is False if no sample of s
// matches. It is True if Row decides, or, if Decides returns true, if every
// sample matches. It is Open if evaluating the labels failed, so that Row
// decides. The result is cached. x is scratch memory.
func (j *Judge) Labels(x *expr.Sample, s *batch.Series) expr.Verdict {
	if v, ok := j.memo.Get(s); ok {
		return v
	}
	v := j.LabelPart(x, s)
	if s.Released() {
		return v // its ID may belong to another series by now
	}
	return j.memo.Put(s, v)
}

// LabelPart is Labels without the cache.
func (j *Judge) LabelPart(x *expr.Sample, s *batch.Series) expr.Verdict {
	x.Series = s
	return j.prog.LabelPart(x)
}

// Decides reports whether v, a result of Labels, is the result for all samples of
// the series.
func (j *Judge) Decides(v expr.Verdict) bool {
	return v == expr.False || v == expr.True && !j.rest
}

// Row returns the result for row i of b. v is the result of Labels for its
// series, which does not decide. x is scratch memory. For a row without a value
// (a staleness marker, a native histogram), only the parts of the predicate that
// do not read it decide; the result is Open if there are none. If there is an
// error, which is an *expr.Error, the result is Open.
func (j *Judge) Row(x *expr.Sample, b *batch.Metrics, i int, v expr.Verdict) (expr.Verdict, error) {
	x.Series, x.Time = b.Series[i], b.T[i]
	if j.prog.ReadsValue() && !Judged(b, i) {
		return j.prog.WithoutValue(x)
	}
	x.Value = b.V[i]
	return j.evaluate(x, v)
}

// Line is Row for a log line, which has all fields.
func (j *Judge) Line(x *expr.Sample, b *batch.Logs, i int, v expr.Verdict) (expr.Verdict, error) {
	FillLine(x, b, i)
	return j.evaluate(x, v)
}

// FillLine sets x to row i of b.
func FillLine(x *expr.Sample, b *batch.Logs, i int) {
	x.Series, x.Time, x.Line, x.Meta = b.Stream[i], batch.Millis(b.T[i]), b.Line[i], b.MetaOf(i)
}

func (j *Judge) evaluate(x *expr.Sample, v expr.Verdict) (expr.Verdict, error) {
	ask := j.prog.Bool
	if v == expr.True {
		ask = j.prog.Rest
	}
	switch ok, err := ask(x); {
	case err != nil:
		return expr.Open, err
	case ok:
		return expr.True, nil
	}
	return expr.False, nil
}

// Of returns the result for a single row, without a memory. It is Open if the expression
// fails or does not support the signal.
func (j *Judge) Of(one flow.Batches) expr.Verdict {
	if j == nil {
		return expr.Open
	}
	var x expr.Sample
	var v expr.Verdict
	var err error
	if len(one.Logs) > 0 {
		b := one.Logs[0]
		if v = j.LabelPart(&x, b.Stream[0]); !j.Decides(v) {
			v, err = j.Line(&x, b, 0, v)
		}
	} else {
		b := one.Metrics[0]
		if v = j.LabelPart(&x, b.Series[0]); !j.Decides(v) {
			v, err = j.Row(&x, b, 0, v)
		}
	}
	if err != nil {
		return expr.Open
	}
	return v
}

// Judged reports whether row i of b has a value: it is neither a staleness marker
// nor a native histogram.
func Judged(b *batch.Metrics, i int) bool {
	if batch.IsStale(b.V[i]) {
		return false
	}
	if len(b.Histograms) == 0 {
		return true
	}
	_, ok := slices.BinarySearchFunc(b.Histograms, i, func(h batch.Histogram, row int) int { return h.Row - row })
	return !ok
}
