package scrape

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"

	"github.com/weir-run/weir/engine/batch"
)

// maxAhead is how far in the future a timestamp may be.
const maxAhead = 10 * 60 * 1000 // ms

var (
	errSampleLimit = errors.New("sample limit exceeded")
	errBucketLimit = errors.New("histogram bucket limit exceeded")
	errLabelLimit  = errors.New("label limit exceeded")
	errInvalidBody = errors.New("cannot parse the body")
)

// readCached takes the sample of a line that is cached.
func (in *intake) readCached(l int, hasT bool, t int64, v float64) (repeated bool) {
	in.total++
	in.added++
	if hasT = hasT && in.set.cfg.HonorTimestamps; !hasT {
		t = in.now
	}
	if in.c.touch(l) && !hasT {
		in.repeated++
		return true
	}
	s := int(in.c.lines[l].s)
	h := in.c.series[s].h
	meta := in.meta(h, "")
	if in.fits(t) {
		setMeta(h, meta)
		in.rows.add(h, t, v)
		if !hasT || in.set.cfg.TrackTimestampsStaleness {
			in.c.track(s)
		}
	}
	return false
}

// parsed takes the sample that p is at. at is its line's place in the old
// layout, bound where in b the line's variable part ends; both may be -1.
func (in *intake) parsed(b []byte, p textparse.Parser, native bool) (at, bound int, err error) {
	var (
		text []byte
		ts   *int64
		v    float64
		h    *histogram.Histogram
		fh   *histogram.FloatHistogram
	)
	if native {
		text, ts, h, fh = p.Histogram()
	} else {
		text, ts, v = p.Series()
	}
	in.total++
	syntacticT := ts != nil
	hasT, t := syntacticT && in.set.cfg.HonorTimestamps, in.now
	if hasT {
		t = *ts
	}
	l, again := in.c.find(text), false
	if l >= 0 {
		again = in.c.touch(l)
	} else if err := in.labels(p); err != nil {
		return -1, -1, err
	}
	var repeated, exemplars bool
	if again && !hasT {
		in.repeated++
		repeated = true
		exemplars = in.rec.layout != nil && p.Exemplar(&in.exemplar)
	} else {
		if native && h == nil && fh == nil {
			return -1, -1, fmt.Errorf("parser returned no histogram for %v", in.lset)
		}
		var start int64
		if in.set.args.StartTimestampZeroIngestion {
			start = p.StartTimestamp()
		}
		in.exemplars = in.exemplars[:0]
		for in.exemplar = (exemplar.Exemplar{}); p.Exemplar(&in.exemplar); in.exemplar = (exemplar.Exemplar{}) {
			// As in Prometheus: with a native histogram, an exemplar without
			// a timestamp could not be told from a new one.
			if in.exemplar.HasTs || !native {
				in.exemplars = append(in.exemplars, in.exemplar)
			}
			exemplars = true
		}
		fits := in.reduce(h, fh)
		var series *batch.Series
		var name string
		if l >= 0 {
			series = in.c.series[in.c.lines[l].s].h
		} else {
			name = in.lset.Get(model.MetricNameLabel)
		}
		meta := in.meta(series, name)
		if fits && in.fits(t) && in.valid(h, fh) {
			if l < 0 {
				l = in.c.add(text, in.c.labelled(in.wire, in.tags))
				if in.limitErr == nil && in.bucketErr == nil {
					in.seriesAdded++
				}
			}
			s := int(in.c.lines[l].s)
			series = in.c.series[s].h
			setMeta(series, meta)
			if start > in.after && start < t {
				in.zero(series, start, h, fh)
			}
			in.latest = max(in.latest, t)
			in.row(series, t, v, h, fh, start)
			if !hasT || in.set.cfg.TrackTimestampsStaleness {
				in.c.track(s)
			}
		}
	}
	in.added++
	if in.rec.layout == nil {
		return -1, -1, nil
	}
	if l < 0 { // it was dropped, and its series is not known
		in.rec.invalid()
		return -1, -1, nil
	}
	at = int(in.c.lines[l].at)
	return at, in.record(b, text, l, syntacticT, repeated, exemplars), nil
}

// record records a line that textparse parsed. It returns where in b its
// variable part ends, -1 if that cannot be told.
func (in *intake) record(b, text []byte, l int, hasT, repeated, exemplars bool) int {
	// Both slices end at the end of one array.
	end := cap(b) - cap(text) + len(text)
	q := end
	for q < len(b) && (b[q] == ' ' || b[q] == '\t') {
		q++
	}
	var flags lineFlags
	if hasT {
		flags |= lineHasT
	}
	if repeated {
		flags |= lineRepeated
	}
	bound := -1
	if _, _, n, ok := in.rec.variable(b[q:], flags); ok && b[q-1] == ' ' {
		bound = q + n
	} else if in.rec.format == textFormat || exemplars {
		// What follows the value was read up to the line feed: in OpenMetrics
		// only an exemplar says so, whose parser insists on it.
		flags |= lineOpaque
		if n := bytes.IndexByte(b[q:], '\n'); n >= 0 {
			bound = q + n
		} else {
			bound = len(b)
		}
	} else {
		in.rec.invalid()
		return -1
	}
	in.c.lines[l].at = int32(in.rec.sample(b, l, len(text), q-end, q, bound, flags))
	return bound
}

// zero adds the sample that a series had when it began to count, as
// Prometheus's storages do, for those that know no start timestamps. What began
// before the samples that there may be already is left out: it would be out of
// order, and a receiver may refuse a whole request for that.
func (in *intake) zero(s *batch.Series, start int64, h *histogram.Histogram, fh *histogram.FloatHistogram) {
	row := len(in.v)
	if h != nil {
		in.histograms = append(in.histograms, batch.Histogram{Row: row, Int: &histogram.Histogram{
			CounterResetHint: histogram.CounterReset, Schema: h.Schema, ZeroThreshold: h.ZeroThreshold, CustomValues: h.CustomValues,
		}})
	} else if fh != nil {
		in.histograms = append(in.histograms, batch.Histogram{Row: row, Float: &histogram.FloatHistogram{
			CounterResetHint: histogram.CounterReset, Schema: fh.Schema, ZeroThreshold: fh.ZeroThreshold, CustomValues: fh.CustomValues,
		}})
	}
	in.rows.add(s, start, 0)
}

func (in *intake) row(s *batch.Series, t int64, v float64, h *histogram.Histogram, fh *histogram.FloatHistogram, start int64) {
	row := len(in.v)
	if start != 0 {
		in.rows.starts = append(in.rows.starts, batch.Start{Row: row, T: start})
	}
	if h != nil {
		v = h.Sum
		in.histograms = append(in.histograms, batch.Histogram{Row: row, Int: h})
	} else if fh != nil {
		v = fh.Sum
		in.histograms = append(in.histograms, batch.Histogram{Row: row, Float: fh})
	}
	in.rows.add(s, t, v)
	if len(in.exemplars) > 0 && !batch.IsStale(v) {
		in.addExemplars(s, row, t)
	}
}

// fits applies the limits that hold for every sample.
func (in *intake) fits(t int64) bool {
	if limit := int(in.set.cfg.SampleLimit); limit > 0 {
		// Go on after the limit, to report how many samples there were.
		if in.appended++; in.appended > limit {
			in.limitErr = errSampleLimit
			return false
		}
	}
	if t > in.maxT {
		in.ahead++
		return false
	}
	return true
}

// meta returns the metadata that a sample of h has, or one of that name when h
// is nil.
func (in *intake) meta(h *batch.Series, name string) *batch.Metadata {
	if in.fam == 0 {
		return nil
	}
	f := &in.c.families[in.fam-1]
	f.used = in.c.iter
	if h != nil {
		if h.Meta() == f.meta {
			return f.meta // found out before
		}
		name = h.Name()
	}
	if !partOf(name, f.meta.Family, f.meta.Type) {
		in.fam = 0 // nor do the next lines belong to it
		return nil
	}
	return f.meta
}

func setMeta(h *batch.Series, m *batch.Metadata) {
	if h.Meta() != m {
		h.SetMeta(m)
	}
}

// labels sets in.wire to the labels of the sample p is at, as they are sent, and
// in.lset to such that have its name.
func (in *intake) labels(p textparse.Parser) error {
	p.Labels(&in.lset)
	in.normalise()
	if in.simple() {
		return nil
	}
	in.lset = withTarget(in.lset, in.tags, in.set.cfg.HonorLabels)
	if !in.lset.Has(model.MetricNameLabel) {
		return fmt.Errorf("missing metric name (%s label)", model.MetricNameLabel)
	}
	if name, twice := in.lset.HasDuplicateLabelNames(); twice {
		// A receiver would reject it with all that it came with.
		return fmt.Errorf("label name %q is not unique: %s", name, in.lset)
	}
	if !in.lset.IsValid(in.set.cfg.MetricNameValidationScheme) {
		return fmt.Errorf("invalid metric name or label names: %s", in.lset)
	}
	in.wire = in.wire[:0]
	in.lset.Range(func(l labels.Label) {
		if l.Value != "" {
			in.wire = batch.AppendLabel(in.wire, l.Name, l.Value)
		}
	})
	return in.checkLabels()
}

// simple does what labels does where no two labels are in each other's way,
// nothing is to be complained of and there are no limits. It makes no garbage.
func (in *intake) simple() bool {
	cfg := in.set.cfg
	if cfg.LabelLimit > 0 || cfg.LabelNameLengthLimit > 0 || cfg.LabelValueLengthLimit > 0 ||
		!in.lset.Has(model.MetricNameLabel) || !in.lset.IsValid(cfg.MetricNameValidationScheme) {
		return false
	}
	if !in.tagsKnown {
		in.tagsValid, in.tagsKnown = labels.New(in.tags...).IsValid(cfg.MetricNameValidationScheme), true
	}
	ok, last, tags := in.tagsValid, "", in.tags
	in.wire = in.wire[:0]
	in.lset.Range(func(l labels.Label) {
		for len(tags) > 0 && tags[0].Name < l.Name {
			in.wire = batch.AppendLabel(in.wire, tags[0].Name, tags[0].Value)
			tags = tags[1:]
		}
		if l.Value == "" || l.Name <= last || len(tags) > 0 && tags[0].Name == l.Name {
			ok = false // an empty one is none, and may be in another one's way still
		}
		last = l.Name
		in.wire = batch.AppendLabel(in.wire, l.Name, l.Value)
	})
	for _, l := range tags {
		in.wire = batch.AppendLabel(in.wire, l.Name, l.Value)
	}
	return ok
}

// normalise writes the bucket boundaries of histograms and the quantiles of
// summaries as OpenMetrics does. textparse did, unless it was started behind
// the TYPE line.
func (in *intake) normalise() {
	var name string
	switch in.typ {
	case model.MetricTypeHistogram:
		name = model.BucketLabel
	case model.MetricTypeSummary:
		name = model.QuantileLabel
	default:
		return
	}
	was := in.lset.Get(name)
	f, err := strconv.ParseFloat(was, 64)
	if err != nil {
		return
	}
	if is := labels.FormatOpenMetricsFloat(f); is != was {
		in.lset = labels.NewBuilder(in.lset).Set(name, is).Labels()
	}
}

func (in *intake) checkLabels() error {
	cfg := in.set.cfg
	name := in.lset.Get(model.MetricNameLabel)
	if limit, n := int(cfg.LabelLimit), in.lset.Len(); limit > 0 && n > limit {
		return fmt.Errorf("%w: %.50s has %d labels, label_limit is %d", errLabelLimit, name, n, limit)
	}
	nameLimit, valueLimit := int(cfg.LabelNameLengthLimit), int(cfg.LabelValueLengthLimit)
	if nameLimit == 0 && valueLimit == 0 {
		return nil
	}
	return in.lset.Validate(func(l labels.Label) error {
		if n := len(l.Name); nameLimit > 0 && n > nameLimit {
			return fmt.Errorf("%w: label name %.50s of %.50s has %d bytes, label_name_length_limit is %d", errLabelLimit, l.Name, name, n, nameLimit)
		}
		if n := len(l.Value); valueLimit > 0 && n > valueLimit {
			return fmt.Errorf("%w: label %.50s of %.50s has %d bytes (%.50q), label_value_length_limit is %d", errLabelLimit, l.Name, name, n, l.Value, valueLimit)
		}
		return nil
	})
}
