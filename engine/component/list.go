package component

import (
	"fmt"
	"slices"
)

// list is the catalog of the compiled-in components.
type list struct {
	byName map[string]Registration
	names  []string
}

// NewList returns a catalog of registrations that never change: the native
// components. It panics if two of them have the same name.
func NewList(rs ...Registration) Catalog {
	l := &list{byName: make(map[string]Registration, len(rs))}
	for _, r := range rs {
		if _, ok := l.byName[r.Name]; ok {
			panic(fmt.Sprintf("BUG: component %s is listed twice", r.Name))
		}
		l.byName[r.Name] = r
		l.names = append(l.names, r.Name)
	}
	slices.Sort(l.names)
	return l
}

func (l *list) Lookup(name string) (Registration, bool) {
	r, ok := l.byName[name]
	return r, ok
}

func (l *list) Names() []string { return slices.Clone(l.names) }

func (l *list) Roots() []string { return nil }

func (l *list) Refresh([]string) {}
