package batch

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/value"
)

// The text form is for people: for tests, examples and taps. It looks like a
// scrape body but, unlike a scrape body, is lossless:
//
//	# TYPE http_requests_total counter
//	# HELP http_requests_total Requests served.
//	http_requests_total{job="api"} 12 1700000000000 st@1690000000000 # {trace_id="a1"} 1 1699999999000
//	latency{job="api"} {count:3,sum:1.5,schema:3,positive_spans:[0:2],positive_buckets:[1,2]} 1700000000000
//	gone{job="api"} stale 1700000000000
//
// Each line is one row: series, value, time, start timestamp, exemplars. Times
// are in Unix ms. NaN is Prometheus's normal NaN; a NaN with another payload is
// written as NaN(0x7ff8000000000000). Names with special characters are quoted,
// {"my.name",job="api"}, with Go's escapes. A native histogram has absolute
// bucket counts, has counts:float if they are floats, and omits zero fields. A
// metadata line applies to all rows below it, until another metadata line for
// the same name; `# TYPE name -` removes the metadata of a name. Other comments
// and empty lines are ignored.

// AppendText appends b in text form to dst. The text does not contain b.Source
// and does not record which of several equal series had which handle. ParseText
// reads it.
func AppendText(dst []byte, b *Metrics) []byte { return appendText(dst, b, nil) }

// AppendTextAt is like AppendText, but omits times that equal t. ParseText
// restores them with TextOptions{T: t}.
func AppendTextAt(dst []byte, b *Metrics, t int64) []byte { return appendText(dst, b, &t) }

func appendText(dst []byte, b *Metrics, implied *int64) []byte {
	var said families
	var h, e, s int
	for i, series := range b.Series {
		dst = said.announce(dst, series)
		dst = AppendSeries(dst, series)
		dst = append(dst, ' ')
		if h < len(b.Histograms) && b.Histograms[h].Row == i {
			dst = appendHistogram(dst, b.Histograms[h])
			h++
		} else {
			dst = appendFloat(dst, b.V[i])
		}
		if implied == nil || b.T[i] != *implied {
			dst = append(dst, ' ')
			dst = strconv.AppendInt(dst, b.T[i], 10)
		}
		if s < len(b.Starts) && b.Starts[s].Row == i {
			dst = append(dst, " st@"...)
			dst = strconv.AppendInt(dst, b.Starts[s].T, 10)
			s++
		}
		for ; e < len(b.Exemplars) && b.Exemplars[e].Row == i; e++ {
			dst = appendExemplar(dst, b.Exemplars[e])
		}
		dst = append(dst, '\n')
	}
	return dst
}

// AppendSeries appends a series in text form: name{label="value",…}.
func AppendSeries(dst []byte, s *Series) []byte {
	name := s.Name()
	plain := isPlainName(name)
	if plain {
		dst = append(dst, name...)
	}
	sep := byte('{')
	if name != "" && !plain {
		dst = append(dst, '{')
		dst = strconv.AppendQuote(dst, name)
		sep = ','
	}
	for n, v := range s.Labels() {
		if n == NameLabel {
			continue
		}
		dst = append(dst, sep)
		dst = appendLabel(dst, n, v)
		sep = ','
	}
	switch {
	case sep == ',':
		dst = append(dst, '}')
	case name == "":
		dst = append(dst, "{}"...)
	}
	return dst
}

func appendLabel(dst []byte, name, value string) []byte {
	if isPlainLabel(name) {
		dst = append(dst, name...)
	} else {
		dst = strconv.AppendQuote(dst, name)
	}
	dst = append(dst, '=')
	return strconv.AppendQuote(dst, value)
}

func appendExemplar(dst []byte, e Exemplar) []byte {
	dst = append(dst, " # {"...)
	for i, l := range e.Labels {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendLabel(dst, l.Name, l.Value)
	}
	dst = append(dst, "} "...)
	dst = appendFloat(dst, e.Value)
	if e.HasT {
		dst = append(dst, ' ')
		dst = strconv.AppendInt(dst, e.T, 10)
	}
	return dst
}

func appendFloat(dst []byte, v float64) []byte {
	if v == v {
		return strconv.AppendFloat(dst, v, 'g', -1, 64)
	}
	switch bits := math.Float64bits(v); bits {
	case StaleNaN:
		return append(dst, "stale"...)
	case value.NormalNaN:
		return append(dst, "NaN"...)
	default:
		dst = append(dst, "NaN(0x"...)
		dst = strconv.AppendUint(dst, bits, 16)
		return append(dst, ')')
	}
}

func isPlainName(s string) bool  { return model.LegacyValidation.IsValidMetricName(s) }
func isPlainLabel(s string) bool { return model.LegacyValidation.IsValidLabelName(s) }

// families maps the name of a metric or family to the metadata written so far.
// The value is nil if the metadata was removed. Writer and reader keep the same
// map, so the writer knows how the reader will interpret a row.
type families map[string]*Metadata

// familySuffixes are the name suffixes of the series that belong to a family.
var familySuffixes = map[model.MetricType][]string{
	model.MetricTypeCounter:        {"_total", "_created"},
	model.MetricTypeHistogram:      {"_bucket", "_count", "_sum", "_created"},
	model.MetricTypeGaugeHistogram: {"_bucket", "_gcount", "_gsum"},
	model.MetricTypeSummary:        {"_count", "_sum", "_created"},
	model.MetricTypeInfo:           {"_info"},
}

// metadataOf returns the metadata of a series by its name: its own, or else the
// metadata of its family.
func (f families) metadataOf(name string) *Metadata {
	if m, ok := f[name]; ok {
		return m
	}
	if i := strings.LastIndexByte(name, '_'); i > 0 {
		if m := f[name[:i]]; m != nil && slices.Contains(familySuffixes[m.Type], name[i:]) {
			return m
		}
	}
	return nil
}

// announce appends the comments that tell a reader the metadata of s, unless
// the reader already knows it.
func (f *families) announce(dst []byte, s *Series) []byte {
	var want Metadata
	if m := s.Meta(); m != nil {
		want = *m
	}
	name := s.Name()
	var known Metadata
	if m := f.metadataOf(name); m != nil {
		known = *m
	}
	if want == known {
		return dst
	}
	if *f == nil {
		*f = families{}
	}
	key := name
	for _, suffix := range familySuffixes[want.Type] {
		family := strings.TrimSuffix(name, suffix)
		// Except in OpenMetrics, a counter has the name of its family. Metadata for
		// the exact name takes precedence over metadata of the family.
		if _, own := (*f)[name]; family != name && family != "" && want.Type != model.MetricTypeCounter && !own {
			key = family
			break
		}
	}
	if _, said := (*f)[key]; said || want == (Metadata{}) {
		dst = appendComment(dst, "TYPE", key, "-")
	}
	if want == (Metadata{}) {
		(*f)[key] = nil
		return dst
	}
	(*f)[key] = &want
	if want.Type != "" {
		dst = appendComment(dst, "TYPE", key, string(want.Type))
	}
	if want.Help != "" {
		dst = appendComment(dst, "HELP", key, commentText(want.Help))
	}
	if want.Unit != "" {
		dst = appendComment(dst, "UNIT", key, commentText(want.Unit))
	}
	return dst
}

func appendComment(dst []byte, kind, name, text string) []byte {
	dst = append(dst, "# "...)
	dst = append(dst, kind...)
	dst = append(dst, ' ')
	if isPlainName(name) {
		dst = append(dst, name...)
	} else {
		dst = strconv.AppendQuote(dst, name)
	}
	dst = append(dst, ' ')
	dst = append(dst, text...)
	return append(dst, '\n')
}

// commentText formats a help text or unit as in a scrape body. It is quoted if
// it could not be read back otherwise.
func commentText(s string) string {
	quoted := strconv.Quote(s)
	escaped := strings.NewReplacer(`\`, `\\`, "\n", `\n`).Replace(s)
	if strings.TrimSpace(s) != s || s[0] == '"' || strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`) != escaped {
		return quoted
	}
	return escaped
}
