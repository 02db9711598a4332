package js

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"

	"github.com/dop251/goja"

	"github.com/weir-run/weir/scripting"
)

// maxValueDepth is the maximum depth of a value that is converted to or from
// Go.
const maxValueDepth = 100

// maxSafe is the limit up to which all integers are exact JavaScript numbers.
const maxSafe = 1 << 53

// fromGo converts the result of a host function to a script's value. It throws
// errors.
func (v *vm) fromGo(x scripting.Value) goja.Value { return v.fromGoAt(x, 0) }

func (v *vm) fromGoAt(x scripting.Value, depth int) goja.Value {
	if depth > maxValueDepth {
		v.raise(fmt.Errorf("cannot use a value that nests deeper than %d", maxValueDepth))
	}
	switch x := x.(type) {
	case nil:
		return goja.Undefined()
	case goja.Value:
		return x
	case bool:
		return v.rt.ToValue(x)
	case float64:
		return v.rt.ToValue(x)
	case int64:
		if x > maxSafe || x < -maxSafe {
			return v.rt.ToValue(big.NewInt(x)) // a number would not be exact
		}
		return v.rt.ToValue(x)
	case string:
		v.must(v.budget.chargeString(int64(len(x))))
		v.data.texts.given += int64(len(x))
		return v.rt.ToValue(x)
	case *scripting.List:
		v.must(v.budget.charge(int64(len(x.Items)/4) + 1))
		items := make([]any, len(x.Items))
		for i, e := range x.Items {
			items[i] = v.fromGoAt(e, depth+1)
		}
		return v.rt.NewArray(items...)
	case *scripting.Map:
		o := v.rt.NewObject()
		v.must(v.budget.charge(int64(2 * x.Len())))
		for _, k := range x.Keys() {
			e, _ := x.Get(k)
			v.put(o, k, v.fromGoAt(e, depth+1))
		}
		return o
	case *scripting.Object:
		return v.object(x)
	case scripting.Sequence:
		return v.iterable(x)
	}
	if x == scripting.Null {
		return goja.Null()
	}
	return v.box(x)
}

// put adds a property to a plain object; __proto__ has no special meaning.
func (v *vm) put(o *goja.Object, key string, x goja.Value) {
	var err error
	if key == "__proto__" {
		err = o.DefineDataProperty(key, x, goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_TRUE)
	} else {
		err = o.Set(key, x)
	}
	v.must(err)
}

// iterable returns an iterator of the host, which can be used once.
func (v *vm) iterable(next scripting.Sequence) goja.Value {
	o := v.rt.NewObject()
	self := v.rt.ToValue(func(call goja.FunctionCall) goja.Value { return call.This })
	v.must(o.SetSymbol(goja.SymIterator, self))
	v.method(o, "next", func(goja.FunctionCall) goja.Value {
		step := v.rt.NewObject()
		x, ok := next()
		if ok {
			v.put(step, "value", v.fromGo(x))
		}
		v.put(step, "done", v.rt.ToValue(!ok))
		return step
	})
	return o
}

// toGo converts a script's value to a value for host functions.
func (v *vm) toGo(x goja.Value) (scripting.Value, error) { return v.toGoAt(x, 0) }

func (v *vm) toGoAt(x goja.Value, depth int) (scripting.Value, error) {
	if depth > maxValueDepth {
		return nil, fmt.Errorf("cannot pass a value that nests deeper than %d: does it contain itself?", maxValueDepth)
	}
	switch x := x.(type) {
	case nil:
		return nil, nil
	case *goja.Object:
		return v.objectToGo(x, depth)
	case goja.String:
		return x.String(), nil
	case *goja.Symbol:
		return nil, errors.New("cannot pass a symbol to a function of the host")
	}
	switch {
	case goja.IsUndefined(x):
		return nil, nil
	case goja.IsNull(x):
		return scripting.Null, nil
	}
	switch n := primitive(x).(type) {
	case bool, int64:
		return n, nil
	case float64:
		if n == math.Trunc(n) && math.Abs(n) <= maxSafe && !(n == 0 && math.Signbit(n)) {
			return int64(n), nil
		}
		return n, nil
	case *big.Int:
		if !n.IsInt64() {
			return nil, errors.New("cannot pass a BigInt that does not fit 64 bits to a function of the host")
		}
		return n.Int64(), nil
	}
	return nil, fmt.Errorf("cannot pass %s to a function of the host", kindOf(x))
}

func (v *vm) objectToGo(o *goja.Object, depth int) (scripting.Value, error) {
	if x := boxed(o); x != nil {
		return x, nil
	}
	if x, ok := v.dataToGo(o); ok {
		return x, nil
	}
	if isFunction(o) { // also an async arrow, which goja calls an Object
		return v.callback(o), nil
	}
	if promiseOf(o) != nil {
		return nil, errors.New("cannot pass a promise to a function of the host: write await before it")
	}
	switch o.ClassName() {
	case "Array":
		n := v.sandbox.lengthOf(o)
		if n > maxItems {
			return nil, fmt.Errorf("cannot pass a list of %d items to a function of the host: the limit is %d", n, maxItems)
		}
		if err := v.budget.charge(n/4 + 1); err != nil {
			return nil, err
		}
		l := &scripting.List{Items: make([]scripting.Value, n)}
		for i := range l.Items {
			e, err := v.toGoAt(o.Get(fmt.Sprint(i)), depth+1)
			if err != nil {
				return nil, err
			}
			if l.Items[i] = e; e == nil {
				l.Items[i] = scripting.Null
			}
		}
		return l, nil
	case "Date":
		return nil, errors.New("cannot pass a Date to a function of the host: pass its getTime() or its toISOString()")
	case "Number", "String", "Boolean":
		return v.toGoAt(v.unboxed(o), depth)
	}
	switch collection(o) {
	case "Map":
		return nil, errors.New("cannot pass a Map to a function of the host: pass Object.fromEntries(map)")
	case "Set":
		return nil, errors.New("cannot pass a Set to a function of the host: pass [...set]")
	}
	m := scripting.NewMap()
	keys, err := v.ownKeys(o)
	if err != nil {
		return nil, err
	}
	for _, k := range keys {
		if err := v.budget.charge(1); err != nil {
			return nil, err
		}
		e, err := v.toGoAt(o.Get(k), depth+1)
		if err != nil {
			return nil, err
		}
		if e != nil {
			m.Set(k, e)
		}
	}
	return m, nil
}

// callback converts a function of the script for Go.
func (v *vm) callback(fn *goja.Object) scripting.Callback {
	if v.test != nil {
		return v.test.callback(fn)
	}
	call, _ := goja.AssertFunction(fn)
	return func(args ...scripting.Value) (scripting.Value, error) {
		in := make([]goja.Value, len(args))
		for i, a := range args {
			in[i] = v.fromGo(a)
		}
		out, err := v.invoke(call, in...)
		if err != nil {
			return nil, v.passedOn(err)
		}
		return v.toGo(out)
	}
}

// isFunction reports whether a value can be called.
func isFunction(x goja.Value) bool {
	_, ok := goja.AssertFunction(x)
	return ok
}

// kindOf returns the name of a value's type.
func kindOf(x goja.Value) string {
	switch {
	case x == nil || goja.IsUndefined(x):
		return "undefined"
	case goja.IsNull(x):
		return "null"
	case goja.IsString(x):
		return "a string"
	case goja.IsNumber(x):
		return "a number"
	case goja.IsBigInt(x):
		return "a BigInt"
	}
	if isFunction(x) {
		return "a function"
	}
	if o, ok := x.(*goja.Object); ok {
		switch c := o.ClassName(); {
		case promiseOf(o) != nil:
			return "a promise"
		case c == "Array":
			return "an array"
		case c == "Object":
			return "an object"
		default:
			return "a " + c
		}
	}
	if isBoolean(x) {
		return "a boolean"
	}
	return "a symbol"
}

// box is a Go value that a script can only pass on unchanged. It is a goja
// object without properties.
type box struct{ value any }

// Get returns nothing: a box has no properties.
func (*box) Get(string) goja.Value { return nil }

// Set refuses.
func (*box) Set(string, goja.Value) bool { return false }

// Has returns false.
func (*box) Has(string) bool { return false }

// Delete refuses.
func (*box) Delete(string) bool { return false }

// Keys returns nothing.
func (*box) Keys() []string { return nil }

// boxed returns the Go value in a box, or nil if x is not a box.
func boxed(x goja.Value) any {
	o, ok := x.(*goja.Object)
	if !ok {
		return nil
	}
	switch host := hostOf(o).(type) {
	case *box:
		return host.value
	case *indexed:
		return host.value
	}
	return nil
}

// box makes a box.
func (v *vm) box(x any) goja.Value {
	o := v.rt.NewDynamicObject(&box{x})
	v.must(o.SetPrototype(v.opaqueProto()))
	return o
}

// object creates the object of a value with methods.
func (v *vm) object(x *scripting.Object) goja.Value {
	var o *goja.Object
	if x.Type.Index != nil {
		o = v.rt.NewDynamicObject(&indexed{box{x}, v})
	} else {
		o = v.rt.NewDynamicObject(&box{x})
	}
	v.must(o.SetPrototype(v.proto(x.Type)))
	return o
}

// jsonText formats a value for a log line. It stops somewhere after limit
// bytes, because values that are shared by many lists could need more than all
// memory.
func jsonText(x scripting.Value, limit int) string {
	return string(appendJSONText(nil, x, limit))
}

func appendJSONText(dst []byte, x scripting.Value, limit int) []byte {
	if len(dst) > limit {
		return dst
	}
	switch x := x.(type) {
	case nil:
		return append(dst, "undefined"...)
	case string:
		return strconv.AppendQuote(dst, x[:min(len(x), limit)])
	case *scripting.List:
		dst = append(dst, '[')
		for i, e := range x.Items {
			if len(dst) > limit {
				break
			}
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendJSONText(dst, e, limit)
		}
		return append(dst, ']')
	case *scripting.Map:
		dst = append(dst, '{')
		for i, k := range x.Keys() {
			if len(dst) > limit {
				break
			}
			if i > 0 {
				dst = append(dst, ',')
			}
			e, _ := x.Get(k)
			dst = appendJSONText(append(strconv.AppendQuote(dst, k[:min(len(k), limit)]), ':'), e, limit)
		}
		return append(dst, '}')
	case scripting.Callback:
		return append(dst, "a function"...)
	}
	return append(dst, boxText(x)...)
}
