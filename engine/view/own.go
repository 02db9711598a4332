package view

import (
	"iter"

	"github.com/weir-run/weir/engine/batch"
)

// Pairs are the labels or the metadata of a record outside of a batch, in any
// order. Empty values are ignored.
type Pairs []batch.Label

// Get returns a value, or "" if there is none.
func (p Pairs) Get(name string) string {
	for _, l := range p {
		if l.Name == name {
			return l.Value
		}
	}
	return ""
}

// Set sets a value. An empty value removes the name.
func (p *Pairs) Set(name, value string) {
	for i, l := range *p {
		if l.Name == name {
			(*p)[i].Value = value
			return
		}
	}
	*p = append(*p, batch.Label{Name: name, Value: value})
}

// All yields the pairs with a value. Pairs may be edited during the iteration,
// which still yields the original pairs.
func (p Pairs) All() iter.Seq2[string, string] {
	ls := append(Pairs(nil), p...)
	return func(yield func(string, string) bool) {
		for _, l := range ls {
			if l.Value != "" && !yield(l.Name, l.Value) {
				return
			}
		}
	}
}

// Held returns the approximate size of the record's memory in addition to its
// struct, in bytes.
func (r *Record) Held() int {
	n := Pairs(r.Labels).held() + len(r.Name) + len(r.Help)
	for _, e := range r.Exemplars {
		n += 64 + Pairs(e.Labels).held()
	}
	if h := r.Histogram.Int; h != nil {
		n += 200 + 8*(len(h.PositiveBuckets)+len(h.NegativeBuckets)+len(h.PositiveSpans)+len(h.NegativeSpans))
	}
	if h := r.Histogram.Float; h != nil {
		n += 200 + 8*(len(h.PositiveBuckets)+len(h.NegativeBuckets)+len(h.PositiveSpans)+len(h.NegativeSpans))
	}
	return n
}

// Held is like Record.Held.
func (r *LogRecord) Held() int {
	return Pairs(r.Labels).held() + Pairs(r.Meta).held() + len(r.Line)
}

func (p Pairs) held() (n int) {
	for _, l := range p {
		n += 32 + len(l.Name) + len(l.Value)
	}
	return n
}
