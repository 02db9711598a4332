package js

import (
	"fmt"
	"iter"
	"regexp"
	"strings"
	"sync"

	"github.com/dop251/goja"

	"github.com/weir-run/weir/engine/regex"
	"github.com/weir-run/weir/scripting"
)

// sandbox prevents scripts from changing built-in objects, from compiling text,
// and from work in a single native function that no limit could stop.
type sandbox struct {
	rt      *goja.Runtime
	layout  *gojaLayout
	budget  *budget
	own     map[string]bool         // global names of the host
	roots   map[*goja.Object]string // objects that are reachable on several paths, by object
	met     func(path string)       // called with each path that is limited or made assignable; may be nil
	depth   int                     // nesting depth of native functions
	joining []*goja.Object          // nested lists that are being converted to texts
	parts   scripting.Parts
	kept    iter.Seq[goja.Value] // values of the script that the host keeps between calls; may be nil

	setters    map[string]*goja.Object // setters of properties that scripts may override
	reflectHas goja.Callable
	sizes      map[*regexp.Regexp]*regex.Regexp
	sizesUsed  int // bytes

	pattern, patternProto *goja.Object // RegExp and its prototype

	errors struct{ rangeError, syntaxError *goja.Object }
}

// allowed are the globals of a script. goja also has eval and GoError, which
// are removed.
var allowed = set(
	"globalThis", "undefined", "NaN", "Infinity", "isNaN", "isFinite", "parseInt", "parseFloat",
	"Object", "Function", "Array", "String", "Number", "Boolean", "BigInt", "Symbol", "Math", "JSON", "Date", "RegExp",
	"Map", "Set", "WeakMap", "WeakSet", "Promise", "Proxy", "Reflect",
	"Error", "AggregateError", "TypeError", "ReferenceError", "SyntaxError", "RangeError", "EvalError", "URIError",
	"decodeURI", "decodeURIComponent", "encodeURI", "encodeURIComponent", "escape", "unescape",
	"ArrayBuffer", "DataView", "Uint8Array", "Uint8ClampedArray", "Int8Array", "Uint16Array", "Int16Array", "Uint32Array",
	"Int32Array", "Float32Array", "Float64Array", "BigInt64Array", "BigUint64Array",
)

func set(names ...string) map[string]bool {
	m := make(map[string]bool, len(names))
	for _, n := range names {
		m[n] = true
	}
	return m
}

const (
	// maxStack is the maximum depth of calls. A call through native functions may
	// take some kilobytes of the goroutine's stack.
	maxStack = 1000
	// maxDepth is the maximum depth of native functions. Any function that
	// converts a value to a text or a number can recurse without code of the
	// script in between: let o.toString be String.prototype.trim.
	maxDepth = 1000
)

// roots are objects that a script reaches without a name: the prototypes of
// literals, and objects that the language creates.
var roots = sync.OnceValue(func() *goja.Program {
	return goja.MustCompile("", `[
		["Function.prototype", Object.getPrototypeOf(function () {})],
		["AsyncFunction.prototype", Object.getPrototypeOf(async () => {})],
		["GeneratorFunction.prototype", Object.getPrototypeOf(function* () {})],
		["ArrayIterator.prototype", Object.getPrototypeOf([][Symbol.iterator]())],
		["StringIterator.prototype", Object.getPrototypeOf(""[Symbol.iterator]())],
		["BigInt.prototype", Object.getPrototypeOf(1n)],
	]`, true)
})

// newSandbox makes rt safe, including the host's definitions in it. It must be
// called before any code of a script runs.
func newSandbox(rt *goja.Runtime, b *budget) *sandbox { return openSandbox(rt, b, nil) }

func openSandbox(rt *goja.Runtime, b *budget, met func(string)) *sandbox {
	limitPatterns()
	s := &sandbox{rt: rt, met: met, layout: theLayout(), budget: b, own: map[string]bool{}, setters: map[string]*goja.Object{}, sizes: map[*regexp.Regexp]*regex.Regexp{}}
	rt.SetMaxCallStackSize(maxStack)
	rt.SetFieldNameMapper(s)
	global := rt.GlobalObject()
	spread := rt.ToValue(func(call goja.FunctionCall) goja.Value { return s.spread(call.Argument(0)) })
	if err := global.DefineDataProperty(spreadName, spread, goja.FLAG_FALSE, goja.FLAG_FALSE, goja.FLAG_FALSE); err != nil {
		panic(fmt.Sprintf("BUG: cannot define %s: %v", spreadName, err))
	}
	for _, name := range global.GetOwnPropertyNames() {
		if !s.templated(global, name) {
			s.own[name] = true
		}
	}
	// All roots get their names before the first is frozen, because freezing a
	// root reaches further roots.
	type root struct {
		path string
		o    *goja.Object
	}
	list := []root{{"Object.prototype", global.Prototype()}}
	for _, name := range []string{
		"Function", "Object", "Array", "String", "Number", "Boolean", "RegExp", "Promise",
		"Error", "TypeError", "ReferenceError", "SyntaxError", "RangeError", "EvalError", "URIError", "AggregateError",
	} {
		o := rt.Get(name).(*goja.Object)
		list = append(list, root{name, o}, root{name + ".prototype", o.Get("prototype").(*goja.Object)})
	}
	got, err := rt.RunProgram(roots())
	if err != nil {
		panic(fmt.Sprintf("BUG: cannot look at the language's objects: %v", err))
	}
	more := got.(*goja.Object)
	for i := range int(more.Get("length").ToInteger()) {
		pair := more.Get(fmt.Sprint(i)).(*goja.Object)
		list = append(list, root{pair.Get("0").String(), pair.Get("1").(*goja.Object)})
	}
	s.roots = make(map[*goja.Object]string, len(list))
	for _, r := range list {
		s.roots[r.o] = r.path
	}
	s.pattern = rt.Get("RegExp").(*goja.Object)
	s.patternProto = s.pattern.Get("prototype").(*goja.Object)
	s.errors.rangeError = rt.Get("RangeError").(*goja.Object)
	s.errors.syntaxError = rt.Get("SyntaxError").(*goja.Object)
	for _, r := range list {
		s.freeze(r.o, r.path)
	}
	s.freeze(global, "")
	return s
}

// hidden freezes objects that are reachable only through the functions of an
// intrinsic.
func (s *sandbox) hidden(path string) {
	src, ok := hiddenBehind[path]
	if !ok {
		return
	}
	v, err := s.rt.RunProgram(src())
	if err != nil {
		panic(fmt.Sprintf("BUG: cannot look behind %s: %v", path, err))
	}
	s.freeze(v.(*goja.Object), path+".iterator")
}

var hiddenBehind = map[string]func() *goja.Program{
	"Map":              compiled(`Object.getPrototypeOf(new Map().entries())`),
	"Set":              compiled(`Object.getPrototypeOf(new Set().entries())`),
	"RegExp.prototype": compiled(`Object.getPrototypeOf("".matchAll(/x/g))`),
	// These properties give a script access to built-in symbols. Symbol itself is
	// frozen when its name is resolved.
	"Object.getOwnPropertySymbols":     symbols,
	"Object.getOwnPropertyDescriptors": symbols,
	"Proxy":                            symbols,
	"Reflect":                          symbols,
}

var symbols = compiled(`Symbol`)

func compiled(src string) func() *goja.Program {
	return sync.OnceValue(func() *goja.Program { return goja.MustCompile("", src, true) })
}

// wrap returns a replacement for a native function that checks whether the call
// was stopped, as goja does before every instruction, so that a loop of native
// functions can be stopped.
func (s *sandbox) wrap(path string, call nativeFunc, build constructFunc) (nativeFunc, constructFunc) {
	if s.met != nil {
		s.met(path)
	}
	if limit, ok := constructors[path]; ok && build != nil {
		build = limit(s, build)
	}
	if limit, ok := natives[path]; ok {
		call = limit(s, call)
	}
	b := s.budget
	if inner := call; inner != nil {
		call = func(c goja.FunctionCall) goja.Value {
			if b.flag.Load() != 0 {
				b.check()
			}
			if s.depth >= maxDepth {
				s.depth -= 10 // leaves room for creating the error
				defer func() { s.depth += 10 }()
				s.rangeError("cannot go deeper than %d levels", maxDepth)
			}
			s.depth++
			defer s.leave()
			return inner(c)
		}
	}
	return call, build
}

func (s *sandbox) leave() { s.depth-- }

// overridden reports whether scripts assign properties to their own objects
// that override those of the object at path. Without special handling, such an
// assignment would be refused, because the inherited property is read-only.
func overridden(path string) bool { return mayOverride[path] }

var mayOverride = func() map[string]bool {
	m := map[string]bool{"Error.prototype.constructor": true, "Error.prototype.toString": true}
	for _, name := range []string{
		"constructor", "hasOwnProperty", "isPrototypeOf", "propertyIsEnumerable", "toLocaleString", "toString", "valueOf",
	} {
		m["Object.prototype."+name] = true
	}
	for _, name := range []string{"Error", "TypeError", "ReferenceError", "SyntaxError", "RangeError", "EvalError", "URIError", "AggregateError"} {
		m[name+".prototype.name"] = true
		m[name+".prototype.message"] = true
	}
	return m
}()

// assignable makes an inherited property assignable, as if it were not frozen:
// it gets a getter for its value, and a setter that creates an own property of
// the object.
func (s *sandbox) assignable(p *property, path string) {
	if s.met != nil {
		s.met(path)
	}
	value, name := p.value, path[strings.LastIndexByte(path, '.')+1:]
	set := s.setters[name]
	if set == nil {
		set = s.function("set "+name, func(call goja.FunctionCall) goja.Value {
			o, ok := call.This.(*goja.Object)
			if !ok {
				return goja.Undefined()
			}
			if s.layout.kindOf(o).base && !(*base)(s.layout.data(o)).extensible {
				panic(s.rt.NewTypeError("cannot assign to %s: the object is read-only", name))
			}
			if err := o.DefineDataProperty(name, call.Argument(0), goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_TRUE); err != nil {
				panic(err)
			}
			return goja.Undefined()
		})
		s.setters[name] = set
	}
	get := s.function("get "+name, func(goja.FunctionCall) goja.Value { return value })
	*p = property{accessor: true, enumerable: p.enumerable, getter: get, setter: set}
}

func (s *sandbox) function(path string, f nativeFunc) *goja.Object {
	o := s.rt.ToValue(f).(*goja.Object)
	s.freeze(o, path)
	return o
}
