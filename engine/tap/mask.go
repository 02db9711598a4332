package tap

import (
	"slices"
	"strings"

	"github.com/weir-run/weir/engine/batch"
)

const (
	masked = "(secret)"
	// minPart is the shortest secret that is masked inside a longer text, in
	// bytes. A shorter one is masked only if it is the whole text.
	minPart = 4
)

// masks are the secrets that must not be shown.
type masks struct {
	whole map[string]bool
	parts *strings.Replacer // nil if there are none
}

func newMasks(secrets []string) *masks {
	m := &masks{whole: map[string]bool{}}
	var parts []string
	// The longest is first: it may contain another one.
	secrets = slices.Clone(secrets)
	slices.SortFunc(secrets, func(a, b string) int { return len(b) - len(a) })
	for _, s := range secrets {
		m.whole[s] = true
		if len(s) >= minPart {
			parts = append(parts, s, masked)
		}
	}
	if parts != nil {
		m.parts = strings.NewReplacer(parts...)
	}
	return m
}

func (m *masks) mask(text string) string {
	if m.whole[text] {
		return masked
	}
	if m.parts == nil {
		return text
	}
	return m.parts.Replace(text)
}

// MaskText returns a text in which secrets are masked.
func MaskText(text string, secrets []string) string { return newMasks(secrets).mask(text) }

func (m *masks) labels(ls []batch.Label) []batch.Label {
	out := slices.Clone(ls)
	for i, l := range out {
		out[i].Value = m.mask(l.Value)
	}
	return out
}

func (m *masks) series(s *batch.Series) *batch.Series {
	for _, v := range s.Labels() {
		if m.mask(v) != v {
			out := batch.NewSeries(m.labels(s.AppendLabels(nil)))
			out.SetMeta(s.Meta())
			return out
		}
	}
	return s
}

// metrics returns b with masked labels. b is a copy with few rows.
func (m *masks) metrics(b *batch.Metrics) *batch.Metrics {
	if len(m.whole) == 0 {
		return b
	}
	out := *b
	out.Series, out.Exemplars = slices.Clone(b.Series), slices.Clone(b.Exemplars)
	for i, s := range out.Series {
		out.Series[i] = m.series(s)
	}
	for i, e := range out.Exemplars {
		out.Exemplars[i].Labels = m.labels(e.Labels)
	}
	return &out
}

// logs is like metrics, for log lines.
func (m *masks) logs(b *batch.Logs) *batch.Logs {
	if len(m.whole) == 0 {
		return b
	}
	out := *b
	out.Stream, out.Line, out.Meta = slices.Clone(b.Stream), slices.Clone(b.Line), slices.Clone(b.Meta)
	for i, s := range out.Stream {
		out.Stream[i], out.Line[i] = m.series(s), m.mask(out.Line[i])
	}
	for i, meta := range out.Meta {
		out.Meta[i] = m.labels(meta)
	}
	return &out
}

// row returns a masked row.
func (m *masks) row(r row) row {
	if len(m.whole) == 0 {
		return r
	}
	if r.l != nil {
		return logsRow(m.logs(r.l.Rows([]int{r.i})), 0)
	}
	return metricsRow(m.metrics(r.m.Rows([]int{r.i})), 0)
}

// MaskMetrics returns b with masked secrets, as a tap shows it.
func MaskMetrics(b *batch.Metrics, secrets []string) *batch.Metrics {
	return newMasks(secrets).metrics(b)
}

// MaskLogs is like MaskMetrics, for log lines.
func MaskLogs(b *batch.Logs, secrets []string) *batch.Logs { return newMasks(secrets).logs(b) }
