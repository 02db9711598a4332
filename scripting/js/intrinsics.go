package js

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"unsafe"

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
// goja has no door for this, so the fields of its objects are written to, by
// offsets that are found by name; theLayout panics when one is gone. No script is
// read then (see boundable): none could be kept in its bounds.

// factory makes what a property of a template has.
type factory = func(*goja.Runtime) goja.Value

// property is goja's valueProperty.
type property struct {
	value                                        goja.Value
	writable, configurable, enumerable, accessor bool
	getter, setter                               *goja.Object
}

// base is how goja's baseObject begins, which every object does.
type base struct {
	class      string
	val        *goja.Object
	prototype  *goja.Object
	extensible bool
	values     map[unistring.String]goja.Value
	propNames  []unistring.String
	_          [2]int
	symbols    *ordered
}

// ordered is how goja's orderedMap is laid out, and entry its mapEntry.
type (
	ordered struct {
		_     uintptr
		_     map[uint64]*entry
		first *entry
	}
	entry struct {
		key, value goja.Value
		_, next    *entry
	}
)

// template is goja's objectTemplate.
type template struct {
	names   []unistring.String
	props   map[unistring.String]factory
	symbols map[*goja.Symbol]factory
	_       []*goja.Symbol
	proto   func(*goja.Runtime) *goja.Object
}

type (
	nativeFunc    = func(goja.FunctionCall) goja.Value
	constructFunc = func(args []goja.Value, newTarget *goja.Object) *goja.Object
)

// gojaLayout is where the fields of goja's types are.
type gojaLayout struct {
	self     uintptr      // in Object, of an interface
	mapper   uintptr      // in Runtime
	property reflect.Type // valueProperty

	mu    sync.RWMutex
	kinds map[unsafe.Pointer]*kind // by the type's word in that interface
}

// kind is what an object is to the host.
type kind struct {
	name        string
	base        bool // it begins with a base
	tmpl        uintptr
	call, build uintptr // of a native function; 0: it is none
	array       bool    // a list, whose length nobody computes
	buffer      bool    // of bytes, whose size was bounded when it was made
	plain       bool    // an object with nothing but properties
	target      uintptr // of a Proxy, the object behind it; of a bound function, the function; 0: it is neither
}

var theLayout = sync.OnceValue(func() *gojaLayout {
	l := &gojaLayout{kinds: map[unsafe.Pointer]*kind{}}
	l.self = l.offset(reflect.TypeFor[goja.Object](), "self")
	l.mapper = l.offset(reflect.TypeFor[goja.Runtime](), "fieldNameMapper")
	rt := goja.New()
	array, pattern := rt.Get("Array").(*goja.Object), rt.Get("RegExp").(*goja.Object)
	f := func(o goja.Value, name string, tmpl, call bool) {
		k := l.kindOf(o.(*goja.Object))
		if k.name != name || !k.base || (k.tmpl != 0) != tmpl || (k.call != 0) != call {
			panic(fmt.Sprintf("BUG: goja makes %s in another way: look at how it is frozen", name))
		}
	}
	f(rt.GlobalObject(), "templatedObject", true, false)
	f(rt.Get("Date"), "templatedFuncObject", true, true)
	f(array.Get("prototype"), "templatedArrayObject", true, false)
	f(array, "nativeFuncObject", false, true)
	f(pattern.Get("prototype"), "guardedObject", false, false)
	f(rt.NewArray(), "arrayObject", false, false)
	for src, name := range map[string]string{
		"new Proxy({}, {})": "proxyObject", "(() => 1).bind()": "boundFuncObject", "new Map()": "mapObject", "new Set()": "setObject", "new String()": "stringObject",
	} {
		v, err := rt.RunString(src)
		if err != nil {
			panic(fmt.Sprintf("BUG: cannot make %s: %v", name, err))
		}
		if k := l.kindOf(v.(*goja.Object)); k.name != name {
			panic(fmt.Sprintf("BUG: goja makes %s in another way: look at how values are read", name))
		}
	}
	nan := (*base)(l.data(rt.GlobalObject())).values["NaN"]
	if nan == nil {
		rt.GlobalObject().Get("NaN")
		nan = (*base)(l.data(rt.GlobalObject())).values["NaN"]
	}
	l.property = reflect.TypeOf(nan).Elem()
	l.same(reflect.TypeFor[property](), l.property, map[string]string{"getter": "getterFunc", "setter": "setterFunc"})
	return l
})

// boundable says why scripts cannot be bounded with this goja, nil if they can.
var boundable = sync.OnceValue(func() error {
	return layoutError(func() {
		theLayout()
		thePatternLayout()
	})
})

// layoutError is the panic of what looks at how goja is laid out.
func layoutError(look func()) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("cannot run JavaScript, which this build of weir could not keep in its bounds: %v", v)
		}
	}()
	look()
	return nil
}

// kindOf returns what o is.
func (l *gojaLayout) kindOf(o *goja.Object) *kind {
	word := (*[2]unsafe.Pointer)(unsafe.Add(unsafe.Pointer(o), l.self))[0]
	l.mu.RLock()
	k := l.kinds[word]
	l.mu.RUnlock()
	if k == nil {
		k = l.newKind(reflect.ValueOf(o).Elem().FieldByName("self").Elem().Type())
		l.mu.Lock()
		l.kinds[word] = k
		l.mu.Unlock()
	}
	return k
}

// newKind looks at a type that is the data of objects.
func (l *gojaLayout) newKind(t reflect.Type) *kind {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	k := &kind{name: t.Name()}
	switch k.name {
	case "arrayObject", "sparseArrayObject":
		k.array = true
	case "typedArrayObject", "arrayBufferObject":
		k.buffer = true
	case "baseObject", "argumentsObject":
		k.plain = true
	case "proxyObject":
		k.target = l.offset(t, "target")
	case "boundFuncObject":
		k.target = l.offset(t, "wrapped")
	}
	for at := t; at.Kind() == reflect.Struct && at.NumField() > 0; at = at.Field(0).Type {
		if k.base = at.Name() == "baseObject"; k.base {
			l.same(reflect.TypeFor[base](), at, map[string]string{"symbols": "symValues"})
			symbols := l.field(at, "symValues").Type.Elem()
			l.same(reflect.TypeFor[ordered](), symbols, map[string]string{"first": "iterFirst"})
			l.same(reflect.TypeFor[entry](), l.field(symbols, "iterFirst").Type.Elem(), map[string]string{"next": "iterNext"})
			break
		}
	}
	if !k.base {
		return k
	}
	if f, ok := t.FieldByName("tmpl"); ok {
		k.tmpl = l.offset(t, "tmpl")
		l.same(reflect.TypeFor[template](), f.Type.Elem(), map[string]string{"names": "propNames", "symbols": "symProps", "proto": "protoFactory"})
	}
	if _, ok := t.FieldByName("construct"); ok {
		k.call, k.build = l.offset(t, "f"), l.offset(t, "construct")
	}
	return k
}

// behind is what a Proxy or a bound function stands for, nil of a revoked Proxy.
func (l *gojaLayout) behind(o *goja.Object, k *kind) *goja.Object {
	return *(**goja.Object)(unsafe.Add(l.data(o), k.target))
}

func (l *gojaLayout) field(t reflect.Type, name string) reflect.StructField {
	f, ok := t.FieldByName(name)
	if !ok {
		l.gone(t, name)
	}
	return f
}

// offset is that of a field, which embedded structs may have.
func (l *gojaLayout) offset(t reflect.Type, name string) uintptr {
	at := uintptr(0)
	for _, i := range l.field(t, name).Index {
		f := t.Field(i)
		at, t = at+f.Offset, f.Type
	}
	return at
}

// same makes sure that the named fields of ours are where theirs are, and as large.
func (l *gojaLayout) same(ours, theirs reflect.Type, names map[string]string) {
	for i := range ours.NumField() {
		f := ours.Field(i)
		if f.Name == "_" {
			continue
		}
		name := f.Name
		if n, ok := names[name]; ok {
			name = n
		}
		if g := l.field(theirs, name); g.Offset != f.Offset || g.Type.Size() != f.Type.Size() || g.Type.Kind() != f.Type.Kind() {
			l.gone(theirs, name)
		}
	}
}

func (*gojaLayout) gone(t reflect.Type, what string) {
	panic(fmt.Sprintf("BUG: goja's %s has no %s any more: look at how it is frozen", t, what))
}

// data is where what o is lies.
func (l *gojaLayout) data(o *goja.Object) unsafe.Pointer {
	return (*[2]unsafe.Pointer)(unsafe.Add(unsafe.Pointer(o), l.self))[1]
}

// asProperty returns what v is when it is more than a plain value, else nil.
func (l *gojaLayout) asProperty(v goja.Value) *property {
	if v == nil || reflect.TypeOf(v) != reflect.PointerTo(l.property) {
		return nil
	}
	return (*property)((*[2]unsafe.Pointer)(unsafe.Pointer(&v))[1])
}

// newProperty makes a property that cannot be changed.
func (l *gojaLayout) newProperty(p property) goja.Value {
	v := reflect.New(l.property)
	*(*property)(v.UnsafePointer()) = p
	return v.Interface().(goja.Value)
}

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
		make := t.props[name]
		f.props[name] = func(rt *goja.Runtime) goja.Value { return sandboxOf(rt).freezeValue(make(rt), at) }
	}
	f.symbols = maps.Clone(t.symbols)
	for sym, make := range t.symbols {
		at := join(path, symbolName(sym))
		f.symbols[sym] = func(rt *goja.Runtime) goja.Value { return sandboxOf(rt).freezeValue(make(rt), at) }
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
	for _, end := range []string{"Array.__proto__", "Array.prototype.__proto__"} {
		if p, ok := strings.CutSuffix(path, end); ok && p != "" {
			return "Typed" + strings.TrimSuffix(end, ".__proto__")
		}
	}
	return path
}

// templated reports whether a property comes from the object's template.
func (s *sandbox) templated(o *goja.Object, name string) bool {
	t := *(**template)(unsafe.Add(s.layout.data(o), s.layout.kindOf(o).tmpl))
	return t.props[unistring.NewFromString(name)] != nil
}

// FieldNameMapper of a runtime is its sandbox: nothing that a script gets is
// reflected, and a template's factory knows nothing but the runtime.
func sandboxOf(rt *goja.Runtime) *sandbox {
	return (*(*goja.FieldNameMapper)(unsafe.Add(unsafe.Pointer(rt), theLayout().mapper))).(*sandbox)
}

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
	data := l.data(o)
	b := (*base)(data)
	if !b.extensible {
		return // it was met already
	}
	b.extensible = false
	path = canonical(path)
	if p, ok := s.roots[o]; ok {
		path = p
	}
	if k.tmpl != 0 {
		tmpl := (**template)(unsafe.Add(data, k.tmpl))
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
		call := (*nativeFunc)(unsafe.Add(data, k.call))
		build := (*constructFunc)(unsafe.Add(data, k.build))
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
	// What is shared between runtimes is frozen already, and not written to.
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
