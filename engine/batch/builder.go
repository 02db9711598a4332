package batch

import (
	"slices"
	"strings"
)

// Builder edits a set of labels. The zero value is an empty set. It is scratch
// memory: keep one and Reset it. Not safe for concurrent use.
type Builder struct{ labels []Label }

// Reset starts from the labels of s, or from none when s is nil.
func (b *Builder) Reset(s *Series) {
	clear(b.labels)
	b.labels = b.labels[:0]
	if s != nil {
		b.labels = s.AppendLabels(b.labels)
	}
}

// Get returns a label's value, "" when it is missing.
func (b *Builder) Get(name string) string {
	if i, ok := b.find(name); ok {
		return b.labels[i].Value
	}
	return ""
}

// Set sets a label; an empty value removes it.
func (b *Builder) Set(name, value string) {
	i, ok := b.find(name)
	switch {
	case value == "" && ok:
		b.labels = slices.Delete(b.labels, i, i+1)
	case value == "":
	case ok:
		b.labels[i].Value = value
	default:
		b.labels = slices.Insert(b.labels, i, Label{name, value})
	}
}

// SetAll makes ls, in any order, the set: of a name that appears twice the last one
// counts, and labels without a value are left out. That takes less than Set for each,
// which moves those behind it. It keeps nothing of ls but the strings.
func (b *Builder) SetAll(ls []Label) {
	b.Reset(nil)
	b.labels = append(b.labels, ls...)
	slices.SortStableFunc(b.labels, func(x, y Label) int { return strings.Compare(x.Name, y.Name) })
	kept := b.labels[:0]
	for i, l := range b.labels {
		if (i+1 == len(b.labels) || b.labels[i+1].Name != l.Name) && l.Value != "" {
			kept = append(kept, l)
		}
	}
	clear(b.labels[len(kept):])
	b.labels = kept
}

// Keep removes the labels that keep does not report.
func (b *Builder) Keep(keep func(Label) bool) {
	b.labels = slices.DeleteFunc(b.labels, func(l Label) bool { return !keep(l) })
}

// Labels returns the set, sorted by name. It is valid until the next call.
func (b *Builder) Labels() []Label { return b.labels }

// Series returns source itself when the labels are its own, and a handle
// derived from it otherwise; without a source, a new handle.
func (b *Builder) Series(source *Series) *Series {
	if source == nil {
		return NewSeries(b.labels)
	}
	if b.Matches(source) {
		return source
	}
	return source.Derive(b.labels)
}

// Matches reports whether the labels are exactly those of s.
func (b *Builder) Matches(s *Series) bool {
	rest := b.labels
	for n, v := range s.Labels() {
		if len(rest) == 0 || rest[0].Name != n || rest[0].Value != v {
			return false
		}
		rest = rest[1:]
	}
	return len(rest) == 0
}

func (b *Builder) find(name string) (int, bool) {
	return slices.BinarySearchFunc(b.labels, name, func(l Label, n string) int { return strings.Compare(l.Name, n) })
}
