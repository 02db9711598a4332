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

// An intrinsic is a built-in object, such as Array.prototype or Math. goja
// creates most of them and their properties on first use, from templates that
// all its runtimes share. Creating all of them in each VM to freeze them would
// take milliseconds and a megabyte. Therefore, the templates are frozen: once,
// in copies that only the VMs of weir use. The few objects that goja creates
// without a template are frozen when a VM first reaches them.
//
// goja has no API for this, so the fields of its objects are written directly;
// see layout.go.

// frozen contains the templates for VMs, by goja's template and by the path of
// the object, such as Array.prototype.
var frozen = struct {
	mu        sync.Mutex
	templates map[*template]*template
}{templates: map[*template]*template{}}

// frozenTemplate returns the template with its properties frozen and wrapped.
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

// join returns the path of a property. The same few paths occur in every VM.
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

// symbolName returns the name of a symbol in a path.
func symbolName(sym goja.Value) string { return "[" + sym.String() + "]" }

// canonical returns the path of an object that is reachable on several paths.
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

// The FieldNameMapper of a runtime is its sandbox. It is not needed otherwise,
// because scripts get no reflected values, and a template's factory has access
// to the runtime only.
func sandboxOf(rt *goja.Runtime) *sandbox { return (*theLayout().mapperOf(rt)).(*sandbox) }

// FieldName implements goja.FieldNameMapper.
func (*sandbox) FieldName(reflect.Type, reflect.StructField) string { return "" }

// MethodName implements goja.FieldNameMapper.
func (*sandbox) MethodName(reflect.Type, reflect.Method) string { return "" }

// freeze freezes an object and its existing properties. Properties that a
// template creates later are already frozen. Functions are wrapped.
func (s *sandbox) freeze(o *goja.Object, path string) {
	l := s.layout
	k := l.kindOf(o)
	if !k.base {
		return // a host object
	}
	b := (*base)(l.data(o))
	if !b.extensible {
		return // it was already processed
	}
	b.extensible = false
	path = canonical(path)
	if p, ok := s.roots[o]; ok {
		path = p
	}
	if k.tmpl != 0 {
		tmpl := l.template(o, k)
		*tmpl = frozenTemplate(*tmpl, path)
		if path == "" { // names may have been created, including disallowed ones
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

// freezeValue returns the frozen value of a property, and freezes everything
// that is reachable from it.
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
	// Objects that runtimes share are already frozen and must not be written to.
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
