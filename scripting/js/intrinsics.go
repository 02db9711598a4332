package js

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/dop251/goja"
	"github.com/dop251/goja/unistring"
)

// An intrinsic is an object of the language's own: Array.prototype, Math. goja
// makes most of them, and what they have, when they are first looked at, from
// templates that all its runtimes share. A VM that looked at all of them to
// freeze them would take milliseconds and a megabyte. So what is frozen here is
// the templates: once, in copies that only our VMs get. What goja makes without
// a template is few, and frozen when a VM first meets it.
//
// goja has no door for this, so the fields of its objects are written to: see
// layout.go.

// frozen are the templates that VMs get, by goja's own and by the path of the
// object: Array.prototype.
var frozen = struct {
	mu        sync.Mutex
	templates map[*template]*template
}{templates: map[*template]*template{}}

// frozenTemplate returns the template with what makes frozen, wrapped
// properties.
func frozenTemplate(t *template, path string) *template {
	frozen.mu.Lock()
	defer frozen.mu.Unlock()
	if f, ok := frozen.templates[t]; ok {
		return f
	}
	f := *t
	f.names, f.props = nil, make(map[unistring.String]factory, len(t.props))
	for _, name := range t.names {
		at := join(path, name.String())
		if path == "" && !allowed[name.String()] {
			continue
		}
		f.names = append(f.names, name)
		create := t.props[name]
		f.props[name] = func(rt *goja.Runtime) goja.Value { return sandboxOf(rt).freezeValue(create(rt), at) }
	}
	f.symbols = maps.Clone(t.symbols)
	for sym, create := range t.symbols {
		at := join(path, symbolName(sym))
		f.symbols[sym] = func(rt *goja.Runtime) goja.Value { return sandboxOf(rt).freezeValue(create(rt), at) }
	}
	if t.proto != nil {
		f.proto = func(rt *goja.Runtime) *goja.Object {
			o := t.proto(rt)
			sandboxOf(rt).freeze(o, join(path, "__proto__"))
			return o
		}
	}
	frozen.templates[t] = &f
	frozen.templates[&f] = &f
	return &f
}

// join returns the path of a property. It is the same few paths in every VM.
func join(path, name string) string {
	if path == "" {
		return name
	}
	paths.RLock()
	p, ok := paths.known[[2]string{path, name}]
	paths.RUnlock()
	if !ok {
		p = path + "." + name
		if strings.HasPrefix(name, "[") {
			p = path + name
		}
		paths.Lock()
		paths.known[[2]string{path, name}] = p
		paths.Unlock()
	}
	return p
}

var paths = struct {
	sync.RWMutex
	known map[[2]string]string
}{known: map[[2]string]string{}}

// symbolName is what a path has for a symbol.
func symbolName(sym goja.Value) string { return "[" + sym.String() + "]" }

// canonical is the path of an object that a script may come by on several.
func canonical(path string) string {
	if p, ok := strings.CutSuffix(path, ".prototype.constructor"); ok {
		return p
	}
	switch path {
	case "String.prototype.trimLeft":
		return "String.prototype.trimStart"
	case "String.prototype.trimRight":
		return "String.prototype.trimEnd"
	}
	for _, end := range []string{"Array.__proto__", "Array.prototype.__proto__"} {
		if p, ok := strings.CutSuffix(path, end); ok && p != "" {
			return "Typed" + strings.TrimSuffix(end, ".__proto__")
		}
	}
	return path
}

// templated reports whether a property comes from the object's template.
func (s *sandbox) templated(o *goja.Object, name string) bool {
	t := *s.layout.template(o, s.layout.kindOf(o))
	return t.props[unistring.NewFromString(name)] != nil
}

// FieldNameMapper of a runtime is its sandbox: nothing that a script gets is
// reflected, and a template's factory knows nothing but the runtime.
func sandboxOf(rt *goja.Runtime) *sandbox { return (*theLayout().mapperOf(rt)).(*sandbox) }

// FieldName is there for goja.FieldNameMapper.
func (*sandbox) FieldName(reflect.Type, reflect.StructField) string { return "" }

// MethodName is there for goja.FieldNameMapper.
func (*sandbox) MethodName(reflect.Type, reflect.Method) string { return "" }

// freeze freezes an object and what it has, as far as it was made; what a
// template makes later comes frozen. Functions are wrapped.
func (s *sandbox) freeze(o *goja.Object, path string) {
	l := s.layout
	k := l.kindOf(o)
	if !k.base {
		return // the host's
	}
	b := (*base)(l.data(o))
	if !b.extensible {
		return // it was met already
	}
	b.extensible = false
	path = canonical(path)
	if p, ok := s.roots[o]; ok {
		path = p
	}
	if k.tmpl != 0 {
		tmpl := l.template(o, k)
		*tmpl = frozenTemplate(*tmpl, path)
		if path == "" { // the names may have been made, and what is not allowed
			gone := func(name unistring.String) bool {
				return (*tmpl).props[name] == nil && !s.own[name.String()]
			}
			b.propNames = slices.DeleteFunc(b.propNames, gone)
			maps.DeleteFunc(b.values, func(name unistring.String, _ goja.Value) bool { return gone(name) })
		}
	}
	if k.call != 0 {
		call, build := l.calls(o, k)
		*call, *build = s.wrap(path, *call, *build)
	}
	for name, v := range b.values {
		b.values[name] = s.freezeValue(v, join(path, name.String()))
	}
	if b.symbols != nil {
		for e := b.symbols.first; e != nil; e = e.next {
			e.value = s.freezeValue(e.value, join(path, symbolName(e.key)))
		}
	}
	if b.prototype != nil {
		s.freeze(b.prototype, join(path, "__proto__"))
	}
	s.hidden(path)
}

// freezeValue returns what a property has, frozen, and freezes what it leads to.
func (s *sandbox) freezeValue(v goja.Value, path string) goja.Value {
	p := s.layout.asProperty(v)
	if p == nil {
		if v == nil {
			return nil
		}
		p = &property{value: v, enumerable: true}
		v = s.layout.newProperty(*p)
		p = s.layout.asProperty(v)
	}
	// Objects that runtimes share are frozen already and must not be written to.
	if p.writable && !p.accessor {
		p.writable = false
	}
	if p.configurable {
		p.configurable = false
	}
	for _, x := range []goja.Value{p.value, p.getter, p.setter} {
		if o, ok := x.(*goja.Object); ok && o != nil {
			s.freeze(o, path)
		}
	}
	if overridden(path) && !p.accessor {
		s.assignable(p, path)
	}
	return v
}
