// Package golayout contains copies of private layouts of the Go runtime:
// interface values, slices, maps and time.Time. Each copy has a check, which
// compares it with the running Go once, at first use. Call the check before
// using a copy, and do without the copy if the check returns an error. A check
// never panics.
//
// It is not for layouts of libraries: a package that copies one has its own
// layout.go.
package golayout

import (
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"runtime/debug"
	"sync"
	"time"
	"unsafe"
)

// Interface is an interface value. Type identifies the dynamic type, among
// values of the same interface type. Data is the value itself if Direct reports
// true for the dynamic type, else it points at the value.
type Interface struct{ Type, Data unsafe.Pointer }

// Of returns the words of x.
func Of(x any) Interface { return *(*Interface)(unsafe.Pointer(&x)) }

// Direct reports whether interfaces hold a value of type t in their data word
// instead of pointing at it. Since Go 1.26 they do if it is a pointer and takes
// no more room, whatever structs and arrays are around it.
func Direct(t reflect.Type) bool {
	return t.Size() == unsafe.Sizeof(unsafe.Pointer(nil)) && hasPointer(t)
}

func hasPointer(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Func, reflect.Chan, reflect.UnsafePointer:
		return true
	case reflect.Struct:
		for i := range t.NumField() {
			if hasPointer(t.Field(i).Type) {
				return true
			}
		}
	case reflect.Array:
		return t.Len() > 0 && hasPointer(t.Elem())
	}
	return false
}

// CheckInterfaces returns why Interface and Direct are wrong for this Go
// version, or nil if they are correct.
var CheckInterfaces = sync.OnceValue(func() error { return checkInterfaces(Of, Direct) })

func checkInterfaces(of func(any) Interface, direct func(reflect.Type) bool) error {
	return Guard(func() error {
		differ := fmt.Errorf("interface values are laid out differently in %s", runtime.Version())
		var x any
		if unsafe.Sizeof(x) != unsafe.Sizeof(Interface{}) {
			return differ
		}
		n := new(int)
		a, b, text := 1.5, 2.5, "text"
		wa, wb, wt := of(a), of(b), of(text)
		if wa.Type == nil || wa.Type != wb.Type || wa.Type == wt.Type || wa.Data == nil || wb.Data == nil || wt.Data == nil ||
			of(nil) != (Interface{}) || *(*float64)(wa.Data) != a || *(*float64)(wb.Data) != b || *(*string)(wt.Data) != text {
			return differ
		}
		*(*Interface)(unsafe.Pointer(&x)) = Interface{wt.Type, unsafe.Pointer(&text)}
		if got, ok := x.(string); !ok || got != text {
			return differ
		}
		type one struct{ p *int }
		type mixed struct {
			_ struct{}
			p *int
		}
		m := map[int]int{1: 1}
		for _, x := range []any{n, m, one{n}, [1]*int{n}, struct{ one }{one{n}}, unsafe.Pointer(n), mixed{p: n}, [2]*int{n}, [0]*int{}, struct{ a [0]*int }{}, *n, struct{ n int }{}} {
			held := false // the data word is the value
			switch d := of(x).Data; d {
			case unsafe.Pointer(n), reflect.ValueOf(m).UnsafePointer():
				held = true
			}
			if held != direct(reflect.TypeOf(x)) {
				return fmt.Errorf("interfaces hold values of type %T differently in %s", x, runtime.Version())
			}
		}
		return nil
	})
}

// Slice returns the first element, the length and the capacity, in elements, of
// the slice of any element type at p.
func Slice(p unsafe.Pointer) (first unsafe.Pointer, length, capacity int) {
	s := *(*[]byte)(p)
	return unsafe.Pointer(unsafe.SliceData(s)), len(s), cap(s)
}

// Map returns a pointer that identifies the map at p, or nil if the map is nil.
func Map(p unsafe.Pointer) unsafe.Pointer { return *(*unsafe.Pointer)(p) }

// CheckContainers returns why Slice and Map are wrong for this Go version, or
// nil if they are correct.
var CheckContainers = sync.OnceValue(func() error { return checkContainers(Slice, Map) })

func checkContainers(slice func(unsafe.Pointer) (unsafe.Pointer, int, int), id func(unsafe.Pointer) unsafe.Pointer) error {
	return Guard(func() error {
		s := make([]string, 3, 7)
		if first, n, c := slice(unsafe.Pointer(&s)); first != unsafe.Pointer(&s[0]) || n != 3 || c != 7 {
			return fmt.Errorf("slices are laid out differently in %s", runtime.Version())
		}
		m, same, other, none := map[string]int{"a": 1}, map[string]int(nil), map[string]int{"a": 1}, map[string]int(nil)
		same = m
		if p := id(unsafe.Pointer(&m)); unsafe.Sizeof(m) != unsafe.Sizeof(p) || p != reflect.ValueOf(m).UnsafePointer() || p != id(unsafe.Pointer(&same)) ||
			p == id(unsafe.Pointer(&other)) || id(unsafe.Pointer(&none)) != nil {
			return fmt.Errorf("maps are laid out differently in %s", runtime.Version())
		}
		return nil
	})
}

// moment mirrors time.Time.
type moment struct {
	wall uint64
	ext  int64
	loc  *time.Location
}

// WithMonotonic returns wall with the monotonic reading mono. Otherwise, only
// time.Now creates such times.
func WithMonotonic(wall, mono time.Time) time.Time {
	const (
		hasMonotonic = 1 << 63
		nsecBits     = 30
	)
	since1885 := wall.Unix() - time.Date(1885, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
	layout := (*moment)(unsafe.Pointer(&wall))
	layout.wall = hasMonotonic | uint64(since1885)<<nsecBits | uint64(wall.Nanosecond())
	layout.ext = mono.UnixNano()
	return wall
}

// CheckTime returns why WithMonotonic does not work with this Go version, or
// nil if it does.
var CheckTime = sync.OnceValue(func() error { return checkTime(reflect.TypeFor[time.Time](), WithMonotonic) })

func checkTime(theirs reflect.Type, with func(wall, mono time.Time) time.Time) error {
	return Guard(func() error {
		differ := fmt.Errorf("time.Time is laid out differently in %s", runtime.Version())
		ours := reflect.TypeFor[moment]()
		if theirs.Kind() != reflect.Struct || theirs.NumField() != ours.NumField() || theirs.Size() != ours.Size() {
			return differ
		}
		for i := range ours.NumField() {
			if a, b := ours.Field(i), theirs.Field(i); a.Name != b.Name || a.Type != b.Type || a.Offset != b.Offset {
				return differ
			}
		}
		began := time.Date(2025, 1, 2, 3, 4, 5, 6, time.UTC)
		wall := began.Add(time.Hour) // the clock was set in the meantime
		a, b := with(began, began), with(wall, began.Add(time.Second))
		if !a.Equal(began) || !b.Round(0).Equal(wall) || a.Location() != time.UTC || b.Sub(a) != time.Second || b.Round(0).Sub(a.Round(0)) != time.Hour {
			return differ
		}
		return nil
	})
}

// Guard calls check and converts a panic, or a fault of an invalid pointer, to
// an error.
func Guard(check func() error) (err error) {
	before := debug.SetPanicOnFault(true)
	defer func() {
		debug.SetPanicOnFault(before)
		if v := recover(); v != nil {
			err = errors.Join(err, fmt.Errorf("cannot check a memory layout: %v", v))
		}
	}()
	return check()
}
