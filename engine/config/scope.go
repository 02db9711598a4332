package config

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/grafana/alloy/syntax/vm"
)

// Scope contains the names that expressions can refer to: the standard library,
// exports of nodes, and variables. The config, each instance of a declare and
// each item of a foreach have their own Scope. It is not safe for concurrent
// use, not even by Decode alone.
type Scope struct {
	parent *Scope // the enclosing scope that an item of a foreach can read too
	around *Scope // the enclosing scope that cannot be read, for hints
	prefix string // of the nodes that Resolve returns
	names  map[string]*entry
	base   map[string]any
	types  map[reflect.Type][]field // the results of tagged, for all scopes of a config
	lacks  Unsupported              // blocks that weir does not support, for hints
}

// tagged calls the function tagged and caches its results.
func (s *Scope) tagged(t reflect.Type) []field {
	fs, ok := s.types[t]
	if !ok {
		fs = tagged(t)
		s.types[t] = fs
	}
	return fs
}

// entry is the meaning of a name.
type entry struct {
	// node is the name that Resolve returns.
	node string
	// exports are the exports of a component, a struct or nil, or the value of a
	// variable.
	exports     any
	provisional bool
	err         error // why the value is unknown; with provisional, why only its type is known

	variable bool
	lazy     func() Value
	forcing  bool

	// object contains the fields of an instance. Each is a variable.
	object []string
	whole  bool // the reference is to the whole object
}

// Value is the value of a variable, as far as it is known.
type Value struct {
	V any
	// Provisional means that only the type of V is known.
	Provisional bool
	// Err is why the value is unknown: ErrUnknown, a Pending, or the Diagnostics
	// of the expression that failed. With Provisional, it is a Pending or nil.
	Err error
}

// ErrUnknown means that a value is unknown because of an error that was
// reported elsewhere.
var ErrUnknown = errors.New("it refers to something with a mistake")

// Pending describes what must exist before a value is known.
type Pending string

func (p Pending) Error() string { return "waits for " + string(p) }

// stdlibNames are the top-level names of alloy/syntax v0.1.1 that can be
// confused with components, without deprecated names.
var stdlibNames = []string{"array", "coalesce", "constants", "convert", "encoding", "file", "json_path", "string", "sys"}

// NewScope returns a scope in which the blocks with syntax errors are unknown.
// version is the value of constants.version, such as v1.2.3.
func (c *Config) NewScope(version string) *Scope {
	s := &Scope{names: map[string]*entry{}, base: map[string]any{}, types: map[reflect.Type][]field{}}
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

// SetEnv sets the function sys.env of s and of scopes derived from it.
func (s *Scope) SetEnv(getenv func(name string) string) {
	s.base["sys"] = map[string]any{"env": getenv}
	s.base["env"] = getenv // the old name
}

// SetUnsupported sets the blocks that weir does not support, for hints of s and
// of scopes derived from it.
func (s *Scope) SetUnsupported(u Unsupported) { s.lacks = u }

// Apart returns an empty scope that shares only the standard library with s.
// Resolve returns its nodes with prefix before their IDs.
func (s *Scope) Apart(prefix string) *Scope {
	return &Scope{around: s, prefix: prefix, names: map[string]*entry{}, base: s.base, types: s.types, lacks: s.lacks}
}

// Within is like Apart, but names that the scope does not define are looked up
// in s.
func (s *Scope) Within(prefix string) *Scope {
	return &Scope{parent: s, prefix: prefix, names: map[string]*entry{}, base: s.base, types: s.types, lacks: s.lacks}
}

// outside returns the scope around the declare that contains s, or nil if there
// is none.
func (s *Scope) outside() *Scope {
	for s.parent != nil {
		s = s.parent
	}
	return s.around
}

// Set adds a node with its exports: a struct or a pointer to a struct with
// alloy tags, or nil if it exports nothing.
func (s *Scope) Set(id string, exports any) { s.set(id, entry{exports: exports}) }

// SetProvisional adds a node that has not been built. The fields of exports
// that are not zero, such as receiver, are known. Of the other fields, only the
// type is known.
func (s *Scope) SetProvisional(id string, exports any) {
	s.set(id, entry{exports: exports, provisional: true})
}

// Exports returns the exports of a node, as they were set.
func (s *Scope) Exports(id string) any {
	if n := s.names[id]; n != nil {
		return n.exports
	}
	return nil
}

// SetWaiting is like SetProvisional, with the reason why the node is not built
// yet.
func (s *Scope) SetWaiting(id string, exports any, why Pending) {
	s.set(id, entry{exports: exports, provisional: true, err: why})
}

// SetUnknown adds a node whose exports are unknown because of an error that was
// reported elsewhere. References to it are not decoded and are not errors.
func (s *Scope) SetUnknown(id string) { s.set(id, entry{err: ErrUnknown}) }

// SetPending is like SetUnknown, for a node whose exports will be known later.
func (s *Scope) SetPending(id string, why Pending) { s.set(id, entry{err: why}) }

// SetObject adds a node whose exports are variables. Each variable is named id
// and a field, and is set with SetVariable. A reference to the whole node
// refers to all of them.
func (s *Scope) SetObject(id string, fields []string) {
	s.set(id, entry{object: fields, whole: true})
}

// SetVariable sets the value of a name such as argument.url.value. node is the
// name that Resolve returns for it, or "" for a constant.
func (s *Scope) SetVariable(name, node string, v Value) {
	s.names[name] = &entry{node: node, variable: true, exports: v.V, provisional: v.Provisional, err: v.Err}
}

// SetLazy is like SetVariable, but value is called when the value is needed. A
// value that depends on itself is unknown.
func (s *Scope) SetLazy(name, node string, value func() Value) {
	s.names[name] = &entry{node: node, variable: true, lazy: value}
}

// Variable returns the value of a variable, or why it is unknown.
func (s *Scope) Variable(name string) Value {
	n := s.names[name]
	if n == nil {
		return Value{Err: ErrUnknown}
	}
	n.force()
	return Value{V: n.exports, Provisional: n.provisional, Err: n.err}
}

// Has reports whether a node has been set.
func (s *Scope) Has(id string) bool { return s.names[id] != nil }

func (s *Scope) set(id string, n entry) {
	n.node = s.prefix + id
	s.names[id] = &n
}

func (n *entry) force() {
	switch {
	case n.forcing: // it depends on itself, which the graph reports
		n.err = ErrUnknown
	case n.lazy != nil:
		n.forcing = true
		v := n.lazy()
		n.exports, n.provisional, n.err, n.forcing = v.V, v.Provisional, v.Err, false
		if _, pending := v.Err.(Pending); !pending {
			n.lazy = nil
		}
	}
}

// unknown reports whether nothing about the value is known.
func (n *entry) unknown() bool { return n.err != nil && !n.provisional }

// ids returns the names that a reference can begin with.
func (s *Scope) ids() (ids []string) {
	for ; s != nil; s = s.parent {
		for id, n := range s.names {
			if (!n.variable || !strings.Contains(id, ".")) && !strings.Contains(id, aside) {
				ids = append(ids, id)
			}
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

func stdlib(name string) (any, bool) { return (*vm.Scope)(nil).Lookup(name) }

// find finds the longest prefix of a reference that is a name. It returns that
// name, its scope and entry, and the rest of the path.
func (s *Scope) find(r *Reference) (id string, in *Scope, n *entry, rest []string) {
	for ; s != nil; s = s.parent {
		id := r.name
		for i := len(r.Path); i > 0; i-- {
			if n := s.names[id]; n != nil {
				return id, s, n, r.Path[i:]
			}
			if i > 1 {
				id = id[:len(id)-len(r.Path[i-1])-1]
			}
		}
	}
	return "", nil, nil, nil
}

// fieldsOf returns the variables of an object.
func (s *Scope) fieldsOf(id string, n *entry) (vars map[string]*entry) {
	vars = map[string]*entry{}
	for _, f := range n.object {
		if v := s.names[id+"."+f]; v != nil {
			vars[f] = v
		}
	}
	return vars
}

// resolve returns the nodes that r refers to, or the error in r. It returns no
// nodes if r refers to the standard library or a constant.
func (s *Scope) resolve(r Reference) (nodes []string, d *Diagnostic) {
	id, in, n, rest := s.find(&r)
	switch {
	case n == nil:
		std, ok := stdlib(r.Path[0])
		switch {
		case !ok:
			return nil, s.unknown(r)
		case len(r.Path) > 1 && reflect.TypeOf(std).Kind() == reflect.Map && !reflect.ValueOf(std).MapIndex(reflect.ValueOf(r.Path[1])).IsValid():
			return nil, unknownFunction(r)
		}
		return nil, nil
	case n.whole && len(rest) == 0:
		vars := in.fieldsOf(id, n)
		for _, f := range n.object {
			if v := vars[f]; v != nil && v.node != "" {
				nodes = append(nodes, v.node)
			}
		}
		return nodes, nil
	case n.node == "" && n.variable:
		return nil, nil
	case n.variable || n.unknown() || len(rest) == 0:
		return []string{n.node}, nil
	}
	exports := n.object
	if !n.whole {
		exports = exportNames(n.exports)
	}
	if slices.Contains(exports, rest[0]) {
		return []string{n.node}, nil
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
	return []string{n.node}, d
}

// certainty describes how much is known of a reference's value.
type certainty uint8

const (
	certain     certainty = iota
	provisional           // its type is known, but not its value
	unknown               // nothing is known, or it has an error
)

func (s *Scope) certainty(r Reference) certainty {
	c, _ := s.lookupKnown(r)
	return c
}

// lookupKnown returns how much is known of a reference's value, and why not
// more.
func (s *Scope) lookupKnown(r Reference) (certainty, error) {
	if _, d := s.resolve(r); d != nil {
		return unknown, ErrUnknown
	}
	id, in, n, rest := s.find(&r)
	if n == nil {
		return certain, nil
	}
	if n.whole {
		all := certain
		for _, v := range in.fieldsOf(id, n) {
			if v.force(); v.unknown() {
				return unknown, v.err
			}
			if v.provisional {
				all = provisional
			}
		}
		return all, nil
	}
	n.force()
	switch {
	case n.unknown():
		return unknown, n.err
	case !n.provisional:
		return certain, nil
	case len(rest) == 0 || n.variable:
		return provisional, n.err
	}
	if v, ok := export(n.exports, rest[0]); ok && !v.IsZero() {
		return certain, nil
	}
	return provisional, n.err
}

// variables returns the values that refs refer to, as nested objects. Including
// all nodes of a large config would take longer than everything else.
func (s *Scope) variables(refs []Reference) *vm.Scope {
	if len(refs) == 0 {
		return vm.NewScope(s.base)
	}
	o := objects{root: maps.Clone(s.base), own: map[string]bool{}}
	var done []string
	for _, r := range refs {
		id, in, n, _ := s.find(&r)
		if n == nil || slices.Contains(done, id) {
			continue
		}
		done = append(done, id)
		switch n.force(); {
		case n.whole:
			obj := map[string]any{}
			for f, v := range in.fieldsOf(id, n) {
				if v.force(); !v.unknown() {
					obj[f] = v.exports
				}
			}
			o.place(id, obj)
		case n.unknown():
		case n.exports == nil && !n.variable:
			o.place(id, map[string]any{})
		default:
			o.place(id, n.exports)
		}
	}
	return vm.NewScope(o.root)
}
