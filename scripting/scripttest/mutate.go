package scripttest

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-run/weir/engine/batch"
)

// noTime is a time that no sample has, so that it is written nowhere.
const noTime = math.MinInt64

// sample is a record that can be changed: the text form in pieces.
type sample struct {
	labels []batch.Label // with the name, in any order
	typ    string        // "": unknown
	rest   string        // value, time, exemplars
}

func samplesOf(b *batch.Metrics) []sample {
	out := make([]sample, 0, b.Len())
	for _, r := range rows(noTime, b) {
		s := sample{rest: r.sample}
		if r.meta != nil {
			s.typ = string(r.meta.Type)
		}
		out = append(out, s)
	}
	// rows sorts, so the labels are found by the text.
	series := slices.Clone(b.Series)
	slices.SortStableFunc(series, func(x, y *batch.Series) int { return strings.Compare(x.String(), y.String()) })
	for i, s := range series {
		out[i].labels = s.AppendLabels(nil)
	}
	return out
}

// textOfSamples writes samples in text form. A name has the type that its first
// sample says.
func textOfSamples(in []sample) string {
	var b strings.Builder
	typed := map[string]bool{}
	for _, s := range in {
		name := ""
		labels := make([]string, 0, len(s.labels))
		for _, l := range s.labels {
			if l.Name == batch.NameLabel {
				name = l.Value
				continue
			}
			labels = append(labels, strconv.Quote(l.Name)+"="+quote(l.Value))
		}
		if s.typ != "" && name != "" && !typed[name] {
			fmt.Fprintf(&b, "# TYPE %s %s\n", metaName(name), s.typ)
		}
		typed[name] = true
		parts := labels
		if name != "" {
			parts = append([]string{quote(name)}, labels...)
		}
		fmt.Fprintf(&b, "{%s} %s\n", strings.Join(parts, ","), s.rest)
	}
	return b.String()
}

// quote writes a string as text form does.
func quote(s string) string { return `"` + escapes.Replace(s) + `"` }

var escapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

func metaName(name string) string {
	if identifier.MatchString(name) {
		return name
	}
	return quote(name)
}

// tidy writes a batch as people do: up{job="x"} for {"up","job"="x"}.
func tidy(text string) string {
	b, err := batch.ParseText(text, batch.TextOptions{T: noTime})
	if err != nil {
		return text
	}
	return string(batch.AppendTextAt(nil, b, noTime))
}

// hostile are values of labels and names that scripts do not think of.
var hostile = []string{
	"", " ", "0", "-1", "1e309", "NaN", "nil", "null", "true", "..", "/", "//", "%", "%s%d", "[", "(", "$1", "\\", "\"", "\n", "\t", "{}",
	"ä", "東京", "\U0001f39b", "\u0000", "\u202e", strings.Repeat("x", 1000), strings.Repeat("/1", 300), "__name__", "le", "+Inf",
}

var hostileValues = []string{
	"0", "-0", "1", "-1", "0.1", "NaN", "+Inf", "-Inf", "stale", "NaN(0x7ff8000000000123)", "1.7976931348623157e+308", "5e-324",
	"9007199254740993", "1 0", "1 -1", "1 253402300799999", `1 # {trace_id="x"} 1`, "1 st@1",
	"{count:2,sum:1,schema:0,positive_spans:[0:1],positive_buckets:[2]}", "{counts:float,count:0.5,sum:NaN,schema:0,positive_spans:[0:1],positive_buckets:[0.5]}",
}

var metricTypes = []string{"", "counter", "gauge", "histogram", "summary", "info", "stateset", "unknown"}

// mutate returns a changed copy.
func (f *fuzzer) mutate(from []sample) []sample {
	in := make([]sample, len(from))
	for i, s := range from {
		in[i] = s
		in[i].labels = slices.Clone(s.labels)
	}
	for range 1 + f.rng.IntN(4) {
		in = f.change(in)
	}
	return in
}

// change changes one thing.
func (f *fuzzer) change(in []sample) []sample {
	if len(in) == 0 {
		return in
	}
	pick := func(of []string) string { return of[f.rng.IntN(len(of))] }
	s := &in[f.rng.IntN(len(in))]
	label := func() *batch.Label {
		if len(s.labels) == 0 {
			s.labels = append(s.labels, batch.Label{Name: "l"})
		}
		return &s.labels[f.rng.IntN(len(s.labels))]
	}
	switch f.rng.IntN(12) {
	case 0: // without some
		i := f.rng.IntN(len(in))
		return slices.Delete(in, i, min(len(in), i+1+f.rng.IntN(3)))
	case 1, 2: // a missing label, or name
		if len(s.labels) > 0 {
			i := f.rng.IntN(len(s.labels))
			s.labels = slices.Delete(s.labels, i, i+1)
		}
	case 3, 4:
		label().Value = pick(hostile)
	case 5: // another name of a label, or a further one
		if name := pick(hostile); name != "" && !slices.ContainsFunc(s.labels, func(l batch.Label) bool { return l.Name == name }) {
			s.labels = append(s.labels, batch.Label{Name: name, Value: pick(hostile)})
		}
	case 6, 7:
		s.rest = pick(hostileValues)
	case 8:
		s.typ = pick(metricTypes)
	case 9: // the record of another batch
		other := f.corpus[f.rng.IntN(len(f.corpus))]
		o := other[f.rng.IntN(len(other))]
		o.labels = slices.Clone(o.labels)
		return append(in, o)
	case 10: // many series
		if f.rng.IntN(10) > 0 {
			f.rng.Shuffle(len(in), func(i, j int) { in[i], in[j] = in[j], in[i] })
			break
		}
		one := *s
		for i := range 100 {
			next := one
			next.labels = append(slices.Clone(one.labels), batch.Label{Name: "fuzz", Value: strconv.Itoa(i)})
			in = append(in, next)
		}
	case 11: // the same series again, later
		one := *s
		one.labels = slices.Clone(s.labels)
		one.rest = pick(hostileValues)
		return append(in, one)
	}
	return in
}

// maxShrinks bounds how often a batch is tried while it is made smaller.
const maxShrinks = 500

// shrink returns the smallest batch it can find that still fails.
func shrink(in []sample, fails func([]sample) bool) []sample {
	tries := 0
	try := func(s []sample) bool {
		if tries++; tries > maxShrinks || len(s) == 0 || !fails(s) {
			return false
		}
		in = s
		return true
	}
	for size := len(in) / 2; size > 0; {
		smaller := false
		for i := 0; i+size <= len(in); {
			if try(slices.Concat(in[:i], in[i+size:])) {
				smaller = true
			} else {
				i += size
			}
		}
		if !smaller || size > len(in) {
			size /= 2
		}
	}
	with := func(i int, change func(s *sample)) []sample {
		out := slices.Clone(in)
		out[i].labels = slices.Clone(out[i].labels)
		change(&out[i])
		return out
	}
	for i := range in {
		for l := 0; l < len(in[i].labels); {
			if !try(with(i, func(s *sample) { s.labels = slices.Delete(s.labels, l, l+1) })) {
				l++
			}
		}
		for l := range in[i].labels {
			for v := in[i].labels[l].Value; len(v) > 1; v = in[i].labels[l].Value {
				if !try(with(i, func(s *sample) { s.labels[l].Value = v[:len(v)/2] })) {
					break
				}
			}
		}
		if in[i].rest != "1" {
			try(with(i, func(s *sample) { s.rest = "1" }))
		}
		if in[i].typ != "" {
			try(with(i, func(s *sample) { s.typ = "" }))
		}
	}
	return in
}
