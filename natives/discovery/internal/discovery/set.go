package discovery

import (
	"cmp"
	"maps"
	"math/bits"
	"slices"

	"github.com/cespare/xxhash/v2"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/discovery/targetgroup"
)

// Set contains the targets of all known groups, by source. The zero value is
// empty. It is not safe for concurrent use.
type Set struct {
	groups  map[string]*group
	round   int // round of the current discoverer
	targets int
	size    int // size of their labels, see size
}

// group contains the targets of one source.
type group struct {
	round   int
	entries []entry // sorted
	size    int
}

// entry is a target with its sort keys.
type entry struct {
	address string
	hash    uint64
	labels  map[string]string
}

func (a entry) compare(b entry) int {
	if c := cmp.Compare(a.address, b.address); c != 0 {
		return c
	}
	return cmp.Compare(a.hash, b.hash)
}

// Merge replaces the targets of the source of g, and reports whether the targets
// changed.
func (s *Set) Merge(g *targetgroup.Group) (changed bool) {
	old := s.groups[g.Source]
	if len(g.Targets) == 0 {
		return s.drop(g.Source)
	}
	var before []entry
	if old != nil {
		before = old.entries
	}
	entries, built := match(g, before)
	if s.groups == nil {
		s.groups = map[string]*group{}
	}
	now := &group{s.round, entries, size(g)}
	s.groups[g.Source] = now
	s.targets += len(entries) - len(before)
	s.size += now.size
	if old != nil {
		s.size -= old.size
	}
	return built > 0 || len(entries) != len(before)
}

func (s *Set) drop(source string) (changed bool) {
	g := s.groups[source]
	if g == nil {
		return false
	}
	delete(s.groups, source)
	s.targets -= len(g.entries)
	s.size -= g.size
	return true
}

// Retain removes the sources for which keep returns false.
func (s *Set) Retain(keep func(source string) bool) (changed bool) {
	for source := range s.groups {
		if !keep(source) {
			changed = s.drop(source) || changed
		}
	}
	return changed
}

// Begin begins a new round. Prune removes the sources that are not merged in it.
func (s *Set) Begin() { s.round++ }

// Prune removes the sources of earlier rounds.
func (s *Set) Prune() (changed bool) {
	for source, g := range s.groups {
		if g.round != s.round {
			changed = s.drop(source) || changed
		}
	}
	return changed
}

// Targets returns the targets, sorted by source, address and labels. The maps
// must not be written to.
func (s *Set) Targets() []map[string]string {
	out := make([]map[string]string, 0, s.targets)
	for _, source := range slices.Sorted(maps.Keys(s.groups)) {
		for _, e := range s.groups[source].entries {
			out = append(out, e.labels)
		}
	}
	return out
}

// match returns the sorted targets of g. It reuses the maps in before that are
// equal. built is the number of new maps. It allocates nothing for an unchanged
// target.
func match(g *targetgroup.Group, before []entry) (entries []entry, built int) {
	type found struct {
		entry
		set model.LabelSet
	}
	all := make([]found, len(g.Targets))
	for i, t := range g.Targets {
		address, ok := t[model.AddressLabel]
		if !ok {
			address = g.Labels[model.AddressLabel]
		}
		all[i] = found{entry{address: string(address), hash: hash(t, g.Labels)}, t}
	}
	slices.SortStableFunc(all, func(a, b found) int { return a.compare(b.entry) })

	entries = make([]entry, len(all))
	for i, f := range all {
		for len(before) > 0 && before[0].compare(f.entry) < 0 {
			before = before[1:]
		}
		if len(before) > 0 && before[0].compare(f.entry) == 0 && equal(before[0].labels, f.set, g.Labels) {
			entries[i] = before[0]
			before = before[1:]
			continue
		}
		built++
		f.labels = merged(f.set, g.Labels)
		entries[i] = f.entry
	}
	return entries, built
}

// hash returns a hash of the labels of a target, which override those of its
// group, independent of their order. It has no random seed, so that targets with
// the same address keep their order after a restart. It is not used in a hash
// table: targets with equal hashes, which anyone can create, are each compared
// once with the previous ones.
func hash(target, group model.LabelSet) (sum uint64) {
	for n, v := range target {
		sum += pair(n, v)
	}
	for n, v := range group {
		if _, ok := target[n]; !ok {
			sum += pair(n, v)
		}
	}
	return sum
}

func pair(n model.LabelName, v model.LabelValue) uint64 {
	h := xxhash.Sum64String(string(n))*0x9e3779b97f4a7c15 ^ bits.RotateLeft64(xxhash.Sum64String(string(v)), 31)
	h ^= h >> 32
	h *= 0xd6e8feb86659fd93 // so that the sum of the pairs depends on which value belongs to which name
	return h ^ h>>32
}

func equal(labels map[string]string, target, group model.LabelSet) bool {
	n := len(target)
	for name, v := range target {
		if have, ok := labels[string(name)]; !ok || have != string(v) {
			return false
		}
	}
	for name, v := range group {
		if _, ok := target[name]; ok {
			continue
		}
		n++
		if have, ok := labels[string(name)]; !ok || have != string(v) {
			return false
		}
	}
	return n == len(labels)
}

func merged(target, group model.LabelSet) map[string]string {
	m := make(map[string]string, len(target)+len(group))
	for n, v := range group {
		m[string(n)] = string(v)
	}
	for n, v := range target {
		m[string(n)] = string(v)
	}
	return m
}
