package js

import (
	"unsafe"

	"github.com/dop251/goja"

	"github.com/weir-run/weir/engine/golayout"
)

// hosted is a goja object whose properties are provided by Go. It replaces
// Runtime.NewDynamicObject and NewDynamicArray, and is allocated in blocks of
// many: theirs need two allocations each, which is most of the cost of a record
// handle with its labels. It mirrors two structs of goja, with which it is
// compared when the process starts. If goja's structs differ, goja creates the
// objects. A pointer to a part of a block keeps the whole block alive.
type hosted struct {
	object objectHead
	body   objectBody
}

// open initialises h as the object of host.
func (h *hosted) open(rt *goja.Runtime, prototype *goja.Object, host goja.DynamicObject) *goja.Object {
	if objectTab == nil {
		return h.setObject(rt.NewDynamicObject(host), prototype)
	}
	return h.set(rt, prototype, objectTab, *(*golayout.Interface)(unsafe.Pointer(&host)))
}

// openArray initialises h as the array of host.
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

// setObject lets h represent an object that goja created.
func (h *hosted) setObject(o, prototype *goja.Object) *goja.Object {
	_ = o.SetPrototype(prototype) // such an object accepts any prototype
	h.body.val = o
	return o
}

// value returns the object, or nil before open.
func (h *hosted) value() *goja.Object { return h.body.val }

// hostOf returns the host that was passed to open, or to goja's
// NewDynamicObject. It returns nil for any other value.
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

// arrayOf is like hostOf, for openArray.
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

// sealed implements a host that cannot be written to or listed.
type sealed struct{}

// Set refuses.
func (sealed) Set(string, goja.Value) bool { return false }

// Has returns false.
func (sealed) Has(string) bool { return false }

// Delete refuses.
func (sealed) Delete(string) bool { return false }

// Keys returns nothing.
func (sealed) Keys() []string { return nil }
