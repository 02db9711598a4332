package golayout

import (
	"reflect"
	"testing"
	"time"
	"unsafe"
)

// TestLayouts: the copies hold for the Go that weir is built with. If this fails
// after an upgrade of Go, weir still works, but more slowly or without JavaScript.
func TestLayouts(t *testing.T) {
	for name, check := range map[string]func() error{"interfaces": CheckInterfaces, "containers": CheckContainers, "time": CheckTime} {
		if err := check(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWrongInterfaces(t *testing.T) {
	f := func(name string, of func(any) Interface, direct func(reflect.Type) bool) {
		t.Helper()
		if err := checkInterfaces(of, direct); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	f("swapped words", func(x any) Interface { w := Of(x); return Interface{w.Data, w.Type} }, Direct)
	f("no type", func(x any) Interface { return Interface{nil, Of(x).Data} }, Direct)
	f("no data", func(x any) Interface { return Interface{Of(x).Type, nil} }, Direct)
	f("nothing is direct", Of, func(reflect.Type) bool { return false })
	f("all is direct", Of, func(reflect.Type) bool { return true })
	f("only pointers are direct", Of, func(t reflect.Type) bool { return t.Kind() == reflect.Pointer })
}

func TestWrongContainers(t *testing.T) {
	f := func(name string, slice func(unsafe.Pointer) (unsafe.Pointer, int, int), id func(unsafe.Pointer) unsafe.Pointer) {
		t.Helper()
		if err := checkContainers(slice, id); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	f("capacity first", func(p unsafe.Pointer) (unsafe.Pointer, int, int) { at, n, c := Slice(p); return at, c, n }, Map)
	f("no elements", func(unsafe.Pointer) (unsafe.Pointer, int, int) { return nil, 3, 7 }, Map)
	f("the variable is the map", Slice, func(p unsafe.Pointer) unsafe.Pointer { return p })
	f("the map points at something else", Slice, func(p unsafe.Pointer) unsafe.Pointer { return unsafe.Add(Map(p), 8) })
}

func TestWrongTime(t *testing.T) {
	f := func(name string, layout reflect.Type, with func(wall, mono time.Time) time.Time) {
		t.Helper()
		if err := checkTime(layout, with); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	f("fields in another order", reflect.StructOf([]reflect.StructField{
		private("ext", reflect.TypeFor[int64]()), private("wall", reflect.TypeFor[uint64]()), private("loc", reflect.TypeFor[*time.Location]()),
	}), WithMonotonic)
	f("a field more", reflect.TypeFor[struct {
		moment
		more int
	}](), WithMonotonic)
	f("no struct", reflect.TypeFor[int](), WithMonotonic)
	f("no monotonic reading", reflect.TypeFor[time.Time](), func(wall, _ time.Time) time.Time { return wall })
	f("another epoch", reflect.TypeFor[time.Time](), func(wall, mono time.Time) time.Time { return WithMonotonic(wall.Add(time.Hour), mono) })
	f("a panic", reflect.TypeFor[time.Time](), func(_, _ time.Time) time.Time { panic("no") })
}

// private returns an unexported field.
func private(name string, typ reflect.Type) reflect.StructField {
	return reflect.StructField{Name: name, PkgPath: "time", Type: typ}
}
