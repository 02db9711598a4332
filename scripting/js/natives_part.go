package js

import (
	"reflect"
	"strings"
	"unsafe"

	"github.com/dop251/goja"

	"github.com/weir-run/weir/engine/golayout"
)

// In goja, a substring shares the memory of the string if all characters are
// ASCII; other substrings are copies. The native functions here return the same
// results as goja, but copy substrings as scripting.Parts does. goja calls no
// native function for line[i]; see (*walker).char for these characters.

// chars are the strings of one ASCII character.
var chars = func() (out [128]string) {
	for i := range out {
		out[i] = string(rune(i))
	}
	return out
}()

// sharedText returns the memory that substrings of t share. ok is false if
// substrings are copies.
func sharedText(t goja.Value) (s string, ok bool) {
	if s, ok := asciiText(t); ok {
		return s, true
	}
	if t, ok := t.(goja.String); ok && reflect.TypeOf(t).Kind() == reflect.Pointer { // goja has not inspected its characters yet
		return t.String(), true
	}
	return "", false
}

// asciiText returns a string that goja stores as bytes.
func asciiText(x goja.Value) (s string, ok bool) {
	if i := (*golayout.Interface)(unsafe.Pointer(&x)); asciiTab != nil {
		if i.Type == asciiTab {
			return *(*string)(i.Data), true
		}
		return "", false
	}
	if t, ok := x.(goja.String); ok && reflect.TypeOf(t).Kind() == reflect.String {
		return t.String(), true
	}
	return "", false
}

// asciiValue converts an ASCII string.
func asciiValue(s string) goja.Value {
	switch {
	case asciiTab == nil:
		return engine.ToValue(s)
	case len(s) == 1:
		return point(asciiTab, unsafe.Pointer(&chars[s[0]]))
	}
	return point(asciiTab, unsafe.Pointer(&s))
}

// owned returns x, or a copy if it is a short substring of a long text.
func (s *sandbox) owned(x goja.Value, text string) (own goja.Value, copied bool) {
	part, ok := asciiText(x)
	if !ok {
		return x, false
	}
	if len(part) == 1 && asciiTab != nil {
		return asciiValue(part), true
	}
	c := s.parts.Of(part, text)
	if unsafe.StringData(c) == unsafe.StringData(part) {
		return x, false
	}
	return asciiValue(c), true
}

// ownPart wraps functions that return a substring of this.
func (s *sandbox) ownPart(f nativeFunc) nativeFunc {
	return func(call goja.FunctionCall) goja.Value {
		if o := object(call.This); o != nil {
			call.This = s.text(o)
		}
		got := f(call)
		if text, ok := sharedText(call.This); ok {
			got, _ = s.owned(got, text)
		}
		return got
	}
}

// ownTrimmed is like ownPart, for functions that trim: for a non-ASCII text,
// goja creates a copy first and returns a part of it.
func (s *sandbox) ownTrimmed(f nativeFunc) nativeFunc {
	part := s.ownPart(f)
	return func(call goja.FunctionCall) goja.Value {
		if o := object(call.This); o != nil {
			call.This = s.text(o)
		}
		got := part(call)
		if _, ok := sharedText(call.This); ok {
			return got
		}
		if t, ok := asciiText(got); ok && len(t) > 0 {
			return asciiValue(strings.Clone(t))
		}
		return got
	}
}

// ownParts copies the substrings of t in the result of a native function: a
// list of substrings, or a match. It returns x.
func (s *sandbox) ownParts(x goja.Value, t goja.String) goja.Value {
	o := object(x)
	if o == nil {
		return x
	}
	text, ok := sharedText(t)
	if !ok || !s.parts.Long(text) {
		return x
	}
	items := s.layout.items(o)
	for i, v := range items {
		items[i], _ = s.owned(v, text)
	}
	if groups := object(o.Get("groups")); groups != nil {
		s.ownGroups(groups, text)
	}
	return x
}

// ownMatch is like ownParts, for the arguments that goja passes to a function
// for each match in t.
func (s *sandbox) ownMatch(args []goja.Value, t goja.String) {
	text, ok := sharedText(t)
	if !ok || !s.parts.Long(text) {
		return
	}
	for i, v := range args {
		if groups := object(v); groups != nil {
			s.ownGroups(groups, text)
			continue
		}
		args[i], _ = s.owned(v, text)
	}
}

// ownGroups copies the named groups of a match.
func (s *sandbox) ownGroups(groups *goja.Object, text string) {
	for _, name := range groups.Keys() {
		if own, copied := s.owned(groups.Get(name), text); copied {
			_ = groups.Set(name, own) // a script may have created the object, and refuse the assignment
		}
	}
}
