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

// readCached adds the sample of a cached line.
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

// parsed adds the sample at which p is. at is the index of its line in the old
// layout; bound is the position in b where the variable part of the line ends.
// Both may be -1.
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
			// As in Prometheus: for a native histogram, a repeated exemplar
			// without a timestamp could not be distinguished from a new one.
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
	if l < 0 { // the sample was dropped, and its series is unknown
		in.rec.invalid()
		return -1, -1, nil
	}
	at = int(in.c.lines[l].at)
	return at, in.record(b, text, l, syntacticT, repeated, exemplars), nil
}

// record records a line that textparse parsed. It returns the position in b where
// its variable part ends, or -1 if it cannot be determined.
func (in *intake) record(b, text []byte, l int, hasT, repeated, exemplars bool) int {
	// Both slices end at the end of the same array.
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
		// The text after the value was read up to the line feed. In OpenMetrics,
		// only an exemplar can follow, and its parser checks for the line feed.
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

// zero adds a sample of 0 at the start time of a series, as Prometheus's storages
// do, for receivers that do not support start timestamps. It adds none if the
// series started before samples that may already exist: the sample would be out
// of order, and a receiver might refuse the whole request.
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

// fits applies the limits for all samples.
func (in *intake) fits(t int64) bool {
	if limit := int(in.set.cfg.SampleLimit); limit > 0 {
		// Continue after the limit to report the number of samples.
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

// meta returns the metadata for a sample of h, or for a sample with that name if
// h is nil.
func (in *intake) meta(h *batch.Series, name string) *batch.Metadata {
	if in.fam == 0 {
		return nil
	}
	f := &in.c.families[in.fam-1]
	f.used = in.c.iter
	if h != nil {
		if h.Meta() == f.meta {
			return f.meta // determined earlier
		}
		name = h.Name()
	}
	if !partOf(name, f.meta.Family, f.meta.Type) {
		in.fam = 0 // the next lines do not belong to it either
		return nil
	}
	return f.meta
}

func setMeta(h *batch.Series, m *batch.Metadata) {
	if h.Meta() != m {
		h.SetMeta(m)
	}
}

// labels sets in.wire to the labels of the sample at which p is, as they are
// sent, and in.lset to labels that include its name.
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
		// A receiver would reject the sample together with the rest of the
		// request.
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

// simple does the work of labels if no two labels conflict, all labels are valid
// and there are no limits. It does not allocate.
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
			ok = false // an empty label is removed, but may still conflict with another one
		}
		last = l.Name
		in.wire = batch.AppendLabel(in.wire, l.Name, l.Value)
	})
	for _, l := range tags {
		in.wire = batch.AppendLabel(in.wire, l.Name, l.Value)
	}
	return ok
}

// normalise formats the bucket boundaries of histograms and the quantiles of
// summaries as OpenMetrics does. textparse does this itself, unless it was
// started after the TYPE line.
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
