package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/grafana/alloy/syntax/vm"

	"github.com/weir-run/weir/engine/flow"
)

// Scope is what expressions can refer to: the standard library and what nodes
// export. It is not safe for concurrent use, not even by Decode alone.
type Scope struct {
	nodes map[string]*scopeNode
	base  map[string]any
}

type scopeNode struct {
	exports     any // a struct, or nil
	provisional bool
	unknown     bool
}

// stdlibNames are the top-level names of alloy/syntax v0.1.1 that a component
// can be mistaken for; the deprecated ones are left out.
var stdlibNames = []string{"array", "coalesce", "constants", "convert", "encoding", "file", "json_path", "string", "sys"}

// NewScope returns a scope in which the blocks that do not parse are unknown.
// version is what constants.version is, such as v1.2.3.
func (c *Config) NewScope(version string) *Scope {
	s := &Scope{nodes: map[string]*scopeNode{}, base: map[string]any{}}
	constants := map[string]string{}
	if std, ok := stdlib("constants"); ok {
		maps.Copy(constants, std.(map[string]string))
	}
	constants["version"] = version
	s.base["constants"] = constants
	for _, id := range c.Broken {
		s.SetUnknown(id)
	}
	return s
}

// Set says that a node exists and what it exports: a struct or a pointer to
// one, with alloy tags; nil for nothing.
func (s *Scope) Set(id string, exports any) { s.set(id, &scopeNode{exports: exports}) }

// SetProvisional is Set of a node that has not been built. Fields of exports
// that are not zero, such as receiver, are known already; of the others only
// the type is.
func (s *Scope) SetProvisional(id string, exports any) {
	s.set(id, &scopeNode{exports: exports, provisional: true})
}

// SetUnknown says that a node exists but nobody knows what it exports, because
// of a mistake that was reported elsewhere. What refers to it is not decoded
// and is no mistake.
func (s *Scope) SetUnknown(id string) { s.set(id, &scopeNode{unknown: true}) }

// Has reports whether a node has been set.
func (s *Scope) Has(id string) bool { return s.nodes[id] != nil }

func (s *Scope) set(id string, n *scopeNode) {
	s.nodes[id] = n
}

func (s *Scope) ids() []string { return slices.Sorted(maps.Keys(s.nodes)) }

func stdlib(name string) (any, bool) { return (*vm.Scope)(nil).Lookup(name) }

// find returns the node with the longest ID that path begins with, and the
// rest of path.
func (s *Scope) find(path []string) (id string, n *scopeNode, rest []string) {
	for i := len(path); i > 0; i-- {
		id := strings.Join(path[:i], ".")
		if n := s.nodes[id]; n != nil {
			return id, n, path[i:]
		}
	}
	return "", nil, nil
}

// resolve returns the node that r refers to, "" when it refers to the standard
// library, or what is wrong with it.
func (s *Scope) resolve(r Reference) (id string, d *Diagnostic) {
	id, n, rest := s.find(r.Path)
	if n == nil {
		if _, ok := stdlib(r.Path[0]); ok {
			return "", nil
		}
		return "", s.unknown(r)
	}
	if n.unknown || len(rest) == 0 {
		return id, nil
	}
	exports := exportNames(n.exports)
	if slices.Contains(exports, rest[0]) {
		return id, nil
	}
	d = &Diagnostic{Span: r.ends[len(r.Path)-len(rest)], Msg: fmt.Sprintf("%s has no export %s", id, rest[0])}
	switch hint := DidYouMean(rest[0], exports); {
	case hint != "":
		d.Hint = hint
	case len(exports) == 0:
		d.Hint = "it exports nothing"
	default:
		d.Hint = "it exports " + strings.Join(exports, ", ")
	}
	return id, d
}

// certainty of a reference's value.
type certainty uint8

const (
	certain     certainty = iota
	provisional           // its type is known, its value is not
	unknown               // nothing is known, or there is a mistake in it
)

func (s *Scope) certainty(r Reference) certainty {
	if _, d := s.resolve(r); d != nil {
		return unknown
	}
	_, n, rest := s.find(r.Path)
	switch {
	case n == nil:
		return certain
	case n.unknown:
		return unknown
	case !n.provisional:
		return certain
	case len(rest) == 0:
		return provisional
	}
	if v, ok := export(n.exports, rest[0]); ok && !v.IsZero() {
		return certain
	}
	return provisional
}

// variables returns the nodes that refs are to, as nested objects. All nodes
// of a large config would take longer than everything else.
func (s *Scope) variables(refs []Reference) *vm.Scope {
	var ids []string
	for _, r := range refs {
		if id, n, _ := s.find(r.Path); n != nil {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	root := maps.Clone(s.base)
	for _, id := range slices.Compact(ids) {
		n := s.nodes[id]
		if n.unknown {
			continue
		}
		parts := strings.Split(id, ".")
		obj := root
		for i, p := range parts[:len(parts)-1] {
			next, ok := obj[p].(map[string]any)
			if !ok {
				// The standard library has names that a component's namespace
				// may have too (string, file), and the ID of a node without a
				// label may be the beginning of another's.
				next = map[string]any{}
				if old, ok := obj[p]; ok {
					next = fields(old)
				} else if std, ok := stdlib(p); ok && i == 0 {
					next = fields(std)
				}
				obj[p] = next
			}
			obj = next
		}
		last := parts[len(parts)-1]
		if old, ok := obj[last].(map[string]any); ok {
			maps.Copy(old, fields(n.exports))
		} else {
			obj[last] = exported(n.exports)
		}
	}
	return vm.NewScope(root)
}

func exported(exports any) any {
	if exports == nil {
		return map[string]any{}
	}
	return exports
}

// fields returns the fields of an object as a new map.
func fields(obj any) map[string]any {
	m := map[string]any{}
	v := reflect.ValueOf(obj)
	for v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	switch v.Kind() {
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			m[it.Key().String()] = it.Value().Interface()
		}
	case reflect.Struct:
		for _, f := range tagged(v.Type()) {
			if fv, ok := f.in(v); ok && f.kind == attrField {
				m[f.name] = fv.Interface()
			}
		}
	}
	return m
}

// exportNames returns the names of what a node exports, in order.
func exportNames(exports any) (names []string) {
	t := reflect.TypeOf(exports)
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == nil || t.Kind() != reflect.Struct {
		return nil
	}
	for _, f := range tagged(t) {
		names = append(names, f.name)
	}
	return names
}

func export(exports any, name string) (reflect.Value, bool) {
	v := reflect.ValueOf(exports)
	for v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	if v.Kind() != reflect.Struct {
		return reflect.Value{}, false
	}
	for _, f := range tagged(v.Type()) {
		if f.name == name {
			return f.in(v)
		}
	}
	return reflect.Value{}, false
}

// WithReceiver returns a copy of a node's exports, a struct, with its field
// receiver set; exports itself when it has no such field.
func WithReceiver(exports any, r *flow.Receiver) any {
	v := reflect.ValueOf(exports)
	for v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	if v.Kind() != reflect.Struct {
		return exports
	}
	for _, f := range tagged(v.Type()) {
		if f.name == "receiver" && f.typ == reflect.TypeFor[*flow.Receiver]() {
			out := reflect.New(v.Type()).Elem()
			out.Set(v)
			f.at(out).Set(reflect.ValueOf(r))
			return out.Interface()
		}
	}
	return exports
}
