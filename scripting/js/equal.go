package js

import (
	"fmt"

	"github.com/dop251/goja"

	"github.com/weir-run/weir/scripting"
)

// equality compares values for expect in tests. The rules are vitest's.
//
// Source: https://vitest.dev/api/expect.html#toequal
type equality struct {
	t      *test
	strict bool // toStrictEqual: classes, undefined keys and holes count
	part   bool // toMatchObject: got may have additional properties
	pairs  map[[2]*goja.Object]bool
	depth  int
}

// equal reports whether got equals want.
func (t *test) equal(got, want goja.Value, e equality) bool {
	e.t, e.pairs = t, map[[2]*goja.Object]bool{}
	return e.values(got, want)
}

func (e *equality) values(got, want goja.Value) bool {
	got, want = orUndefined(got), orUndefined(want)
	if m := e.t.likes[objectOf(want)]; m != nil {
		return m.is(got) != m.negated
	}
	if m := e.t.likes[objectOf(got)]; m != nil {
		return m.is(want) != m.negated
	}
	x, y := objectOf(got), objectOf(want)
	if x == nil || y == nil || x == y {
		return got.SameAs(want)
	}
	e.t.v.must(e.t.v.budget.charge(4))
	if e.pairs[[2]*goja.Object{x, y}] {
		return true // a cycle; the result is decided further up
	}
	if e.depth++; e.depth > maxValueDepth*10 {
		e.t.v.raise(fmt.Errorf("cannot compare values that nest deeper than %d", maxValueDepth*10))
	}
	e.pairs[[2]*goja.Object{x, y}] = true
	same := e.objects(x, y)
	delete(e.pairs, [2]*goja.Object{x, y})
	e.depth--
	return same
}

func (e *equality) objects(x, y *goja.Object) bool {
	if a, b := boxed(x), boxed(y); a != nil || b != nil {
		return a != nil && b != nil && sameHosts(a, b)
	}
	if isFunction(x) || isFunction(y) || promiseOf(x) != nil || promiseOf(y) != nil {
		return false // equal ones would be identical
	}
	kind := x.ClassName()
	if kind != y.ClassName() || e.strict && x.Prototype() != y.Prototype() {
		return false
	}
	switch kind {
	case "Number", "String", "Boolean":
		return e.t.v.unboxed(x).SameAs(e.t.v.unboxed(y))
	case "Date":
		return e.method(x, "getTime").SameAs(e.method(y, "getTime"))
	case "RegExp":
		return x.String() == y.String()
	case "Error":
		return e.values(x.Get("name"), y.Get("name")) && e.values(x.Get("message"), y.Get("message")) && e.values(x.Get("cause"), y.Get("cause"))
	case "Array":
		if !x.Get("length").SameAs(y.Get("length")) {
			return false
		}
	}
	switch collection(x) {
	case "Map":
		return collection(y) == "Map" && e.maps(x, y)
	case "Set":
		return collection(y) == "Set" && e.sets(x, y)
	}
	return e.properties(x, y)
}

// sameHosts compares host objects.
func sameHosts(a, b any) bool {
	x, ok1 := a.(*scripting.Object)
	y, ok2 := b.(*scripting.Object)
	if !ok1 || !ok2 {
		return a == b
	}
	return x.Type == y.Type && x.Data == y.Data
}

// properties compares the own properties of two objects. With part, the wanted
// properties may also be inherited.
func (e *equality) properties(x, y *goja.Object) bool {
	for _, k := range e.t.v.keys(y) {
		if !e.property(x, y, k) {
			return false
		}
	}
	for _, s := range y.Symbols() {
		if !e.values(x.GetSymbol(s), y.GetSymbol(s)) {
			return false
		}
	}
	if e.part && x.ClassName() != "Array" {
		return true
	}
	for _, k := range e.t.v.keys(x) {
		if !e.t.has(y, k) && (e.strict || !goja.IsUndefined(orUndefined(x.Get(k)))) {
			return false
		}
	}
	for _, s := range x.Symbols() {
		if !e.values(x.GetSymbol(s), y.GetSymbol(s)) {
			return false
		}
	}
	return true
}

func (e *equality) property(x, y *goja.Object, key string) bool {
	if !e.t.has(x, key) {
		switch {
		case e.part:
			if x.Get(key) == nil {
				return false
			}
		case e.strict || !goja.IsUndefined(orUndefined(y.Get(key))):
			return e.t.likes[objectOf(y.Get(key))] != nil && !e.strict && e.values(nil, y.Get(key))
		}
	}
	return e.values(x.Get(key), y.Get(key))
}

// maps compares Maps, ignoring the order. Keys that are objects are compared by
// equality.
func (e *equality) maps(x, y *goja.Object) bool {
	return e.entries(x, y, func(a, b *goja.Object) bool {
		return e.values(a.Get("0"), b.Get("0")) && e.values(a.Get("1"), b.Get("1"))
	})
}

func (e *equality) sets(x, y *goja.Object) bool {
	return e.entries(x, y, func(a, b *goja.Object) bool { return e.values(a.Get("0"), b.Get("0")) })
}

// entries finds a different matching entry of x for each entry of y.
func (e *equality) entries(x, y *goja.Object, same func(a, b *goja.Object) bool) bool {
	have, want := e.t.entries(x), e.t.entries(y)
	if len(have) != len(want) {
		return false
	}
	for i, w := range want {
		found := false
		for j := range have {
			h := have[(i+j)%len(have)]
			if h == nil {
				continue
			}
			if found = same(h, w); found {
				have[(i+j)%len(have)] = nil
				break
			}
		}
		if !found {
			return false
		}
	}
	return true
}

// entries returns the entries of a Map, or of a Set, whose values are also the
// keys.
func (t *test) entries(o *goja.Object) (out []*goja.Object) {
	t.v.rt.ForOf(t.call(o, "entries"), func(x goja.Value) bool {
		out = append(out, x.(*goja.Object))
		return true
	})
	return out
}

func (e *equality) method(o *goja.Object, name string) goja.Value { return e.t.call(o, name) }

// call calls a method of an object.
func (t *test) call(o *goja.Object, name string, args ...goja.Value) goja.Value {
	fn, ok := goja.AssertFunction(o.Get(name))
	if !ok {
		t.v.raise(fmt.Errorf("cannot call %s of %s", name, kindOf(o)))
	}
	out, err := fn(o, args...)
	t.v.must(err)
	return out
}

// has reports whether an object has an own property.
func (t *test) has(o *goja.Object, key string) bool {
	out, err := t.hasOwn(goja.Undefined(), o, t.v.rt.ToValue(key))
	t.v.must(err)
	return out.ToBoolean()
}

func orUndefined(x goja.Value) goja.Value {
	if x == nil {
		return goja.Undefined()
	}
	return x
}

func objectOf(x goja.Value) *goja.Object {
	o, _ := x.(*goja.Object)
	return o
}
