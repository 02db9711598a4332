package js

import (
	"fmt"
	"reflect"

	"github.com/dop251/goja"
)

// goja exports an object as a copy of everything that is reachable from it. For
// some cyclic objects, this does not terminate, and for a list it takes memory
// for its claimed length. Therefore, only this file exports, and only values
// that are known to be small. TestExports checks for other uses.

// primitive returns goja's export of a primitive value: bool, int64, float64,
// string, *big.Int, nil. It returns nil for an object.
func primitive(x goja.Value) any {
	if _, ok := x.(*goja.Object); ok || x == nil {
		return nil
	}
	return x.Export()
}

// exported returns the Go value that an object represents, such as a host
// object, a function or a promise. It returns the zero value if it is of
// another type.
func exported[T any](o *goja.Object) (x T) {
	if t := o.ExportType(); t != nil && t.AssignableTo(reflect.TypeFor[T]()) {
		x, _ = o.Export().(T)
	}
	return x
}

// unboxed returns the primitive value of a Number, String or Boolean object. It
// runs no code of the script, such as its valueOf.
func (v *vm) unboxed(o *goja.Object) goja.Value {
	x, err := v.native(o.ClassName(), "valueOf")(o)
	v.must(err)
	return x
}

// native returns a built-in method.
func (v *vm) native(class, method string) goja.Callable {
	proto := v.rt.GlobalObject().Get(class).(*goja.Object).Get("prototype").(*goja.Object)
	fn, ok := goja.AssertFunction(proto.Get(method))
	if !ok {
		panic(fmt.Sprintf("BUG: there is no %s.prototype.%s", class, method))
	}
	return fn
}

// collection returns "Map" or "Set" for such an object; goja reports its class
// as Object.
func collection(o *goja.Object) string {
	switch theLayout().kindOf(o).name {
	case "mapObject":
		return "Map"
	case "setObject":
		return "Set"
	}
	return ""
}

// keys returns the names of an object's own enumerable properties. It limits
// their number to the maximum length of a list, because a text and a buffer
// have a property per item, whose memory is not counted.
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

// maxListed is the maximum number of items of a text or a buffer that are
// converted to properties.
const maxListed = 1 << 16
