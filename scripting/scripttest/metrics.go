package scripttest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weir-run/weir/engine/batch"
)

// row is one sample as text, its parts compared one by one.
type row struct {
	series string
	sample string // value, time unless it is the implied one, exemplars
	meta   *batch.Metadata
	name   string
}

func (r row) String() string { return r.series + " " + r.sample }

// rows returns the samples of batches in text form, in order of series. now is
// the time that is left out.
func rows(now int64, bs ...*batch.Metrics) []row {
	var out []row
	for _, b := range bs {
		for i, s := range b.Series {
			one := b.Rows([]int{i})
			// Metadata lines come first.
			text := strings.TrimSuffix(string(batch.AppendTextAt(nil, one, now)), "\n")
			text = text[strings.LastIndexByte(text, '\n')+1:]
			r := row{series: s.String(), meta: s.Meta(), name: s.Name()}
			r.sample = strings.TrimPrefix(text, r.series+" ")
			out = append(out, r)
		}
	}
	slices.SortStableFunc(out, func(a, b row) int {
		if c := strings.Compare(a.series, b.series); c != 0 {
			return c
		}
		return strings.Compare(a.sample, b.sample)
	})
	return out
}

// compare returns the difference between the expected and the actual rows, or
// "" if there is none: the same series with the same values, bit for bit,
// times, start times and exemplars, in any order. Type, help and unit in want
// must match; with exact, got must not have more of them.
func compare(want, got []row, exact bool) string {
	w, g := lines(want, want, exact, false), lines(got, want, exact, true)
	slices.Sort(w)
	slices.Sort(g)
	return lineDiff(w, g)
}

// lines are rows in text form, with those parts of their metadata that said
// speaks of, or exactly all. With missing, a part that is asked for and not
// there is a line as well.
func lines(rs, said []row, exact, missing bool) []string {
	speaks := map[string]batch.Metadata{}
	for _, r := range said {
		if r.meta == nil {
			continue
		}
		m := speaks[r.name]
		for _, p := range []struct{ into, from *string }{
			{(*string)(&m.Type), (*string)(&r.meta.Type)}, {&m.Help, &r.meta.Help}, {&m.Unit, &r.meta.Unit},
		} {
			if *p.from != "" {
				*p.into = *p.from
			}
		}
		speaks[r.name] = m
	}
	var out []string
	seen := map[string]bool{}
	add := func(l string) {
		if !seen[l] {
			seen[l] = true
			out = append(out, l)
		}
	}
	for _, r := range rs {
		out = append(out, r.String())
		m := batch.Metadata{}
		if r.meta != nil {
			m = *r.meta
		}
		s := speaks[r.name]
		for _, p := range []struct {
			what, has string
			asked     bool
		}{
			{"TYPE", string(m.Type), s.Type != ""}, {"HELP", m.Help, s.Help != ""}, {"UNIT", m.Unit, s.Unit != ""},
		} {
			if p.has == "" && p.asked && missing {
				p.has = "-"
			}
			if p.has != "" && (p.asked || exact) {
				add(fmt.Sprintf("# %s %s %s", p.what, r.name, p.has))
			}
		}
	}
	return out
}

// withoutAdded returns the output rows without labels that were added to the
// input rows. The labels determine the input row of an output row: the row that
// shares the most labels, among those whose labels it contains.
func (o *output) withoutAdded() []row {
	used := make([]bool, o.in.Len())
	var out []row
	for _, b := range o.batches {
		for i, s := range b.Series {
			one := b.Rows([]int{i})
			best, most := -1, -1
			for j, from := range o.in.Series {
				if n := labelCount(from); !used[j] && n > most && contains(s, from) {
					best, most = j, n
				}
			}
			if best >= 0 {
				used[best] = true
				kept := batch.NewSeries(o.in.Series[best].AppendLabels(nil))
				kept.SetMeta(s.Meta())
				one.Series[0] = kept
				kept.Release()
			}
			out = append(out, rows(o.t, one)...)
		}
	}
	return out
}

func labelCount(s *batch.Series) (n int) {
	for range s.Labels() {
		n++
	}
	return n
}

// contains reports whether s has all labels of part, the name among them.
func contains(s, part *batch.Series) bool {
	for n, v := range part.Labels() {
		if s.Label(n) != v {
			return false
		}
	}
	return true
}
