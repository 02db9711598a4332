package js

import (
	"unsafe"

	"github.com/dop251/goja"

	"github.com/weir-run/weir/engine/golayout"
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

// open makes h the object of host.
func (h *hosted) open(rt *goja.Runtime, prototype *goja.Object, host goja.DynamicObject) *goja.Object {
	if objectTab == nil {
		return h.setObject(rt.NewDynamicObject(host), prototype)
	}
	return h.set(rt, prototype, objectTab, *(*golayout.Interface)(unsafe.Pointer(&host)))
}

// openArray makes h the array of host.
func (h *hosted) openArray(rt *goja.Runtime, prototype *goja.Object, host goja.DynamicArray) *goja.Object {
	if arrayTab == nil {
		return h.setObject(rt.NewDynamicArray(host), prototype)
	}
	return h.set(rt, prototype, arrayTab, *(*golayout.Interface)(unsafe.Pointer(&host)))
}

func (h *hosted) set(rt *goja.Runtime, prototype *goja.Object, tab unsafe.Pointer, host golayout.Interface) *goja.Object {
	h.body.val, h.body.prototype, h.body.host = (*goja.Object)(unsafe.Pointer(&h.object)), prototype, host
	h.object.self, h.object.runtime = golayout.Interface{Type: tab, Data: unsafe.Pointer(&h.body)}, rt
	return h.body.val
}

// setObject makes h stand for what goja made.
func (h *hosted) setObject(o, prototype *goja.Object) *goja.Object {
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
		if self := (*objectHead)(unsafe.Pointer(o)).self; self.Type == objectTab {
			*(*golayout.Interface)(unsafe.Pointer(&host)) = (*objectBody)(self.Data).host
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
		if self := (*objectHead)(unsafe.Pointer(o)).self; self.Type == arrayTab {
			*(*golayout.Interface)(unsafe.Pointer(&host)) = (*objectBody)(self.Data).host
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
