package engine

import (
	"math"
	"reflect"
	"regexp"
	"time"

	"github.com/weir-run/weir/engine/flow"
)

// equal reports whether two values of arguments or exports have the same
// meaning.
//
// It is like reflect.DeepEqual, except that receivers are equal only if they
// are identical, because comparing their contents would be a meaningless data
// race, and that NaN equals itself.
func equal(a, b any) bool { return equalValues(reflect.ValueOf(a), reflect.ValueOf(b), 0) }

// maxWalk limits the depth for recursive values; deeper values count as
// different.
const maxWalk = 100

var (
	typeReceiver = reflect.TypeFor[*flow.Receiver]()
	typeRegexp   = reflect.TypeFor[*regexp.Regexp]()
	typeTime     = reflect.TypeFor[time.Time]()
)

func equalValues(a, b reflect.Value, depth int) bool {
	if depth++; depth > maxWalk {
		return false
	}
	if !a.IsValid() || !b.IsValid() {
		return a.IsValid() == b.IsValid()
	}
	if a.Type() != b.Type() {
		return false
	}
	switch a.Kind() {
	case reflect.Pointer:
		if a.Pointer() == b.Pointer() {
			return true
		}
		if a.IsNil() || b.IsNil() || a.Type() == typeReceiver {
			return false
		}
		if a.Type() == typeRegexp && a.CanInterface() && b.CanInterface() {
			return a.Interface().(*regexp.Regexp).String() == b.Interface().(*regexp.Regexp).String()
		}
		return equalValues(a.Elem(), b.Elem(), depth)
	case reflect.Interface:
		if a.IsNil() || b.IsNil() {
			return a.IsNil() == b.IsNil()
		}
		return equalValues(a.Elem(), b.Elem(), depth)
	case reflect.Struct:
		if a.Type() == typeTime && a.CanInterface() && b.CanInterface() {
			return a.Interface().(time.Time).Equal(b.Interface().(time.Time))
		}
		for i := range a.NumField() {
			if !equalValues(a.Field(i), b.Field(i), depth) {
				return false
			}
		}
		return true
	case reflect.Slice:
		if a.IsNil() != b.IsNil() {
			return false
		}
		fallthrough
	case reflect.Array:
		if a.Len() != b.Len() {
			return false
		}
		if a.Kind() == reflect.Slice && a.Pointer() == b.Pointer() {
			return true
		}
		for i := range a.Len() {
			if !equalValues(a.Index(i), b.Index(i), depth) {
				return false
			}
		}
		return true
	case reflect.Map:
		if a.IsNil() != b.IsNil() || a.Len() != b.Len() {
			return false
		}
		if a.Pointer() == b.Pointer() {
			return true
		}
		for it := a.MapRange(); it.Next(); {
			other := b.MapIndex(it.Key())
			if !other.IsValid() || !equalValues(it.Value(), other, depth) {
				return false
			}
		}
		return true
	case reflect.Func:
		// Two closures of one function cannot be told apart.
		return a.IsNil() && b.IsNil()
	case reflect.Float32, reflect.Float64:
		return math.Float64bits(a.Float()) == math.Float64bits(b.Float())
	}
	return a.Equal(b)
}
