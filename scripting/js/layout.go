package js

import (
	"fmt"
	"log/slog"
	"reflect"
	"regexp"
	"sync"
	"unsafe"

	"github.com/dop251/goja"
	"github.com/dop251/goja/unistring"

	"github.com/weir-run/weir/engine/golayout"
)

// This file contains all copies of goja's private layouts. Before the first
// script is compiled, fields are found by name and compared with the copies.
// Most of them are needed to enforce the limits of scripts; if one of these
// differs, no script is compiled (see boundable). The others are hosted and the
// type words of values; if they differ, scripts run more slowly.

// factory creates the value of a template's property.
type factory = func(*goja.Runtime) goja.Value

// property mirrors goja's valueProperty.
type property struct {
	value                                        goja.Value
	writable, configurable, enumerable, accessor bool
	getter, setter                               *goja.Object
}

// base mirrors the beginning of goja's baseObject, with which every object
// begins.
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

// ordered mirrors goja's orderedMap, and entry its mapEntry.
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

// template mirrors goja's objectTemplate.
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

// gojaLayout contains the offsets of fields in goja's types.
type gojaLayout struct {
	self     uintptr      // in Object, of an interface
	mapper   uintptr      // in Runtime
	property reflect.Type // valueProperty

	mu    sync.RWMutex
	kinds map[unsafe.Pointer]*kind // by the type's word in that interface
}

// kind describes a type of object.
type kind struct {
	name        string
	base        bool // it begins with a base
	tmpl        uintptr
	call, build uintptr // of a native function; 0 for any other object
	array       bool    // a list with a stored length
	items       uintptr // of a list with all items in a slice: the slice; 0 for any other object
	buffer      bool    // of bytes; its size was limited at creation
	plain       bool    // an object with properties only
	target      uintptr // the object behind a Proxy, or the function of a bound function; 0 for any other object
}

var theLayout = sync.OnceValue(func() *gojaLayout {
	l := &gojaLayout{kinds: map[unsafe.Pointer]*kind{}}
	l.self = l.offset(reflect.TypeFor[goja.Object](), "self")
	l.mapper = l.offset(reflect.TypeFor[goja.Runtime](), "fieldNameMapper")
	l.kind(reflect.TypeFor[goja.Object](), "self", reflect.Interface)
	l.kind(reflect.TypeFor[goja.Runtime](), "fieldNameMapper", reflect.Interface)
	l.field(l.field(reflect.TypeFor[goja.Runtime](), "vm").Type.Elem(), "interruptVal") // omitted by walkers
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

// boundable returns why this build of weir cannot run JavaScript, or nil if it
// can.
var boundable = sync.OnceValue(func() error {
	err := layoutError(golayout.CheckInterfaces, golayout.CheckContainers, func() error {
		theLayout()
		thePatternLayout()
		return nil
	})
	switch {
	case err != nil:
		slog.Error(err.Error())
	case objectTab == nil || arrayTab == nil || intTab == nil:
		slog.Warn("JavaScript runs more slowly: this build of weir has a version of goja that it does not support")
	}
	return err
})

// layoutError returns the error, or the panic, of layout checks.
func layoutError(checks ...func() error) error {
	for _, check := range checks {
		if err := golayout.Guard(check); err != nil {
			return fmt.Errorf("cannot run JavaScript, because this build of weir could not limit what scripts take: %w; install a released build", err)
		}
	}
	return nil
}

// kindOf returns the kind of o.
func (l *gojaLayout) kindOf(o *goja.Object) *kind {
	word := l.interfaceOf(o).Type
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

// newKind inspects a type that contains the data of objects.
func (l *gojaLayout) newKind(t reflect.Type) *kind {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	k := &kind{name: t.Name()}
	switch k.name {
	case "arrayObject":
		if l.field(t, "values").Type != reflect.TypeFor[[]goja.Value]() {
			l.reportMissing(t, "values")
		}
		k.array, k.items = true, l.offset(t, "values")
	case "sparseArrayObject":
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
			l.named(l.field(symbols, "iterFirst").Type.Elem(), "mapEntry")
			l.same(reflect.TypeFor[entry](), l.field(symbols, "iterFirst").Type.Elem(), map[string]string{"next": "iterNext"})
			break
		}
	}
	if !k.base {
		return k
	}
	if f, ok := t.FieldByName("tmpl"); ok {
		k.tmpl = l.offset(t, "tmpl")
		l.named(f.Type.Elem(), "objectTemplate")
		l.same(reflect.TypeFor[template](), f.Type.Elem(), map[string]string{"names": "propNames", "symbols": "symProps", "proto": "protoFactory"})
	}
	if _, ok := t.FieldByName("construct"); ok {
		k.call, k.build = l.offset(t, "f"), l.offset(t, "construct")
	}
	return k
}

// targetOf returns the target of a Proxy or a bound function, or nil for a
// revoked Proxy.
func (l *gojaLayout) targetOf(o *goja.Object, k *kind) *goja.Object {
	return *(**goja.Object)(unsafe.Add(l.data(o), k.target))
}

// items returns the items of a list, or nil for any other object. They are
// valid until the list changes.
func (l *gojaLayout) items(o *goja.Object) []goja.Value {
	k := l.kindOf(o)
	if k.items == 0 {
		return nil
	}
	return *(*[]goja.Value)(unsafe.Add(l.data(o), k.items))
}

func (l *gojaLayout) field(t reflect.Type, name string) reflect.StructField {
	f, ok := t.FieldByName(name)
	if !ok {
		l.reportMissing(t, name)
	}
	return f
}

// offset returns the offset of a field, including fields of embedded structs.
func (l *gojaLayout) offset(t reflect.Type, name string) uintptr {
	at := uintptr(0)
	for _, i := range l.field(t, name).Index {
		f := t.Field(i)
		at, t = at+f.Offset, f.Type
	}
	return at
}

// same checks that the named fields of ours have the same offsets and sizes as
// in theirs.
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
			l.reportMissing(theirs, name)
		}
	}
}

// kind checks the kind of a field.
func (l *gojaLayout) kind(t reflect.Type, name string, k reflect.Kind) {
	if l.field(t, name).Type.Kind() != k {
		l.reportMissing(t, name)
	}
}

// named checks a type name that a walker uses.
func (l *gojaLayout) named(t reflect.Type, name string) {
	if t.Name() != name {
		l.reportMissing(t, name)
	}
}

func (*gojaLayout) reportMissing(t reflect.Type, what string) {
	panic(fmt.Sprintf("BUG: goja's %s has no %s any more: look at layout.go", t, what))
}

func (l *gojaLayout) interfaceOf(o *goja.Object) *golayout.Interface {
	return (*golayout.Interface)(unsafe.Add(unsafe.Pointer(o), l.self))
}

// data returns the address of the data of o.
func (l *gojaLayout) data(o *goja.Object) unsafe.Pointer { return l.interfaceOf(o).Data }

// template returns the template of an object whose kind has one.
func (l *gojaLayout) template(o *goja.Object, k *kind) **template {
	return (**template)(unsafe.Add(l.data(o), k.tmpl))
}

// calls returns the functions that implement a call and a new of a native
// function.
func (l *gojaLayout) calls(o *goja.Object, k *kind) (*nativeFunc, *constructFunc) {
	return (*nativeFunc)(unsafe.Add(l.data(o), k.call)), (*constructFunc)(unsafe.Add(l.data(o), k.build))
}

// mapperOf returns the FieldNameMapper of a runtime.
func (l *gojaLayout) mapperOf(rt *goja.Runtime) *goja.FieldNameMapper {
	return (*goja.FieldNameMapper)(unsafe.Add(unsafe.Pointer(rt), l.mapper))
}

// asProperty returns v as a property, or nil if it is a plain value.
func (l *gojaLayout) asProperty(v goja.Value) *property {
	if v == nil || reflect.TypeOf(v) != reflect.PointerTo(l.property) {
		return nil
	}
	return (*property)((*golayout.Interface)(unsafe.Pointer(&v)).Data)
}

// newProperty creates a read-only property.
func (l *gojaLayout) newProperty(p property) goja.Value {
	v := reflect.New(l.property)
	*(*property)(v.UnsafePointer()) = p
	return v.Interface().(goja.Value)
}

// patternLayout contains the offsets of fields in goja's regexpObject.
type patternLayout struct {
	pattern, standard   uintptr // in regexpObject
	re2, global, sticky uintptr // in regexpPattern
}

var thePatternLayout = sync.OnceValue(func() *patternLayout {
	l := theLayout()
	rt := goja.New()
	o, err := rt.New(rt.Get("RegExp"), rt.ToValue("x"))
	if err != nil {
		panic(fmt.Sprintf("BUG: cannot make a pattern: %v", err))
	}
	return l.patternLayout(reflect.ValueOf(o).Elem().FieldByName("self").Elem().Type().Elem())
})

// patternLayout inspects a regexpObject.
func (l *gojaLayout) patternLayout(t reflect.Type) *patternLayout {
	l.kind(t, "pattern", reflect.Pointer)
	l.kind(t, "standard", reflect.Bool)
	pattern := l.field(t, "pattern").Type.Elem()
	l.kind(pattern, "global", reflect.Bool)
	l.kind(pattern, "sticky", reflect.Bool)
	l.kind(pattern, "regexpWrapper", reflect.Pointer)
	if re2 := l.field(pattern, "regexpWrapper"); !re2.Type.Elem().ConvertibleTo(reflect.TypeFor[regexp.Regexp]()) {
		l.reportMissing(pattern, "regexp.Regexp")
	}
	return &patternLayout{
		pattern: l.offset(t, "pattern"), standard: l.offset(t, "standard"),
		re2: l.offset(pattern, "regexpWrapper"), global: l.offset(pattern, "global"), sticky: l.offset(pattern, "sticky"),
	}
}

// pattern is a regexpObject.
type pattern struct{ object, pattern unsafe.Pointer }

func (l *gojaLayout) pattern(o *goja.Object) pattern {
	p := l.data(o)
	return pattern{p, *(*unsafe.Pointer)(unsafe.Add(p, thePatternLayout().pattern))}
}

func (p pattern) standard() *bool { return (*bool)(unsafe.Add(p.object, thePatternLayout().standard)) }

func (p pattern) re2() *regexp.Regexp {
	return *(**regexp.Regexp)(unsafe.Add(p.pattern, thePatternLayout().re2))
}

func (p pattern) global() bool { return *(*bool)(unsafe.Add(p.pattern, thePatternLayout().global)) }
func (p pattern) sticky() bool { return *(*bool)(unsafe.Add(p.pattern, thePatternLayout().sticky)) }

// objectHead mirrors goja.Object.
type objectHead struct {
	self    golayout.Interface // on an objectBody, if Type is objectTab or arrayTab
	runtime *goja.Runtime
}

// objectBody mirrors goja's dynamic objects and arrays.
type objectBody struct {
	val, prototype *goja.Object
	host           golayout.Interface // a DynamicObject or a DynamicArray
}

// The type words of goja's interface on its dynamic objects and arrays. If they
// are nil, goja creates such objects.
var objectTab, arrayTab = hostedTabs()

// hostedTabs compares hosted with goja's structs.
func hostedTabs() (object, array unsafe.Pointer) {
	_ = golayout.Guard(func() error { // on error, goja creates them
		o, a := engine.NewDynamicObject(&box{}), engine.NewDynamicArray(nil)
		if golayout.CheckInterfaces() == nil && mirrors(o, reflect.TypeFor[goja.DynamicObject]()) && mirrors(a, reflect.TypeFor[goja.DynamicArray]()) {
			object, array = (*objectHead)(unsafe.Pointer(o)).self.Type, (*objectHead)(unsafe.Pointer(a)).self.Type
		}
		return nil
	})
	return object, array
}

// mirrors reports whether o has the layout of hosted, with the host as an
// interface of the given type.
func mirrors(o *goja.Object, host reflect.Type) bool {
	var h hosted
	var val *goja.Object
	head := reflect.TypeFor[goja.Object]()
	self, ok := head.FieldByName("self")
	if !ok || self.Type.Kind() != reflect.Interface || self.Type.NumMethod() == 0 || head.NumField() != 2 || head.Size() != unsafe.Sizeof(h.object) ||
		!fieldAt(head, "self", unsafe.Offsetof(h.object.self), self.Type) || !fieldAt(head, "runtime", unsafe.Offsetof(h.object.runtime), reflect.TypeOf(engine)) {
		return false
	}
	impl := reflect.ValueOf(o).Elem().FieldByName("self").Elem().Type()
	if impl.Kind() != reflect.Pointer || impl.Elem().Kind() != reflect.Struct {
		return false
	}
	body := impl.Elem()
	return body.NumField() == 2 && body.Size() == unsafe.Sizeof(h.body) && body.Field(0).Type.NumField() == 2 &&
		fieldAt(body, "val", unsafe.Offsetof(h.body.val), reflect.TypeOf(val)) && fieldAt(body, "prototype", unsafe.Offsetof(h.body.prototype), reflect.TypeOf(val)) &&
		body.Field(1).Offset == unsafe.Offsetof(h.body.host) && body.Field(1).Type == host
}

// fieldAt reports whether a struct has a field at an offset, including fields
// of a struct embedded at its start.
func fieldAt(t reflect.Type, name string, offset uintptr, is reflect.Type) bool {
	f, ok := t.FieldByName(name)
	return ok && f.Offset == offset && f.Type == is
}

// The type words of interfaces on goja's primitive values. All are nil if one
// of the layouts differs.
var intTab, floatTab, asciiTab, boolTab = tabs()

func tabs() (ints, floats, texts, bools unsafe.Pointer) {
	i, f, s, b := engine.ToValue(1000), engine.ToValue(1.5), engine.ToValue("x"), engine.ToValue(true)
	kind := func(x goja.Value) reflect.Kind { return reflect.TypeOf(x).Kind() }
	if golayout.CheckInterfaces() != nil || kind(i) != reflect.Int64 || kind(f) != reflect.Float64 || kind(s) != reflect.String || kind(b) != reflect.Bool {
		return nil, nil, nil, nil
	}
	return tabOf(i), tabOf(f), tabOf(s), tabOf(b)
}

func tabOf(x goja.Value) unsafe.Pointer { return (*golayout.Interface)(unsafe.Pointer(&x)).Type }
