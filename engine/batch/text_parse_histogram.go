package batch

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/prometheus/model/histogram"
)

// histogram parses {key:value,…}.
func (p *textParser) histogram() (Histogram, error) {
	start := p.pos
	end := strings.IndexByte(p.line[p.pos:], '}')
	if end < 0 {
		return Histogram{}, p.errorf("want } at the end of a histogram")
	}
	end += p.pos
	p.pos++
	fields := map[string]string{}
	at := map[string]int{}
	for {
		p.space()
		at0 := p.pos
		key := p.plain(isLabelByte)
		p.space()
		if key == "" || p.next() != ':' {
			return Histogram{}, p.errorf("want a histogram's key and a colon")
		}
		if _, twice := fields[key]; twice {
			p.pos = at0
			return Histogram{}, p.errorf("%s appears twice", key)
		}
		p.pos++
		p.space()
		at[key] = p.pos
		v := p.line[p.pos:end]
		if strings.HasPrefix(v, "[") {
			i := strings.IndexByte(v, ']')
			if i < 0 {
				return Histogram{}, p.errorf("want ] at the end of %s", key)
			}
			v = v[:i+1]
		} else if i := strings.IndexByte(v, ','); i >= 0 {
			v = v[:i]
		}
		p.pos += len(v)
		fields[key] = strings.TrimSpace(v)
		if p.space(); p.next() == ',' {
			p.pos++
			continue
		}
		if p.pos != end {
			return Histogram{}, p.errorf("want , or } after %s", key)
		}
		p.pos++
		break
	}
	f := histogramFields{p: p, fields: fields, at: at}
	h := f.histogram()
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		f.fail(key, "a histogram has no "+key)
	}
	if f.err == nil {
		f.err = f.validate(h, start)
	}
	return h, f.err
}

// histogramFields returns the fields by key and keeps the first error.
type histogramFields struct {
	p      *textParser
	fields map[string]string
	at     map[string]int
	err    error
}

func (f *histogramFields) histogram() Histogram {
	counts := f.takeField("counts")
	if counts != "" && counts != "float" && counts != "int" {
		f.fail("counts", "counts are int or float")
	}
	hint, schema := f.hint(), f.int32("schema")
	custom, zero := f.floats("custom_values"), f.float("zero_threshold")
	sum := f.float("sum")
	positive, negative := f.spans("positive_spans"), f.spans("negative_spans")
	if counts == "float" {
		return Histogram{Float: &histogram.FloatHistogram{
			CounterResetHint: hint, Schema: schema, CustomValues: custom, ZeroThreshold: zero,
			Count: f.float("count"), Sum: sum, ZeroCount: f.float("zero_count"),
			PositiveSpans: positive, PositiveBuckets: f.floats("positive_buckets"),
			NegativeSpans: negative, NegativeBuckets: f.floats("negative_buckets"),
		}}
	}
	return Histogram{Int: &histogram.Histogram{
		CounterResetHint: hint, Schema: schema, CustomValues: custom, ZeroThreshold: zero,
		Count: f.uint("count"), Sum: sum, ZeroCount: f.uint("zero_count"),
		PositiveSpans: positive, PositiveBuckets: f.deltas("positive_buckets"),
		NegativeSpans: negative, NegativeBuckets: f.deltas("negative_buckets"),
	}}
}

func (f *histogramFields) takeField(key string) string {
	v := f.fields[key]
	delete(f.fields, key)
	return v
}

func (f *histogramFields) fail(key, msg string) {
	if f.err == nil {
		f.p.pos = f.at[key]
		f.err = f.p.errorf("%s", msg)
	}
}

func (f *histogramFields) hint() histogram.CounterResetHint {
	v := f.takeField("reset")
	if v == "" {
		return histogram.UnknownCounterReset
	}
	if i := slices.Index(resetHints[:], v); i >= 0 {
		return histogram.CounterResetHint(i)
	}
	n, err := strconv.ParseUint(v, 10, 8)
	if err != nil {
		f.fail("reset", "reset is unknown, yes, no or gauge")
	}
	return histogram.CounterResetHint(n)
}

func (f *histogramFields) int32(key string) int32 {
	v := f.takeField(key)
	if v == "" {
		return 0
	}
	n, err := strconv.ParseInt(v, 10, 32)
	if err != nil {
		f.fail(key, key+" is a whole number")
	}
	return int32(n)
}

func (f *histogramFields) uint(key string) uint64 {
	v := f.takeField(key)
	if v == "" {
		return 0
	}
	n, err := strconv.ParseUint(v, 10, 64)
	if err != nil {
		f.fail(key, key+" is a whole number; counts:float says that counts are floats")
	}
	return n
}

func (f *histogramFields) float(key string) float64 {
	v := f.takeField(key)
	if v == "" {
		return 0
	}
	x, ok := parseFloat(v)
	if !ok {
		f.fail(key, key+" is a number")
	}
	return x
}

// list returns the elements of [a,b,c].
func (f *histogramFields) list(key string) []string {
	v := f.takeField(key)
	if v == "" {
		return nil
	}
	v, open := strings.CutPrefix(v, "[")
	v, closed := strings.CutSuffix(v, "]")
	if !open || !closed {
		f.fail(key, key+" is a list in square brackets")
		return nil
	}
	if v = strings.TrimSpace(v); v == "" {
		return nil
	}
	elems := strings.Split(v, ",")
	for i := range elems {
		elems[i] = strings.TrimSpace(elems[i])
	}
	return elems
}

func (f *histogramFields) floats(key string) (vs []float64) {
	for _, e := range f.list(key) {
		v, ok := parseFloat(e)
		if !ok {
			f.fail(key, key+" is a list of numbers")
		}
		vs = append(vs, v)
	}
	return vs
}

func (f *histogramFields) deltas(key string) (ds []int64) {
	var last int64
	for _, e := range f.list(key) {
		n, err := strconv.ParseInt(e, 10, 64)
		if err != nil {
			f.fail(key, key+" is a list of whole numbers; counts:float says that counts are floats")
		}
		ds = append(ds, n-last)
		last = n
	}
	return ds
}

func (f *histogramFields) spans(key string) (spans []histogram.Span) {
	for _, e := range f.list(key) {
		offset, length, _ := strings.Cut(e, ":")
		o, err1 := strconv.ParseInt(offset, 10, 32)
		l, err2 := strconv.ParseUint(length, 10, 32)
		if err1 != nil || err2 != nil {
			f.fail(key, key+" is a list of offset:length")
		}
		spans = append(spans, histogram.Span{Offset: int32(o), Length: uint32(l)})
	}
	return spans
}

// validate checks for typing mistakes: the number of buckets must match the
// spans.
func (f *histogramFields) validate(h Histogram, start int) error {
	check := func(side string, spans []histogram.Span, buckets int) error {
		var want uint64
		for _, s := range spans {
			want += uint64(s.Length)
		}
		if want != uint64(buckets) {
			f.p.pos = start
			return f.p.errorf("%s_spans are for %d buckets, %s_buckets has %d", side, want, side, buckets)
		}
		return nil
	}
	var ps, ns []histogram.Span
	var pb, nb int
	if h.Int != nil {
		ps, pb, ns, nb = h.Int.PositiveSpans, len(h.Int.PositiveBuckets), h.Int.NegativeSpans, len(h.Int.NegativeBuckets)
	} else {
		ps, pb, ns, nb = h.Float.PositiveSpans, len(h.Float.PositiveBuckets), h.Float.NegativeSpans, len(h.Float.NegativeBuckets)
	}
	if err := check("positive", ps, pb); err != nil {
		return err
	}
	return check("negative", ns, nb)
}
