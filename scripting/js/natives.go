package js

import (
	"fmt"

	"github.com/dop251/goja"

	"github.com/weir-run/weir/scripting"
)

const (
	// maxItems is the maximum length of a list that one native function creates or
	// iterates over.
	maxItems = 1 << 20
	// maxTargets is the maximum length of a chain of Proxies and bound functions.
	maxTargets = 1000
	// maxArgs is the maximum number of arguments that a list is converted to.
	maxArgs = 1 << 16
	// maxBuffer is the maximum size of a buffer, in bytes.
	maxBuffer = scripting.MaxString
	// shortList is the length up to which a native function gets an array-like
	// object directly.
	shortList = 1 << 10
	// maxDigits is the maximum length of a text that is converted to a BigInt, and
	// maxBits the maximum number of bits of a BigInt that may be requested.
	maxDigits, maxBits = 10_000, 1 << 16
)

// natives are the native functions that could take unlimited time or memory in
// one call, by path, with the function that limits each. The work of all other
// native functions is limited by the size of their arguments, which the script
// had to create, or they call functions that check the budget.
var natives = func() map[string]func(*sandbox, nativeFunc) nativeFunc {
	m := map[string]func(*sandbox, nativeFunc) nativeFunc{
		"Function":                       (*sandbox).noText,
		"GeneratorFunction":              (*sandbox).noText,
		"AsyncFunction":                  (*sandbox).noText,
		"Function.prototype.apply":       (*sandbox).fewArgs,
		"Function.prototype.bind":        (*sandbox).bind,
		"Proxy.revocable":                (*sandbox).revocable,
		"Reflect.apply":                  (*sandbox).fewArgs,
		"Reflect.construct":              (*sandbox).fewArgs,
		"Array.prototype.concat":         (*sandbox).concatLists,
		"Array.prototype.flat":           (*sandbox).overList,
		"Array.prototype.join":           (*sandbox).join,
		"Array.prototype.toLocaleString": (*sandbox).overList,
		"Array.prototype.toString":       (*sandbox).overList,
		"Array.prototype.sort":           (*sandbox).sort,
		"Array.prototype.toSorted":       (*sandbox).sort,
		"Array.prototype.toReversed":     (*sandbox).copied,
		"Array.prototype.toSpliced":      (*sandbox).copied,
		"Array.prototype.with":           (*sandbox).copied,
		"Array.from":                     (*sandbox).fromList,
		"TypedArray.from":                (*sandbox).fromList,
		"TypedArray.prototype.join":      (*sandbox).joinNumbers,
		"TypedArray.prototype.toString":  (*sandbox).overList,
		"TypedArray.prototype.set":       (*sandbox).fromList,
		"BigInt":                         (*sandbox).fewDigits,
		"BigInt.asIntN":                  (*sandbox).fewBits,
		"BigInt.asUintN":                 (*sandbox).fewBits,
		"String.prototype.concat":        (*sandbox).concatStrings,
		"String.prototype.indexOf":       (*sandbox).search,
		"String.prototype.includes":      (*sandbox).search,
		"String.prototype.lastIndexOf":   (*sandbox).search,
		"String.prototype.normalize":     (*sandbox).normalize,
		"String.prototype.padEnd":        (*sandbox).pad,
		"String.prototype.padStart":      (*sandbox).pad,
		"String.prototype.repeat":        (*sandbox).repeat,
		"String.prototype.replace":       (*sandbox).replaceText,
		"String.prototype.replaceAll":    (*sandbox).replaceAllText,
		"String.prototype.split":         (*sandbox).split,
		"String.raw":                     (*sandbox).raw,
		"JSON.parse":                     (*sandbox).parseJSON,
		"JSON.stringify":                 (*sandbox).stringifyJSON,
		"RegExp":                         (*sandbox).shortPattern,
		"RegExp.prototype.compile":       (*sandbox).shortPattern,
		"RegExp.prototype.exec":          (*sandbox).match,
		"RegExp.prototype.test":          (*sandbox).match,
	}
	for _, name := range []string{
		"copyWithin", "every", "fill", "filter", "find", "findIndex", "findLast", "findLastIndex", "flatMap", "forEach",
		"includes", "indexOf", "lastIndexOf", "map", "reduce", "reduceRight", "reverse", "shift", "slice", "some", "splice",
		"unshift",
	} {
		m["Array.prototype."+name] = (*sandbox).overList
	}
	m["RegExp.prototype[Symbol.match]"] = (*sandbox).matchAll
	m["RegExp.prototype[Symbol.matchAll]"] = (*sandbox).matchIterator
	m["RegExp.prototype[Symbol.search]"] = (*sandbox).match
	m["RegExp.prototype[Symbol.split]"] = (*sandbox).splitMatches
	for _, name := range []string{"at", "charAt", "slice", "substr", "substring"} {
		m["String.prototype."+name] = (*sandbox).ownPart
	}
	for _, name := range []string{"trim", "trimEnd", "trimStart"} {
		m["String.prototype."+name] = (*sandbox).ownTrimmed
	}
	for _, name := range []string{"assign", "entries", "getOwnPropertyDescriptors", "getOwnPropertyNames", "keys", "values"} {
		m["Object."+name] = (*sandbox).fewKeys
	}
	m["RegExp.prototype[Symbol.replace]"] = (*sandbox).replaceMatches
	return m
}()

// constructors are the equivalent for calls with new.
var constructors = func() map[string]func(*sandbox, constructFunc) constructFunc {
	m := map[string]func(*sandbox, constructFunc) constructFunc{
		"Function":          (*sandbox).noNew,
		"GeneratorFunction": (*sandbox).noNew,
		"AsyncFunction":     (*sandbox).noNew,
		"ArrayBuffer":       (*sandbox).newBuffer,
		"Proxy":             (*sandbox).newProxy,
		"RegExp":            (*sandbox).newPattern,
	}
	for name := range allowed {
		if len(name) > 5 && name[len(name)-5:] == "Array" {
			m[name] = (*sandbox).newBuffer
		}
	}
	return m
}()

// throw throws an error in the script.
func (s *sandbox) throw(ctor *goja.Object, format string, args ...any) {
	o, err := s.rt.New(ctor, s.rt.ToValue(fmt.Sprintf(format, args...)))
	if err != nil {
		panic(err)
	}
	panic(o)
}

func (s *sandbox) rangeError(format string, args ...any) {
	s.throw(s.errors.rangeError, format, args...)
}

// arg returns an argument, or undefined if it is missing.
func arg(args []goja.Value, i int) goja.Value {
	if i < len(args) {
		return args[i]
	}
	return goja.Undefined()
}

func isUndefined(v goja.Value) bool { return v == nil || goja.IsUndefined(v) }

// object returns v if it is an object, or nil.
func object(v goja.Value) *goja.Object {
	o, _ := v.(*goja.Object)
	return o
}

// fewTargets limits the length of a chain of Proxies and bound functions,
// because goja recurses for each of them with a list of arguments.
func (s *sandbox) fewTargets(o *goja.Object) {
	for n := 0; o != nil; n++ {
		k := s.layout.kindOf(o)
		if k.target == 0 {
			return
		}
		if n >= maxTargets {
			s.rangeError("cannot put more than %d Proxies and bound functions behind each other", maxTargets)
		}
		o = s.layout.targetOf(o, k)
	}
}

func (s *sandbox) bind(f nativeFunc) nativeFunc {
	return func(call goja.FunctionCall) goja.Value {
		s.fewTargets(object(call.This))
		return f(call)
	}
}

func (s *sandbox) revocable(f nativeFunc) nativeFunc {
	return func(call goja.FunctionCall) goja.Value {
		s.fewTargets(object(call.Argument(0)))
		return f(call)
	}
}

func (s *sandbox) newProxy(build constructFunc) constructFunc {
	return func(args []goja.Value, newTarget *goja.Object) *goja.Object {
		s.fewTargets(object(arg(args, 0)))
		return build(args, newTarget)
	}
}

// noText replaces functions that compile text.
func (s *sandbox) noText(nativeFunc) nativeFunc {
	return func(goja.FunctionCall) goja.Value { return s.refuseText() }
}

func (s *sandbox) noNew(constructFunc) constructFunc {
	return func([]goja.Value, *goja.Object) *goja.Object { return s.refuseText() }
}

func (s *sandbox) refuseText() *goja.Object {
	panic(s.rt.NewTypeError("cannot make a function of text: write it in the file"))
}

func (s *sandbox) fewDigits(f nativeFunc) nativeFunc {
	return func(call goja.FunctionCall) goja.Value {
		v := call.Argument(0)
		if o := object(v); o != nil {
			v = o.ToString() // a primitive, whose text has a limited length
			call.Arguments = []goja.Value{v}
		}
		if t, ok := v.(goja.String); ok && t.Length() > maxDigits {
			s.rangeError("cannot make a BigInt of %d characters: the limit is %d", t.Length(), maxDigits)
		}
		return f(call)
	}
}

func (s *sandbox) fewBits(f nativeFunc) nativeFunc {
	return func(call goja.FunctionCall) goja.Value {
		n := call.Argument(0).ToNumber()
		if bits := n.ToInteger(); bits > maxBits && bits <= 1<<53-1 {
			s.rangeError("cannot take %d bits: the limit is %d", bits, maxBits)
		}
		call.Arguments = append([]goja.Value{n}, call.Arguments[min(1, len(call.Arguments)):]...)
		return f(call)
	}
}

// fewKeys limits functions that list the keys of a text.
func (s *sandbox) fewKeys(f nativeFunc) nativeFunc {
	return func(call goja.FunctionCall) goja.Value {
		for _, v := range call.Arguments {
			s.spread(v)
		}
		return f(call)
	}
}

// spread checks that a value has no more keys than a script gave it, because a
// text has one for each character.
func (s *sandbox) spread(v goja.Value) goja.Value {
	n := int64(0)
	if t, ok := v.(goja.String); ok {
		n = int64(t.Length())
	} else if o := object(v); o != nil && s.layout.kindOf(o).name == "stringObject" {
		n = s.lengthOf(o)
	}
	if n > maxItems {
		s.rangeError("cannot list the characters of a text of %d: the limit is %d", n, maxItems)
	}
	return v
}

// newBuffer limits the size of buffers, in bytes.
func (s *sandbox) newBuffer(build constructFunc) constructFunc {
	return func(args []goja.Value, newTarget *goja.Object) *goja.Object {
		s.budget.check()
		v := arg(args, 0)
		o := object(v)
		switch {
		case isUndefined(v), goja.IsNull(v):
		case o == nil:
			n := v.ToNumber() // only once: it may be a text
			if n.ToInteger() > maxBuffer/8 && n.ToInteger() > maxBuffer/max(1, s.itemBytes(newTarget)) {
				s.rangeError("cannot make a buffer of %d items: the limit is %d bytes", n.ToInteger(), maxBuffer)
			}
			args = append([]goja.Value{n}, args[1:]...)
		case s.layout.kindOf(o).array || s.layout.kindOf(o).buffer:
			if n := s.lengthOf(o); n > maxItems && s.layout.kindOf(o).array {
				s.tooLong(n)
			}
		case isUndefined(o.GetSymbol(goja.SymIterator)):
			args = append([]goja.Value{s.lent(o)}, args[1:]...)
			if n := s.lengthOf(args[0].(*goja.Object)); n > maxItems {
				s.tooLong(n)
			}
		}
		return build(args, newTarget)
	}
}

// itemBytes returns the size of an item of a typed array, and 1 for a buffer.
func (s *sandbox) itemBytes(ctor *goja.Object) int64 {
	if ctor == nil {
		return 8
	}
	if v := ctor.Get("BYTES_PER_ELEMENT"); !isUndefined(v) && object(v) == nil {
		return v.ToInteger()
	}
	return 8
}
