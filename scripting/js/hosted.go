package js

import (
	"reflect"
	"unsafe"

	"github.com/dop251/goja"
)

// hosted is an object of goja's whose properties are asked of Go. It is what
// Runtime.NewDynamicObject and NewDynamicArray make, but it lies in memory of
// ours, many to an allocation: theirs are two each, which for a record with its
// labels is most of what a handle costs. It mirrors two structs of goja's, which
// it is compared with when the process starts: of a goja that has others, goja
// makes the objects. What points at a part of our memory is nothing special to
// Go's collector, which keeps all of it.
type hosted struct {
	object objectHead
	body   objectBody
}

// objectHead mirrors goja.Object.
type objectHead struct {
	self    iface // on an objectBody, if tab says so
	runtime *goja.Runtime
}

// objectBody mirrors goja's dynamic objects and arrays.
type objectBody struct {
	val, prototype *goja.Object
	host           iface // a DynamicObject or a DynamicArray
}

// What goja's interface on its dynamic objects and arrays begins with; nil: goja
// makes them.
var objectTab, arrayTab = layout()

// layout compares hosted with goja's structs.
func layout() (object, array unsafe.Pointer) {
	o, a := engine.NewDynamicObject(&box{}), engine.NewDynamicArray(nil)
	if !mirrors(o, reflect.TypeFor[goja.DynamicObject]()) || !mirrors(a, reflect.TypeFor[goja.DynamicArray]()) {
		return nil, nil
	}
	return (*objectHead)(unsafe.Pointer(o)).self.tab, (*objectHead)(unsafe.Pointer(a)).self.tab
}

// mirrors reports whether o is laid out as hosted is, of a host that has the
// interface of a type.
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

// fieldAt reports whether a struct has a field at an offset, in what is embedded at
// its start too.
func fieldAt(t reflect.Type, name string, offset uintptr, is reflect.Type) bool {
	f, ok := t.FieldByName(name)
	return ok && f.Offset == offset && f.Type == is
}

// open makes h the object of host.
func (h *hosted) open(rt *goja.Runtime, prototype *goja.Object, host goja.DynamicObject) *goja.Object {
	if objectTab == nil {
		return h.made(rt.NewDynamicObject(host), prototype)
	}
	return h.set(rt, prototype, objectTab, *(*iface)(unsafe.Pointer(&host)))
}

// openArray makes h the array of host.
func (h *hosted) openArray(rt *goja.Runtime, prototype *goja.Object, host goja.DynamicArray) *goja.Object {
	if arrayTab == nil {
		return h.made(rt.NewDynamicArray(host), prototype)
	}
	return h.set(rt, prototype, arrayTab, *(*iface)(unsafe.Pointer(&host)))
}

func (h *hosted) set(rt *goja.Runtime, prototype *goja.Object, tab unsafe.Pointer, host iface) *goja.Object {
	h.body.val, h.body.prototype, h.body.host = (*goja.Object)(unsafe.Pointer(&h.object)), prototype, host
	h.object.self, h.object.runtime = iface{tab, unsafe.Pointer(&h.body)}, rt
	return h.body.val
}

// made makes h stand for what goja made.
func (h *hosted) made(o, prototype *goja.Object) *goja.Object {
	_ = o.SetPrototype(prototype) // such an object takes any
	h.body.val = o
	return o
}

// value is the object, nil before open.
func (h *hosted) value() *goja.Object { return h.body.val }

// hostOf returns what was given to open, or to goja's NewDynamicObject; nil for
// any other value.
func hostOf(x goja.Value) (host goja.DynamicObject) {
	if o, ok := x.(*goja.Object); ok {
		if objectTab == nil {
			return exported[goja.DynamicObject](o)
		}
		if self := (*objectHead)(unsafe.Pointer(o)).self; self.tab == objectTab {
			*(*iface)(unsafe.Pointer(&host)) = (*objectBody)(self.data).host
		}
	}
	return host
}

// arrayOf is hostOf for openArray.
func arrayOf(x goja.Value) (host goja.DynamicArray) {
	if o, ok := x.(*goja.Object); ok {
		if arrayTab == nil {
			return exported[goja.DynamicArray](o)
		}
		if self := (*objectHead)(unsafe.Pointer(o)).self; self.tab == arrayTab {
			*(*iface)(unsafe.Pointer(&host)) = (*objectBody)(self.data).host
		}
	}
	return host
}

// sealed is what a host has in common that nobody writes to or lists.
type sealed struct{}

// Set refuses.
func (sealed) Set(string, goja.Value) bool { return false }

// Has returns false.
func (sealed) Has(string) bool { return false }

// Delete refuses.
func (sealed) Delete(string) bool { return false }

// Keys returns nothing.
func (sealed) Keys() []string { return nil }
