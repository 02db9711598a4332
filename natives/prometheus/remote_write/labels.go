package remotewrite

import (
	"slices"
	"strings"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/rule"
)

// labeler computes the labels that are sent for a series, once for each series.
type labeler struct {
	external []batch.Label // sorted by name
	rules    []*relabel.Config
	header   *HeaderFromLabel
	memo     batch.Memo[sent]
}

// sent is what is sent for a series.
type sent struct {
	same  bool   // the labels of the series are sent unchanged
	wire  string // other labels, encoded as by Series.AppendWire; "" means dropped
	value string // the value of header_from_label
}

// newLabeler returns nil if labels are sent unchanged.
func newLabeler(external map[string]string, rules []*rule.Rule, header *HeaderFromLabel) *labeler {
	l := &labeler{rules: rule.Configs(rules), header: header}
	for n, v := range external {
		if v != "" {
			l.external = append(l.external, batch.Label{Name: n, Value: v})
		}
	}
	if len(l.external) == 0 && len(rules) == 0 && header == nil {
		return nil
	}
	slices.SortFunc(l.external, func(a, b batch.Label) int { return strings.Compare(a.Name, b.Name) })
	return l
}

// splits reports whether a label value determines the shard of a series.
func (l *labeler) splits() bool { return l != nil && l.header != nil }

// sent returns what is sent for a series.
func (l *labeler) sent(s *batch.Series) sent {
	if l == nil {
		return sent{same: !s.Empty()}
	}
	if w, ok := l.memo.Get(s); ok {
		return w
	}
	return l.memo.Put(s, l.derive(s))
}

// dropped reports whether the series is not sent.
func (s sent) dropped() bool { return !s.same && s.wire == "" }

func (l *labeler) derive(s *batch.Series) (out sent) {
	var b batch.Builder
	b.Reset(s)
	for _, e := range l.external {
		if b.Get(e.Name) == "" {
			b.Set(e.Name, e.Value)
		}
	}
	if len(l.rules) > 0 {
		in := labels.NewScratchBuilder(16)
		for _, lb := range b.Labels() {
			in.Add(lb.Name, lb.Value)
		}
		lb := labels.NewBuilder(in.Labels())
		if !relabel.ProcessBuilder(lb, l.rules...) {
			return sent{}
		}
		b.Reset(nil)
		lb.Labels().Range(func(l labels.Label) { b.Set(l.Name, l.Value) })
	}
	if h := l.header; h != nil {
		out.value = strings.Clone(b.Get(h.Label)) // the value may outlive the series
		if out.value == "" {
			out.value = h.Default
		}
		if !h.Keep {
			b.Set(h.Label, "")
		}
	}
	if b.Matches(s) {
		out.same = len(b.Labels()) > 0
		return out
	}
	// Only the encoding is needed; a handle would cost more than its labels.
	out.wire = string(batch.AppendLabels(nil, b.Labels()))
	return out
}
