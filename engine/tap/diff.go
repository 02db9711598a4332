package tap

import (
	"fmt"
	"math"
	"slices"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/flow"
)

// maxCandidates is the most input rows with which an output row is compared.
const maxCandidates = 64

// pair is an input row and the output row that comes from it. One of them may be
// -1.
type pair struct{ in, out int }

// key contains the parts of a row that must be equal in one round of match.
type key struct {
	labels  uint64
	t       int64
	content content
}

// rounds of match, from the most similar rows to the least similar ones.
// Several lines of a stream may have the same time, so equal lines are matched
// before lines of the same stream.
var rounds = []struct{ labels, t, content, samples bool }{
	{labels: true, t: true, content: true},
	{labels: true, t: true, samples: true},
	{t: true, content: true},
	{labels: true, t: true},
	{labels: true, content: true},
	{labels: true},
	{t: true},
}

// match returns the pairs of rows: the input rows in order, then the added rows.
func match(in, out []row) []pair { return matchAs(in, in, out) }

// matchAs is like match, but first matches each input row with an output row that is the
// same as the expected one, which need not resemble the input row.
func matchAs(in, expected, out []row) []pair {
	from := make([]int, len(out)) // the input row of an output row, or -1
	to := make([]int, len(in))    // the output row of an input row, or -1
	for i := range from {
		from[i] = -1
	}
	// Most nodes keep the order of the rows, drop some, and leave most of the others as
	// they are.
	next := 0
	for i := range to {
		to[i] = -1
		for _, j := range [...]int{next, next + 1, i} { // after a dropped, a changed, or many changed rows
			if j < len(out) && from[j] < 0 && same(expected[i], out[j]) {
				to[i], from[j] = j, i
				next = j + 1
				break
			}
		}
	}
	for _, r := range rounds {
		if !slices.Contains(from, -1) {
			break
		}
		keyOf := func(x row) (k key) {
			if r.labels {
				k.labels = x.series.Hash()
			}
			if r.t {
				k.t = x.t
			}
			if r.content || r.samples && x.l != nil {
				k.content = x.content()
			}
			return k
		}
		left := map[key][]int{}
		for i, j := range to {
			if j < 0 {
				k := keyOf(in[i])
				left[k] = append(left[k], i)
			}
		}
		if len(left) == 0 {
			break
		}
		for j, i := range from {
			if i >= 0 {
				continue
			}
			k := keyOf(out[j])
			if at := best(in, out[j], left[k], r.content); at >= 0 {
				i = left[k][at]
				to[i], from[j] = j, i
				left[k] = slices.Delete(left[k], at, at+1)
			}
		}
	}
	pairs := make([]pair, 0, len(in))
	for i, j := range to {
		pairs = append(pairs, pair{i, j})
	}
	for j, i := range from {
		if i < 0 {
			pairs = append(pairs, pair{-1, j})
		}
	}
	return pairs
}

func same(a, b row) bool {
	return (a.l == nil) == (b.l == nil) && a.t == b.t && (a.series == b.series || a.series.Equal(b.series)) && a.content() == b.content()
}

// best returns the index of the candidate that has the most labels in common
// with x, or -1. Without equal content, more than half of the labels must be
// equal. With equal content, one label is enough, or there must be a single
// candidate.
func best(in []row, x row, candidates []int, content bool) int {
	most, at := -1, -1
	for k, i := range candidates[:min(len(candidates), maxCandidates)] {
		if (in[i].l == nil) != (x.l == nil) || in[i].stale() != x.stale() {
			continue // a staleness marker is the end of a series, not a changed sample
		}
		equal, all := common(in[i].series, x.series)
		enough := equal > 0 || len(candidates) == 1
		if !content {
			enough = equal*2 > all || all == 0
		}
		if enough && equal > most {
			most, at = equal, k
		}
	}
	return at
}

// common returns the number of equal labels of two series, and the number of
// labels of the larger one.
func common(a, b *batch.Series) (equal, all int) {
	n := 0
	for name, v := range a.Labels() {
		n++
		if b.Label(name) == v {
			equal++
		}
	}
	for range b.Labels() {
		all++
	}
	return equal, max(n, all)
}

// changes describes how b differs from a.
func changes(a, b row) (out []string) {
	out = labelChanges(out, "", a.series.AppendLabels(nil), b.series.AppendLabels(nil))
	if a.t != b.t {
		out = append(out, fmt.Sprintf("time %s → %s", stamp(a), stamp(b)))
	}
	if a.l == nil {
		if x, y := a.value(), b.value(); x != y {
			out = append(out, fmt.Sprintf("value %s → %s", x, y))
		}
		return out
	}
	out = labelChanges(out, "metadata ", a.l.MetaOf(a.i), b.l.MetaOf(b.i))
	if x, y := a.l.Line[a.i], b.l.Line[b.i]; x != y {
		out = append(out, fmt.Sprintf("line %q → %q", x, y))
	}
	return out
}

func stamp(r row) string { return r.time().Format("2006-01-02T15:04:05.999999999Z07:00") }

// labelChanges appends the changes of labels, which are sorted by name.
func labelChanges(out []string, what string, a, b []batch.Label) []string {
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(b) == 0 || len(a) > 0 && a[0].Name < b[0].Name:
			out = append(out, fmt.Sprintf("%s%s=%q removed", what, a[0].Name, a[0].Value))
			a = a[1:]
		case len(a) == 0 || b[0].Name < a[0].Name:
			out = append(out, fmt.Sprintf("%s%s=%q added", what, b[0].Name, b[0].Value))
			b = b[1:]
		default:
			if a[0].Value != b[0].Value {
				out = append(out, fmt.Sprintf("%s%s=%q → %q", what, a[0].Name, a[0].Value, b[0].Value))
			}
			a, b = a[1:], b[1:]
		}
	}
	return out
}

// withoutUnchanged returns the rows of a call. From the most frequent call, of one batch of
// samples that becomes another, it leaves out samples that are unchanged and in order, and
// counts them. It compares only the columns, because almost all samples of many nodes
// are unchanged.
func (p *Printer) withoutUnchanged(in, out flow.Batches) (a, b []row) {
	if len(in.Metrics) != 1 || len(out.Metrics) != 1 || len(in.Logs)+len(out.Logs) > 0 || len(in.Metrics[0].Histograms)+len(out.Metrics[0].Histograms) > 0 {
		return slices.Collect(rowsOf(in)), slices.Collect(rowsOf(out))
	}
	x, y := in.Metrics[0], out.Metrics[0]
	same := func(i, j int) bool {
		return j < y.Len() && x.Series[i] == y.Series[j] && x.T[i] == y.T[j] && math.Float64bits(x.V[i]) == math.Float64bits(y.V[j])
	}
	next := 0 // the first row of y that is not examined
	for i := range x.Len() {
		j := next
		if !same(i, j) {
			if j = max(next, i); !same(i, j) { // the rows before it changed
				a = append(a, metricsRow(x, i))
				continue
			}
		}
		for ; next < j; next++ {
			b = append(b, metricsRow(y, next))
		}
		next++
		if p.matches(metricsRow(x, i)) {
			p.unchanged++
		}
	}
	for ; next < y.Len(); next++ {
		b = append(b, metricsRow(y, next))
	}
	return a, b
}

// appendCall appends the differences between the input and the outputs of a call.
func (p *Printer) appendCall(dst []byte, o flow.Tapped) []byte {
	if o.Err != nil {
		return p.Note(dst, "note", fmt.Sprintf("the node did not accept a batch of %d records: %v", o.In.Len(), o.Err))
	}
	in, out := p.withoutUnchanged(o.In, o.Out)
	for _, q := range match(in, out) {
		switch {
		case q.in < 0:
			if p.matches(out[q.out]) && p.room() {
				dst = p.appendRow(dst, "added", o.Time, out[q.out])
			}
		case q.out < 0:
			if p.matches(in[q.in]) && p.room() {
				dst = p.appendRow(dst, "dropped", o.Time, in[q.in])
			}
		case !p.matches(in[q.in]) && !p.matches(out[q.out]):
		case same(in[q.in], out[q.out]):
			p.unchanged++
		case p.room():
			a, b := p.masks.row(in[q.in]), p.masks.row(out[q.out])
			how := changes(a, b)
			if p.o.Format == "json" {
				dst = appendEvent(dst, event{Kind: "changed", Time: o.Time.UTC(), Record: a.record(), Becomes: b.record(), Changes: how})
				break
			}
			dst = a.appendText(append(dst, "~ "...))
			for k, c := range how {
				sep := ", "
				if k == 0 {
					sep = " : "
				}
				dst = append(append(dst, sep...), c...)
			}
			dst = append(dst, '\n')
		}
	}
	return dst
}
