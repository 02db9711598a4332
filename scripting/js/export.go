package js

import (
	"fmt"
	"reflect"

	"github.com/dop251/goja"
)

// What goja exports of an object is a copy of all that the object leads to: it
// does not end for some that contain themselves, and takes memory by the length
// that a list claims to have. So nothing but this file exports, and only what is
// known to be small: TestExports looks for other places.

// primitive is what goja exports of a value that is no object: bool, int64,
// float64, string, *big.Int, nil. It is nil for an object.
func primitive(x goja.Value) any {
	if _, ok := x.(*goja.Object); ok || x == nil {
		return nil
	}
	return x.Export()
}

// exported is the Go value that an object stands for, the zero value if it is
// none of this type: a host's object, a function, a promise.
func exported[T any](o *goja.Object) (x T) {
	if t := o.ExportType(); t != nil && t.AssignableTo(reflect.TypeFor[T]()) {
		x, _ = o.Export().(T)
	}
	return x
}

// unboxed is the primitive in a Number, String or Boolean object. Nothing of the
// script's runs, whatever valueOf it has given the object.
func (v *vm) unboxed(o *goja.Object) goja.Value {
	x, err := v.native(o.ClassName(), "valueOf")(o)
	v.must(err)
	return x
}

// native is a method of the language's own.
func (v *vm) native(class, method string) goja.Callable {
	proto := v.rt.GlobalObject().Get(class).(*goja.Object).Get("prototype").(*goja.Object)
	fn, ok := goja.AssertFunction(proto.Get(method))
	if !ok {
		panic(fmt.Sprintf("BUG: there is no %s.prototype.%s", class, method))
	}
	return fn
}

// collection is Map or Set for what is one, which goja calls an Object.
func collection(o *goja.Object) string {
	switch theLayout().kindOf(o).name {
	case "mapObject":
		return "Map"
	case "setObject":
		return "Set"
	}
	return ""
}

// keys are the names of an object's own enumerable properties, of which there
// are no more than a list may have items: a text and a buffer have one for each
// item, whose memory nobody has counted.
func (v *vm) keys(o *goja.Object) []string {
	keys, err := v.ownKeys(o)
	v.must(err)
	return keys
}

func (v *vm) ownKeys(o *goja.Object) ([]string, error) {
	at := o
	for range maxTargets {
		switch k := v.sandbox.layout.kindOf(at); {
		case k.name == "proxyObject":
			if at = v.sandbox.layout.targetOf(at, k); at == nil {
				return o.Keys(), nil // a revoked Proxy, which throws
			}
			continue
		case k.buffer, k.name == "stringObject":
			if n := v.sandbox.lengthOf(at); n > maxListed {
				return nil, fmt.Errorf("cannot use a text or buffer of %d items as an object: the limit is %d", n, maxListed)
			}
		}
		break
	}
	keys := o.Keys()
	return keys, v.budget.charge(int64(len(keys)))
}

// maxListed is how many items of a text or a buffer may become properties.
const maxListed = 1 << 16
