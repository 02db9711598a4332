package clause

import (
	"slices"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/expr"
)

// Judges are a predicate over samples and over log lines. Of what it is not for
// there is none.
type Judges struct{ Samples, Lines *Judge }

// NewJudges compiles p. It panics on one that UnmarshalText refuses.
func NewJudges(p Predicate) Judges {
	c := p.Compile()
	return Judges{newJudge(c.Metrics), newJudge(c.Logs)}
}

// Sweep forgets released series and streams.
func (j Judges) Sweep() {
	for _, j := range []*Judge{j.Samples, j.Lines} {
		if j != nil {
			j.memo.Sweep(nil)
		}
	}
}

// Judge asks a predicate of rows and remembers what the labels decide. It is
// safe for concurrent use.
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

// Labels returns what the labels of s say: False when no sample of it matches,
// True when Row decides, or, when Decides, when every sample matches; Open when
// evaluating them failed, so that Row decides. It is remembered. x is scratch
// memory.
func (j *Judge) Labels(x *expr.Sample, s *batch.Series) expr.Verdict {
	if v, ok := j.memo.Get(s); ok {
		return v
	}
	v := j.LabelPart(x, s)
	if s.Released() {
		return v // its ID may be another's by now
	}
	return j.memo.Put(s, v)
}

// LabelPart is Labels without a memory.
func (j *Judge) LabelPart(x *expr.Sample, s *batch.Series) expr.Verdict {
	x.Series = s
	return j.prog.LabelPart(x)
}

// Decides reports whether v, which Labels returned, is the answer for all
// samples of the series.
func (j *Judge) Decides(v expr.Verdict) bool {
	return v == expr.False || v == expr.True && !j.rest
}

// Row returns the answer for row i of b, of whose series Labels said v, which
// does not decide. x is scratch memory. A row without a value to judge (a
// staleness marker, a native histogram) follows the parts of the predicate
// that do not read it, and is Open when there are none. After an error, which
// is an *expr.Error, it is Open.
func (j *Judge) Row(x *expr.Sample, b *batch.Metrics, i int, v expr.Verdict) (expr.Verdict, error) {
	x.Series, x.Time = b.Series[i], b.T[i]
	if j.prog.ReadsValue() && !Judged(b, i) {
		return j.prog.WithoutValue(x)
	}
	x.Value = b.V[i]
	return j.evaluate(x, v)
}

// Line is Row for a log line, which has all that there is to judge.
func (j *Judge) Line(x *expr.Sample, b *batch.Logs, i int, v expr.Verdict) (expr.Verdict, error) {
	FillLine(x, b, i)
	return j.evaluate(x, v)
}

// FillLine makes x row i of b.
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

// Judged reports whether row i of b has a value to judge: it is no staleness
// marker and no native histogram.
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
