package js

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dop251/goja"

	"github.com/weir-run/weir/scripting"
)

// libPrefix is the prefix of the standard library's modules in an import.
const libPrefix = "weir/"

// ownModule reports whether an import is one of weir's own modules.
func (p *program) ownModule(name string) bool {
	if name == "weir" || name == testModule && p.test != nil {
		return true
	}
	lib, ok := strings.CutPrefix(name, libPrefix)
	return ok && p.stdlib[lib] != nil
}

// module runs a file, once per VM, and returns its exports.
func (v *vm) module(c *chunk) (goja.Value, error) {
	if m := v.loaded[c]; m != nil {
		return m.Get("exports"), nil // also while it loads: an import cycle gets the exports so far
	}
	m := v.rt.NewObject()
	v.loaded[c] = m
	if c.prog == nil {
		x := v.fixed(c.data, 0)
		v.put(m, "exports", x)
		return x, nil
	}
	v.put(m, "exports", v.rt.NewObject())
	fn, err := v.rt.RunProgram(c.prog)
	if err != nil {
		return nil, err
	}
	call, ok := goja.AssertFunction(fn)
	if !ok {
		return nil, fmt.Errorf("BUG: %s is no function", c.file.Name)
	}
	require := v.function1("require", func(call goja.FunctionCall) goja.Value { return v.require(c, call.Argument(0).String()) })
	if _, err := call(goja.Undefined(), m.Get("exports"), require, m); err != nil {
		return nil, err
	}
	return m.Get("exports"), nil
}

// require returns the value of an import.
func (v *vm) require(c *chunk, name string) goja.Value {
	if target := c.imports[name]; target != nil {
		m, err := v.module(target)
		v.must(err)
		return m
	}
	if !v.prog.ownModule(name) {
		v.raise(fmt.Errorf("cannot import %q here: an import takes a constant string, so that weir knows which files a component is made of", name))
	}
	if m := v.libs[name]; m != nil {
		return m
	}
	var m *goja.Object
	if name == "weir" {
		m = v.weir()
	} else {
		m = v.bind(v.prog.stdlib[strings.TrimPrefix(name, libPrefix)])
	}
	v.libs[name] = m
	return m
}

// fixed converts the value of a data file to a read-only value.
func (v *vm) fixed(x scripting.Value, depth int) goja.Value {
	if depth > maxValueDepth {
		v.raise(fmt.Errorf("cannot use data that nests deeper than %d", maxValueDepth))
	}
	switch x := x.(type) {
	case *scripting.List:
		items := make([]any, len(x.Items))
		for i, e := range x.Items {
			items[i] = v.fixed(e, depth+1)
		}
		return v.freeze(v.rt.NewArray(items...))
	case *scripting.Map:
		o := v.rt.NewObject()
		for _, k := range x.Keys() {
			e, _ := x.Get(k)
			v.put(o, k, v.fixed(e, depth+1))
		}
		return v.freeze(o)
	}
	return v.fromGo(x)
}

// weir creates the module weir: the kinds of components and their argument
// types.
func (v *vm) weir() *goja.Object {
	m := v.rt.NewObject()
	for _, kind := range scripting.ComponentKinds {
		fn := definer(kind)
		v.method(m, fn, func(call goja.FunctionCall) goja.Value {
			o, ok := call.Argument(0).(*goja.Object)
			if !ok || o.ClassName() != "Object" {
				v.raise(fmt.Errorf("cannot use %s(%s): write %s({ … })", fn, kindOf(call.Argument(0)), fn))
			}
			raw := &scripting.Raw{Kind: kind, Camel: true}
			v.must(v.fields(o, raw))
			return v.box(raw)
		})
	}
	v.put(m, "arg", v.weirArg())
	v.put(m, "state", v.weirState())
	return v.freeze(v.guard(m, func(name string) error {
		return fmt.Errorf("weir has no %q: there is %s", name, strings.Join(m.Keys(), ", "))
	}))
}

// definer returns the name of the function that creates definitions of a kind:
// defineTransform.
func definer(kind scripting.ComponentKind) string {
	return scripting.CamelCase("define_" + string(kind))
}

// weirArg creates arg: the types of arguments.
func (v *vm) weirArg() *goja.Object {
	m := v.rt.NewObject()
	names := make([]string, len(scripting.ArgKinds))
	for i, kind := range scripting.ArgKinds {
		names[i] = string(kind)
		v.method(m, string(kind), func(call goja.FunctionCall) goja.Value {
			a, err := scripting.NewArg(kind, v.options("arg."+string(kind), call.Argument(0)), v.line())
			v.must(reworded(err))
			return v.box(a)
		})
	}
	return v.freeze(v.guard(m, func(name string) error {
		return fmt.Errorf("there is no argument type %q: there is %s", name, strings.Join(names, ", "))
	}))
}

// weirState creates state: the kinds of state that a definition declares.
func (v *vm) weirState() *goja.Object {
	m := v.rt.NewObject()
	for _, kind := range scripting.StateKinds {
		v.method(m, string(kind), func(call goja.FunctionCall) goja.Value {
			opts := map[string]any{}
			for k, x := range v.options("state."+string(kind), call.Argument(0)) {
				opts[v.declared(k)] = x
			}
			s, err := scripting.NewState(kind, opts, v.line())
			v.must(reworded(err))
			return v.box(s)
		})
	}
	return v.freeze(v.guard(m, func(name string) error { return reworded(scripting.NoStateKind(name)) }))
}

// declared returns the name in the table for a JavaScript name.
func (v *vm) declared(name string) string {
	if camel := scripting.CamelCase(name); camel != name {
		v.raise(fmt.Errorf("cannot use %q: names are camelCase in JavaScript, write %s", name, camel))
	}
	return scripting.SnakeCase(name)
}

// options reads the argument of arg.<kind> and state.<kind>.
func (v *vm) options(what string, x goja.Value) map[string]any {
	if goja.IsUndefined(x) {
		return nil
	}
	o, ok := x.(*goja.Object)
	if !ok || o.ClassName() != "Object" || boxed(o) != nil {
		v.raise(fmt.Errorf("cannot use %s(%s): write %s({ … })", what, kindOf(x), what))
	}
	opts, err := v.rawValue(o, 0)
	v.must(err)
	m, _ := opts.(map[string]any)
	return m
}

// line returns the script's line that called the host.
func (v *vm) line() int {
	_, line, _ := v.callerPosition()
	return line
}

// fields reads the object of a definition.
func (v *vm) fields(o *goja.Object, raw *scripting.Raw) error {
	c, line, _ := v.callerPosition()
	raw.Line = line
	lines := map[string]int{}
	if c != nil {
		for _, k := range c.keys {
			if k.line == line || len(c.keys) == 1 {
				lines = k.lines
			}
		}
	}
	for _, name := range v.keys(o) {
		at := lines[name]
		if at == 0 {
			at = line
		}
		x, err := v.rawValue(o.Get(name), 0)
		if err != nil {
			return err
		}
		raw.Fields = append(raw.Fields, scripting.RawField{Name: v.declared(name), Line: at, Value: x})
	}
	slices.SortStableFunc(raw.Fields, func(a, b scripting.RawField) int { return a.Line - b.Line })
	return nil
}

// rawValue converts a value of a definition to a type allowed in scripting.Raw.
func (v *vm) rawValue(x goja.Value, depth int) (any, error) {
	if depth > maxValueDepth {
		return nil, fmt.Errorf("cannot use a definition that nests deeper than %d", maxValueDepth)
	}
	o, ok := x.(*goja.Object)
	if !ok {
		y, err := v.toGo(x)
		if n, is := y.(int64); is {
			return float64(n), err
		}
		if y == scripting.Null {
			return nil, err
		}
		return y, err
	}
	if y := boxed(o); y != nil {
		return y, nil
	}
	if isFunction(o) {
		return scripting.Func{Ref: x}, nil
	}
	switch o.ClassName() {
	case "Array":
		n := v.sandbox.lengthOf(o)
		if n > maxItems {
			return nil, fmt.Errorf("cannot use a list of %d items in a definition: the limit is %d", n, maxItems)
		}
		if err := v.budget.charge(n/4 + 1); err != nil {
			return nil, err
		}
		list := make([]any, n)
		for i := range list {
			e, err := v.rawValue(o.Get(fmt.Sprint(i)), depth+1)
			if err != nil {
				return nil, err
			}
			list[i] = e
		}
		return list, nil
	case "Number", "String", "Boolean":
		return v.rawValue(v.unboxed(o), depth)
	case "Object":
		if c := collection(o); c != "" {
			return nil, fmt.Errorf("cannot use a %s in a definition: use a plain object or an array", c)
		}
		if err := v.budget.charge(1); err != nil {
			return nil, err
		}
		m := map[string]any{}
		for _, k := range v.keys(o) {
			e, err := v.rawValue(o.Get(k), depth+1)
			if err != nil {
				return nil, err
			}
			m[k] = e
		}
		return m, nil
	}
	return nil, fmt.Errorf("cannot use %s in a definition", kindOf(x))
}

// bind creates the object of a module of the standard library.
func (v *vm) bind(m *scripting.Module) *goja.Object {
	o := v.rt.NewObject()
	for i := range m.Funcs {
		f := m.Funcs[i].Camel()
		name := m.Name + "." + f.Name
		v.method(o, f.Name, func(call goja.FunctionCall) goja.Value { return v.callFunction(name, f, nil, call.Arguments) })
	}
	for _, c := range m.Consts {
		v.put(o, scripting.CamelCase(c.Name), v.fromGo(c.Value))
	}
	return v.freeze(v.guard(o, func(name string) error {
		return absent(m, name, fmt.Errorf("module %s has no %q", m.Name, name))
	}))
}

// absent returns the error for a name that a module does not have: err, unless
// there is a better message.
func absent(m *scripting.Module, name string, err error) error {
	if m != nil && m.Absent != nil {
		if why := m.Absent(scripting.SnakeCase(name)); why != "" {
			return errors.New(inJavaScript(why))
		}
	}
	return err
}

// callFunction calls a function of the table. A function that waits returns a
// promise for its result or error. Other functions throw errors.
func (v *vm) callFunction(name string, f *scripting.Function, self *scripting.Object, in []goja.Value) goja.Value {
	v.must(v.budget.charge(20))
	args := make([]scripting.Value, 0, 4)
	size := 0
	for _, x := range in {
		a, err := v.toGo(x)
		v.must(err)
		if s, ok := a.(string); ok {
			size += len(s)
		}
		args = append(args, a)
	}
	v.budget.native(size)
	var err error
	if f.Waits {
		err = v.pause()
	}
	var out scripting.Value
	if err == nil {
		out, err = v.guarded(f, self, args)
	}
	if f.Waits {
		v.resume()
	}
	v.must(v.budget.err())
	if e, ok := err.(*scripting.ArgError); ok { // but not one wrapped by an error of another script
		err = &scripting.ArgError{Func: scripting.CamelCase(e.Func), Param: scripting.CamelCase(e.Param), Msg: e.Msg}
	}
	if _, wrong := errors.AsType[*scripting.ArgError](err); err != nil && (wrong || !f.Waits) {
		v.raise(err)
	}
	if !f.Waits {
		return v.fromGo(out)
	}
	if err != nil {
		return v.awaited(v.waited(nil, err), name, f)
	}
	return v.awaited(v.waited(v.fromGo(out), nil), name, f)
}

// guarded calls a function of the table. A panic in it is a bug in weir, which
// the script cannot catch: it ends the call and the VM. An exception of a
// callback is passed on.
func (v *vm) guarded(f *scripting.Function, self *scripting.Object, args []scripting.Value) (out scripting.Value, err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case goja.Value, *goja.Exception, *goja.InterruptedError, *goja.StackOverflowError:
			panic(r)
		default:
			err = v.budget.stopCall(fmt.Errorf("BUG: %s panicked: %v", f.Name, r))
		}
	}()
	if v.test != nil && (self != nil || f.Name == "component") {
		defer v.test.pause()()
	}
	return f.CallChecked(v.budget.stopped, self, args)
}
