package js

import (
	"fmt"
	"reflect"
	"unsafe"

	"github.com/dop251/goja"
)

// hosted is an object of goja's whose properties are asked of Go. It is what
// Runtime.NewDynamicObject and NewDynamicArray make, but it lies in memory of
// ours, many to an allocation: theirs are two each, which for a record with its
// labels is most of what a handle costs. It mirrors two structs of goja's; what
// they look like is checked when the process starts, and so is each of its
// uses by what goja then does with it.
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

// What goja's interface on its dynamic objects and arrays begins with.
var objectTab, arrayTab = layout()

// layout compares hosted with goja's structs.
func layout() (object, array unsafe.Pointer) {
	var h hosted
	head := reflect.TypeFor[goja.Object]()
	body := func(o *goja.Object) unsafe.Pointer {
		impl := reflect.ValueOf(o).Elem().FieldByName("self")
		if head.Size() != unsafe.Sizeof(h.object) || !impl.IsValid() || head.Field(0).Name != "self" || head.Field(1).Name != "runtime" {
			panic(fmt.Sprintf("BUG: goja.Object is not what it was: %s", head))
		}
		t := impl.Elem().Type().Elem()
		val, okVal := t.FieldByName("val")
		proto, okProto := t.FieldByName("prototype")
		if t.Size() != unsafe.Sizeof(h.body) || t.NumField() != 2 || t.Field(1).Offset != unsafe.Offsetof(h.body.host) || t.Field(1).Type.Kind() != reflect.Interface ||
			!okVal || val.Offset != 0 || !okProto || proto.Offset != unsafe.Offsetof(h.body.prototype) {
			panic(fmt.Sprintf("BUG: goja's %s is not what it was", t))
		}
		return (*objectHead)(unsafe.Pointer(o)).self.tab
	}
	return body(engine.NewDynamicObject(&box{})), body(engine.NewDynamicArray(nil))
}

// open makes h the object of host.
func (h *hosted) open(rt *goja.Runtime, prototype *goja.Object, host goja.DynamicObject) *goja.Object {
	return h.set(rt, prototype, objectTab, *(*iface)(unsafe.Pointer(&host)))
}

// openArray makes h the array of host.
func (h *hosted) openArray(rt *goja.Runtime, prototype *goja.Object, host goja.DynamicArray) *goja.Object {
	return h.set(rt, prototype, arrayTab, *(*iface)(unsafe.Pointer(&host)))
}

func (h *hosted) set(rt *goja.Runtime, prototype *goja.Object, tab unsafe.Pointer, host iface) *goja.Object {
	h.body.val, h.body.prototype, h.body.host = h.value(), prototype, host
	h.object.self, h.object.runtime = iface{tab, unsafe.Pointer(&h.body)}, rt
	return h.body.val
}

// value is the object, nil before open.
func (h *hosted) value() *goja.Object { return (*goja.Object)(unsafe.Pointer(&h.object)) }

// hostOf returns what was given to open, or to goja's NewDynamicObject; nil for
// any other value.
func hostOf(x goja.Value) (host goja.DynamicObject) {
	if o, ok := x.(*goja.Object); ok {
		if self := (*objectHead)(unsafe.Pointer(o)).self; self.tab == objectTab {
			*(*iface)(unsafe.Pointer(&host)) = (*objectBody)(self.data).host
		}
	}
	return host
}

// arrayOf is hostOf for openArray.
func arrayOf(x goja.Value) (host goja.DynamicArray) {
	if o, ok := x.(*goja.Object); ok {
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
