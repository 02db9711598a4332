package lua

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/weir-run/weir/scripting"
)

// modules are the modules that a VM has loaded, by name.
type modules map[string]module

// module is a module of a VM. Its value is valid in the state moduleLoaded.
type module struct {
	state moduleState
	value lua.LValue
}

type moduleState uint8

const (
	moduleUnknown moduleState = iota // it was not required yet
	moduleLoading                    // its file runs, or has failed
	moduleLoaded
)

func (m modules) add(name string, value lua.LValue) {
	m[name] = module{state: moduleLoaded, value: value}
}

// require gives modules: weir, the standard library, the user's own. A VM loads
// each of them once.
func (v *vm) require(L *lua.LState) int {
	name := L.CheckString(1)
	switch known := v.modules[name]; known.state {
	case moduleLoading:
		v.raise(L, fmt.Errorf("cannot require %q: it requires itself, directly or through others", name))
	case moduleLoaded:
		L.Push(known.value)
		return 1
	}
	var m lua.LValue
	if lib, ok := v.prog.stdlib[name]; ok {
		m = v.readOnly.freeze(v.bindModule(lib), name)
	} else if name == "weir" {
		m = v.newWeirModule()
	} else if x, ok := v.prog.data[name]; ok {
		m = v.freezeValue(L, x, name, 0)
	} else if c, ok := v.prog.modules[name]; ok {
		v.modules[name] = module{state: moduleLoading}
		L.Push(L.NewFunctionFromProto(c.proto))
		L.Call(0, 1)
		m = L.Get(-1)
		L.Pop(1)
		if m == lua.LNil {
			m = lua.LTrue
		}
	} else {
		v.raise(L, fmt.Errorf("cannot require %q here: require takes a constant string, so that weir knows which files a component is made of", name))
	}
	v.modules.add(name, m)
	L.Push(m)
	return 1
}

// freezeValue returns the value of a data file, read-only.
func (v *vm) freezeValue(L *lua.LState, x scripting.Value, what string, depth int) lua.LValue {
	if depth > maxValueDepth {
		v.raise(L, fmt.Errorf("cannot use %s: it nests deeper than %d", what, maxValueDepth))
	}
	switch x := x.(type) {
	case *scripting.List:
		if len(x.Items) == 0 {
			return v.fromGo(L, x, depth)
		}
		t := L.CreateTable(len(x.Items), 0)
		for i, e := range x.Items {
			t.RawSetInt(i+1, v.freezeValue(L, e, what, depth+1))
		}
		return v.readOnly.freeze(t, what)
	case *scripting.Map:
		t := L.CreateTable(0, x.Len())
		for _, k := range x.Keys() {
			e, _ := x.Get(k)
			t.RawSetString(k, v.freezeValue(L, e, what, depth+1))
		}
		return v.readOnly.freeze(t, what)
	}
	return v.fromGo(L, x, depth)
}

// newWeirModule creates the module weir: the kinds of components and their argument
// types.
func (v *vm) newWeirModule() *lua.LTable {
	L := v.L
	t := L.CreateTable(0, 4)
	for _, kind := range scripting.ComponentKinds {
		t.RawSetString(string(kind), L.NewFunction(func(L *lua.LState) int {
			raw := &scripting.Raw{Kind: kind}
			raw.Fields = v.readFields(L, L.CheckTable(1), raw)
			L.Push(&lua.LUserData{Value: raw, Metatable: v.values.mt.opaque})
			return 1
		}))
	}
	arg := L.CreateTable(0, 4)
	for _, kind := range scripting.ArgKinds {
		arg.RawSetString(string(kind), L.NewFunction(func(L *lua.LState) int {
			opts, _ := v.rawValue(L, L.Get(1), 0).(map[string]any)
			if x := L.Get(1); opts == nil && x != lua.LNil && kind == scripting.ArgEnum {
				v.raise(L, errors.New(`cannot use weir.arg.enum without values: write weir.arg.enum { values = { "a", "b" } }`))
			}
			if x := L.Get(1); opts == nil && x != lua.LNil && !isEmptyTable(x) {
				v.raise(L, fmt.Errorf("cannot use weir.arg.%s(%s): write weir.arg.%s { default = … }", kind, x.Type(), kind))
			}
			a, err := scripting.NewArg(kind, opts, v.callerLine(L))
			v.must(L, err)
			L.Push(&lua.LUserData{Value: a, Metatable: v.values.mt.arg})
			return 1
		}))
	}
	amt := L.CreateTable(0, 4)
	amt.RawSetString("__index", L.NewFunction(func(L *lua.LState) int {
		name := L.Get(2).String()
		v.raise(L, noArgKind(name))
		return 0
	}))
	arg.Metatable = amt
	t.RawSetString("arg", v.readOnly.freeze(arg, "weir.arg"))
	t.RawSetString("state", v.newStateModule())
	t.RawSetString("null", v.null())
	if v.test != nil {
		t.RawSetString("test", v.readOnly.freeze(v.bindModule(v.test.api.Weir), v.test.api.Weir.Name))
	}
	return v.readOnly.freeze(t, "weir")
}

// noArgKind is the error of weir.arg.<name>.
func noArgKind(name string) error {
	meant, all := "", make([]string, len(scripting.ArgKinds))
	for i, k := range scripting.ArgKinds {
		all[i] = string(k)
		if len(name) > 2 && strings.HasPrefix(all[i], strings.ToLower(name[:3])) || otherNames[name] == k {
			meant = " (did you mean weir.arg." + all[i] + "?)"
		}
	}
	return fmt.Errorf("there is no argument type %q%s: there is %s", name, meant, strings.Join(all, ", "))
}

// otherNames are what other languages call the argument types.
var otherNames = map[string]scripting.ArgKind{
	"text": scripting.ArgString, "float": scripting.ArgNumber, "double": scripting.ArgNumber, "array": scripting.ArgList, "table": scripting.ArgMap,
	"dict": scripting.ArgMap, "object": scripting.ArgMap, "bytes": scripting.ArgSize, "password": scripting.ArgSecret,
}

func isEmptyTable(x lua.LValue) bool {
	t, ok := x.(*lua.LTable)
	if !ok {
		return false
	}
	k, _ := t.Next(lua.LNil)
	return k == lua.LNil
}

// callerLine returns the line of the script that called the host.
func (v *vm) callerLine(L *lua.LState) int {
	_, line, _ := v.prog.position(callerPosition(L))
	return line
}

// readFields reads the table of a definition.
func (v *vm) readFields(L *lua.LState, t *lua.LTable, raw *scripting.Raw) []scripting.RawField {
	c, line, _ := v.prog.position(callerPosition(L))
	raw.Line = line
	lines := map[string]int{}
	if c != nil {
		for _, k := range c.tree.keys {
			if k.line == line || len(c.tree.keys) == 1 {
				lines = k.lines
			}
		}
	}
	var out []scripting.RawField
	seen := map[string]bool{}
	for k, x := range entries(t) {
		name := k.String()
		seen[name] = true
		at := lines[name]
		if at == 0 {
			at = line
		}
		out = append(out, scripting.RawField{Name: name, Line: at, Value: v.rawValue(L, x, 0)})
	}
	for name, at := range lines {
		if !seen[name] { // written, but nil: mostly a misspelt name
			out = append(out, scripting.RawField{Name: name, Line: at})
		}
	}
	slices.SortFunc(out, func(a, b scripting.RawField) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return strings.Compare(a.Name, b.Name)
	})
	return out
}

// rawValue is a value of a definition in the forms that scripting.Raw knows.
func (v *vm) rawValue(L *lua.LState, x lua.LValue, depth int) any {
	if depth > maxValueDepth {
		v.raise(L, fmt.Errorf("cannot use a definition that nests deeper than %d", maxValueDepth))
	}
	switch x := x.(type) {
	case lua.LString:
		return string(x)
	case lua.LNumber:
		return float64(x)
	case lua.LBool:
		return bool(x)
	case *lua.LFunction:
		f := scripting.Func{Ref: x}
		if x.Proto != nil {
			f.Line = x.Proto.LineDefined
		}
		return f
	case *lua.LUserData:
		if a, ok := x.Value.(*scripting.Arg); ok {
			return a
		}
		return x.Value
	case *lua.LTable:
		x = v.readOnly.real(x)
		n := x.Len()
		v.must(L, v.budget.charge(int64(n/4)+1)) // a few tables within each other may be read a great many times
		if n > 0 {
			list := make([]any, n)
			for i := range list {
				list[i] = v.rawValue(L, x.RawGetInt(i+1), depth+1)
			}
			return list
		}
		m := map[string]any{}
		for k, e := range entries(x) {
			v.must(L, v.budget.charge(1))
			m[k.String()] = v.rawValue(L, e, depth+1)
		}
		return m
	}
	return nil
}

// openValues makes the metatables of Go values that scripts only pass on.
func (v *vm) openValues(mt func(index, newindex, tostring lua.LGFunction) *lua.LTable) {
	L := v.L
	text := func(L *lua.LState) int {
		ud, _ := L.Get(1).(*lua.LUserData)
		switch x := ud.Value.(type) {
		case *scripting.Raw:
			v.pushString(L, "weir."+string(x.Kind))
		case *scripting.Arg:
			v.pushString(L, "weir.arg."+string(x.Kind))
		case *scripting.Object:
			if x.Type.String != nil {
				v.pushString(L, x.Type.String(x.Data))
				break
			}
			v.pushString(L, x.Type.Name)
		default:
			v.pushString(L, fmt.Sprint(x))
		}
		return 1
	}
	refuse := func(L *lua.LState) int {
		v.raise(L, errors.New("cannot look into this value: it can only be passed on"))
		return 0
	}
	v.values.mt.opaque = mt(refuse, refuse, text)
	v.values.mt.arg = mt(refuse, refuse, text)
	v.values.mt.list = L.CreateTable(0, 4)
	methods := map[*scripting.ObjectType]map[string]*lua.LFunction{}
	v.values.mt.object = mt(func(L *lua.LState) int {
		o := self[*scripting.Object](v, L, "an object")
		if n, ok := L.Get(2).(lua.LNumber); ok && o.Type.Index != nil {
			if i := int(n) - 1; float64(i+1) == float64(n) && i >= 0 && i < o.Type.Len(o.Data) {
				L.Push(v.fromGo(L, o.Type.Index(o.Data, i), 0))
				return 1
			}
			L.Push(lua.LNil)
			return 1
		}
		name := L.Get(2).String()
		if o.Type.Read != nil && slices.Contains(scripting.Names(o.Type.Fields), name) {
			L.Push(v.fromGo(L, o.Type.Read(o.Data, name), 0))
			return 1
		}
		fn := methods[o.Type][name]
		if fn == nil {
			f, ok := o.Type.Method(name)
			if !ok {
				v.raise(L, fmt.Errorf("%s has no method %q", o.Type.Name, name))
			}
			fn = L.NewFunction(func(L *lua.LState) int {
				self := self[*scripting.Object](v, L, o.Type.Name)
				if self.Type != o.Type {
					v.raise(L, fmt.Errorf("cannot use %s as %s", self.Type.Name, o.Type.Name))
				}
				return v.callFunction(L, o.Type.Name+":"+f.Name, f, self, 2)
			})
			if methods[o.Type] == nil {
				methods[o.Type] = map[string]*lua.LFunction{}
			}
			methods[o.Type][name] = fn
		}
		L.Push(fn)
		return 1
	}, refuse, text)
	v.values.mt.object.RawSetString("__len", L.NewFunction(func(L *lua.LState) int {
		o := self[*scripting.Object](v, L, "an object")
		if o.Type.Len == nil {
			v.raise(L, fmt.Errorf("%s has no length", o.Type.Name))
		}
		L.Push(lua.LNumber(o.Type.Len(o.Data)))
		return 1
	}))
}

// bindModule creates the table of a module of the standard library.
func (v *vm) bindModule(m *scripting.Module) *lua.LTable {
	return v.bindWith(m, func(_ *lua.LTable, name string, f *scripting.Function) lua.LGFunction {
		return func(L *lua.LState) int { return v.callFunction(L, name, f, nil, 1) }
	})
}

// bindWith makes the table t of a module; call makes what its functions do.
func (v *vm) bindWith(m *scripting.Module, call func(t *lua.LTable, name string, f *scripting.Function) lua.LGFunction) *lua.LTable {
	t := v.L.CreateTable(0, len(m.Funcs)+len(m.Consts)+len(m.Tables))
	for i := range m.Funcs {
		f := &m.Funcs[i]
		name := m.Name + "." + f.Name
		fn := v.L.NewFunction(call(t, name, f))
		v.library.names[fn] = name
		t.RawSetString(f.Name, fn)
	}
	for _, c := range m.Consts {
		t.RawSetString(c.Name, v.fromGo(v.L, c.Value, 0))
	}
	what := "module " + m.Name
	if strings.HasPrefix(m.Name, "ctx.") {
		what = m.Name
	}
	mt := v.L.CreateTable(0, 4)
	mt.RawSetString("__index", v.L.NewFunction(func(L *lua.LState) int {
		name := L.Get(2).String()
		if slices.ContainsFunc(m.Consts, func(c scripting.Const) bool { return c.Name == name }) {
			L.Push(lua.LNil) // declared, and nil
			return 1
		}
		v.raise(L, absent(m, name, fmt.Errorf("%s has no %q", what, name)))
		return 0
	}))
	t.Metatable = mt
	return t
}

// absent is the error of a name that a module does not have: err, unless there
// is something better to say.
func absent(m *scripting.Module, name string, err error) error {
	if m != nil && m.Absent != nil {
		if why := m.Absent(name); why != "" {
			return errors.New(why)
		}
	}
	return err
}

// callFunction calls a function of the standard library with the arguments
// from first on. Its error is a result; a wrong argument is raised, and so is an
// error while the file loads that the statement throws away: the nil would only
// be met by the first batch.
func (v *vm) callFunction(L *lua.LState, name string, f *scripting.Function, self *scripting.Object, first int) int {
	v.must(L, v.budget.charge(20))
	if v.test != nil {
		defer v.test.recordCaller(L)()
	}
	args := make([]scripting.Value, 0, 4)
	size := 0
	for i := first; i <= L.GetTop(); i++ {
		a := v.toGo(L, L.Get(i), 0)
		if s, ok := a.(string); ok {
			size += len(s)
		}
		args = append(args, a)
	}
	v.budget.native(size)
	var err error
	if f.Waits {
		v.must(L, v.budget.pause())
		err = v.pause()
	}
	var out scripting.Value
	if err == nil {
		out, err = v.callGuarded(f, self, args)
	}
	if f.Waits {
		v.resume()
	}
	if v.budget.tripped != nil {
		v.must(L, v.budget.tripped)
	}
	if err != nil {
		if _, wrong := errors.AsType[*scripting.ArgError](err); wrong || v.test != nil && v.test.raises(f) {
			v.raise(L, err)
		}
		if c, line, _ := v.prog.position(callerPosition(L)); c != nil {
			if v.call.stage == loading && c.tree.unheard[line] == f.Name {
				v.raise(L, err)
			}
			v.call.failure.record(fmt.Sprintf("%s at %s:%d returned nil and an error: %v", name, c.file.Name, line, err), v.call.stage == loading)
		}
		L.Push(lua.LNil)
		L.Push(lua.LString(err.Error()))
		return 2
	}
	L.Push(v.fromGo(L, out, 0))
	return 1
}

// callGuarded calls a function of the standard library. A panic in it is our bug
// and not the script's to catch: it ends the call and the VM.
func (v *vm) callGuarded(f *scripting.Function, self *scripting.Object, args []scripting.Value) (out scripting.Value, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = v.budget.stopCall(fmt.Errorf("BUG: %s panicked: %v", f.Name, r))
		}
	}()
	return f.CallChecked(v.budget.check, self, args)
}
