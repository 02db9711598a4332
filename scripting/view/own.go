package view

import (
	"iter"

	"github.com/weir-run/weir/engine/batch"
)

// Pairs are the labels or the metadata of a record of a script's own, in any
// order; an empty value is none.
type Pairs []batch.Label

// Get returns a value, "" when there is none.
func (p Pairs) Get(name string) string {
	for _, l := range p {
		if l.Name == name {
			return l.Value
		}
	}
	return ""
}

// Set sets a value; an empty one removes it.
func (p *Pairs) Set(name, value string) {
	for i, l := range *p {
		if l.Name == name {
			(*p)[i].Value = value
			return
		}
	}
	*p = append(*p, batch.Label{Name: name, Value: value})
}

// All yields what is there. They may be edited meanwhile; the loop sees them as
// they were.
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
