package batch

import (
	"slices"
	"strings"
)

// Builder edits a set of labels. The zero value is an empty set. Reuse a
// Builder with Reset to save allocations. It is not safe for concurrent use.
type Builder struct{ labels []Label }

// Reset replaces the set with the labels of s, or with an empty set if s is
// nil.
func (b *Builder) Reset(s *Series) {
	clear(b.labels)
	b.labels = b.labels[:0]
	if s != nil {
		b.labels = s.AppendLabels(b.labels)
	}
}

// Get returns a label's value, or "" if the label is missing.
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

// SetAll replaces the set with ls, which may be in any order. If a name occurs
// twice, the last value wins. Labels without a value are removed. It is faster
// than calling Set for each label, because Set moves the labels behind it. It
// retains the strings of ls, but not the slice.
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

// Keep removes the labels for which keep returns false.
func (b *Builder) Keep(keep func(Label) bool) {
	b.labels = slices.DeleteFunc(b.labels, func(l Label) bool { return !keep(l) })
}

// Labels returns the set, sorted by name. It is valid until the next call of
// any method.
func (b *Builder) Labels() []Label { return b.labels }

// Series returns source itself if it has the same labels. Otherwise it returns
// a new handle, which is derived from source if source is not nil.
func (b *Builder) Series(source *Series) *Series {
	if source == nil {
		return NewSeries(b.labels)
	}
	if b.Matches(source) {
		return source
	}
	return source.Derive(b.labels)
}

// Matches reports whether the set equals the labels of s.
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
