package template

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// Pair is a key with its value, the result of get and gets.
type Pair struct{ Key, Value string }

// store has the values for a template, by key. Its methods are functions of
// confd, whose results have the same order.
type store map[string]string

func (s store) exists(key string) bool {
	_, ok := s[key]
	return ok
}

func (s store) get(key string) (Pair, error) {
	v, ok := s[key]
	if !ok {
		return Pair{}, fmt.Errorf("there is no key %q", key)
	}
	return Pair{key, v}, nil
}

// getv returns a value; there may be a default.
func (s store) getv(key string, or ...string) (string, error) {
	p, err := s.get(key)
	if err != nil && len(or) > 0 {
		return or[0], nil
	}
	return p.Value, err
}

// gets returns the pairs whose keys match a pattern of path.Match, sorted by key.
func (s store) gets(pattern string) (out []Pair, err error) {
	for _, key := range slices.Sorted(maps.Keys(s)) {
		ok, err := path.Match(pattern, key)
		if err != nil {
			return nil, fmt.Errorf("%q is not a pattern: %w", pattern, err)
		}
		if ok {
			out = append(out, Pair{key, s[key]})
		}
	}
	return out, nil
}

// getvs returns the values of the keys that match a pattern, sorted by value.
func (s store) getvs(pattern string) ([]string, error) {
	pairs, err := s.gets(pattern)
	out := make([]string, len(pairs))
	for i, p := range pairs {
		out[i] = p.Value
	}
	slices.Sort(out)
	return out, err
}

// ls returns the names directly below a path, sorted; for a key that has a value, its
// own name.
func (s store) ls(dir string) []string { return s.list(dir, false) }

// lsdir returns the names directly below a path that have keys below them, sorted.
func (s store) lsdir(dir string) []string { return s.list(dir, true) }

func (s store) list(dir string, dirs bool) []string {
	dir = path.Clean("/" + dir)
	names := map[string]bool{}
	for key := range s {
		if !dirs && key == dir {
			names[path.Base(key)] = true
		}
		if rest, ok := strings.CutPrefix(key, strings.TrimSuffix(dir, "/")+"/"); ok && rest != "" {
			name, _, below := strings.Cut(rest, "/")
			if below || !dirs {
				names[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}
