package js

import (
	"fmt"
	"strconv"

	"github.com/dop251/goja"

	"github.com/weir-run/weir/scripting"
)

// method adds a method to o.
func (v *vm) method(o *goja.Object, name string, fn func(goja.FunctionCall) goja.Value) {
	v.must(o.DefineDataProperty(name, v.function1(name, fn), goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_TRUE))
}

// function1 creates a function with a name.
func (v *vm) function1(name string, fn func(goja.FunctionCall) goja.Value) *goja.Object {
	f := v.rt.ToValue(fn).(*goja.Object)
	v.must(f.DefineDataProperty("name", v.rt.ToValue(name), goja.FLAG_FALSE, goja.FLAG_FALSE, goja.FLAG_FALSE))
	return f
}

// freeze makes an object read-only.
func (v *vm) freeze(o *goja.Object) *goja.Object {
	_, err := v.intrinsics.freeze(goja.Undefined(), o)
	v.must(err)
	return o
}

// guard makes reading a missing property of an object an error. goja reads the
// guard, its prototype, only for missing properties.
func (v *vm) guard(o *goja.Object, missing func(name string) error) *goja.Object {
	g := v.rt.NewDynamicObject(&guard{v: v, missing: missing})
	v.must(o.SetPrototype(g))
	return o
}

// guard is a prototype without properties that reports reads as errors.
type guard struct {
	v       *vm
	missing func(name string) error
}

// asked are names that JavaScript itself reads from any object.
var asked = map[string]bool{"then": true, "toJSON": true, "__esModule": true, "default": true}

// Get throws, except for the properties that every object has.
func (g *guard) Get(name string) goja.Value {
	if asked[name] || g.v.intrinsics.objectProto.Get(name) != nil {
		return nil
	}
	g.v.raise(g.missing(name))
	return nil
}

// Set refuses.
func (*guard) Set(string, goja.Value) bool { return false }

// Has returns false.
func (*guard) Has(string) bool { return false }

// Delete refuses.
func (*guard) Delete(string) bool { return false }

// Keys returns nothing.
func (*guard) Keys() []string { return nil }

// opaqueProto returns the prototype of Go values that scripts can only pass on.
func (v *vm) opaqueProto() *goja.Object {
	if p := v.protos[nil]; p != nil {
		return p
	}
	p := v.rt.NewObject()
	v.protos[nil] = p
	text := func(call goja.FunctionCall) goja.Value {
		return v.rt.ToValue(boxText(boxed(call.This)))
	}
	v.method(p, "toString", text)
	v.method(p, "toJSON", text)
	v.guard(p, func(string) error {
		return fmt.Errorf("cannot look into this value: it can only be passed on")
	})
	return v.freeze(p)
}

// boxText returns the text form of a value that scripts can only pass on.
func boxText(x any) string {
	switch x := x.(type) {
	case *scripting.Raw:
		return "weir." + string(x.Kind)
	case *scripting.Arg:
		return "arg." + string(x.Kind)
	case *scripting.Object:
		if x.Type.String != nil {
			return x.Type.String(x.Data)
		}
		return x.Type.Name
	}
	return fmt.Sprint(x)
}

// proto returns the prototype for the objects of a type, with its methods and
// fields.
func (v *vm) proto(t *scripting.ObjectType) *goja.Object {
	if p := v.protos[t]; p != nil {
		return p
	}
	p := v.rt.NewObject()
	v.protos[t] = p
	self := func(call goja.FunctionCall) *scripting.Object {
		o, ok := boxed(call.This).(*scripting.Object)
		if !ok || o.Type != t {
			v.raise(fmt.Errorf("cannot use %s as %s", kindOf(call.This), t.Name))
		}
		return o
	}
	for i := range t.Methods {
		f := t.Methods[i].Camel()
		name := t.Name + "." + f.Name
		v.method(p, f.Name, func(call goja.FunctionCall) goja.Value { return v.callFunction(name, f, self(call), call.Arguments) })
	}
	get := func(name string, fn func(call goja.FunctionCall) goja.Value) {
		v.must(p.DefineAccessorProperty(name, v.function1(name, fn), nil, goja.FLAG_FALSE, goja.FLAG_TRUE))
	}
	if t.Read != nil {
		for _, f := range t.Fields {
			get(scripting.CamelCase(f.Name), func(call goja.FunctionCall) goja.Value {
				return v.fromGo(t.Read(self(call).Data, f.Name))
			})
		}
	}
	if t.Len != nil {
		get("length", func(call goja.FunctionCall) goja.Value { return v.rt.ToValue(t.Len(self(call).Data)) })
		v.must(p.SetSymbol(goja.SymIterator, v.function1("values", func(call goja.FunctionCall) goja.Value {
			o, i := self(call), -1
			return v.iterable(func() (scripting.Value, bool) {
				if i++; i >= t.Len(o.Data) {
					return nil, false
				}
				return t.Index(o.Data, i), true
			})
		})))
	}
	v.method(p, "toString", func(call goja.FunctionCall) goja.Value { return v.rt.ToValue(boxText(self(call))) })
	v.guard(p, func(name string) error { return fmt.Errorf("%s has no method %q", t.Name, name) })
	return v.freeze(p)
}

// indexed is a box that behaves like an array.
type indexed struct {
	box
	v *vm
}

// Get returns an element, or nothing for any other name or index.
func (x *indexed) Get(key string) goja.Value {
	i, err := strconv.Atoi(key)
	o := x.value.(*scripting.Object)
	if err != nil || i < 0 || i >= o.Type.Len(o.Data) {
		return nil
	}
	return x.v.fromGo(o.Type.Index(o.Data, i))
}
