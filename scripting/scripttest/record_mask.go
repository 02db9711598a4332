package scripttest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/scripting"
)

// pseudonyms gives a pseudonym to each value of a masked label in the calls.
func (w *recordWriter) pseudonyms(r Recording, reg component.Registration) error {
	if len(w.masked) == 0 {
		return nil
	}
	for i, c := range r.Calls {
		if _, err := w.mask(c.In, reg.Accepts); err != nil {
			return fmt.Errorf("call %d: cannot read the input: %w", i+1, err)
		}
		if _, err := w.mask(c.Out, reg.Sends); err != nil {
			return fmt.Errorf("call %d: cannot read the output: %w", i+1, err)
		}
	}
	var values []batch.Label // value and pseudonym
	for _, known := range w.masked {
		for value, pseudonym := range known {
			if len(value) >= minMasked {
				values = append(values, batch.Label{Name: value, Value: pseudonym})
			}
		}
	}
	// The longest is first: it may contain another one.
	slices.SortFunc(values, func(a, b batch.Label) int {
		return cmp.Or(len(b.Name)-len(a.Name), strings.Compare(a.Name, b.Name))
	})
	var pairs []string
	for _, v := range values {
		pairs = append(pairs, v.Name, v.Value)
	}
	w.parts = strings.NewReplacer(pairs...)
	return nil
}

// minMasked is the shortest value of a masked label that is replaced inside state and
// answers, in bytes.
const minMasked = 4

// maskText replaces the values of masked labels in a text.
func (w *recordWriter) maskText(text string) string {
	if w.parts == nil {
		return text
	}
	return w.parts.Replace(text)
}

// maskValue replaces the values of masked labels in a value.
func (w *recordWriter) maskValue(v scripting.Value) scripting.Value {
	switch v := v.(type) {
	case string:
		return w.maskText(v)
	case *scripting.List:
		out := &scripting.List{}
		for _, e := range v.Items {
			out.Items = append(out.Items, w.maskValue(e))
		}
		return out
	case *scripting.Map:
		out := scripting.NewMap()
		for _, k := range v.Keys() {
			e, _ := v.Get(k)
			out.Set(w.maskText(k), w.maskValue(e))
		}
		return out
	}
	return v
}

// mask replaces the values of masked labels in the text form of batches.
func (w *recordWriter) mask(text string, signals batch.Signals) (string, error) {
	if len(w.masked) == 0 {
		return text, nil
	}
	samples, logs := sorted(text, signals)
	o := batch.TextOptions{Series: func(sorted []batch.Label, meta *batch.Metadata) *batch.Series {
		s := batch.NewSeries(w.labels(sorted))
		s.SetMeta(meta)
		return s
	}}
	m, err := batch.ParseText(samples, o)
	if err != nil {
		return "", err
	}
	l, err := batch.ParseLogsText(logs, o)
	if err != nil {
		return "", err
	}
	for i, e := range m.Exemplars {
		m.Exemplars[i].Labels = w.labels(e.Labels)
	}
	for i, meta := range l.Meta {
		l.Meta[i] = w.labels(meta)
	}
	return string(batch.AppendLogsText(batch.AppendText(nil, m), l)), nil
}

// labels returns labels with masked values. The same value has the same pseudonym.
func (w *recordWriter) labels(ls []batch.Label) []batch.Label {
	out := slices.Clone(ls)
	for i, l := range out {
		known, ok := w.masked[l.Name]
		if !ok {
			continue
		}
		if known[l.Value] == "" {
			known[l.Value] = fmt.Sprintf("%s-%d", l.Name, len(known)+1)
		}
		out[i].Value = known[l.Value]
	}
	return out
}
