package lua

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	lua "github.com/yuin/gopher-lua"

	"github.com/weir-run/weir/scripting"
)

// test is what the VM of a test file has in addition to that of a script.
type test struct {
	v      *vm
	api    *scripting.TestAPI
	funcs  map[*scripting.Function]bool // of the standard library, which return their errors
	at     *lua.LState                  // that calls the host; nil outside of calls
	spies  map[*lua.LTable]*spy
	made   []*spy // in the test that runs
	inside bool   // of a test
}

var (
	_ scripting.Tester = (*Language)(nil)
	_ scripting.TestVM = (*test)(nil)
)

// Words are those of busted.
func (l *Language) Words() scripting.TestWords { return scripting.Busted }

// NewTest compiles a test file. All globals it reads must exist: a misspelt
// one is found before any test runs.
func (l *Language) NewTest(f scripting.File, env scripting.Env, api *scripting.TestAPI) (scripting.TestVM, error) {
	p, err := read(f, env, componentFile)
	if err != nil {
		return nil, err
	}
	p.def = &scripting.Definition{}
	v := p.newVM(scripting.Host{})
	t := &test{v: v, api: api, funcs: map[*scripting.Function]bool{}, spies: map[*lua.LTable]*spy{}}
	v.test = t
	for _, m := range env.Modules {
		for i := range m.Funcs {
			t.funcs[&m.Funcs[i]] = true
		}
		for _, typ := range m.Types {
			for i := range typ.Methods {
				t.funcs[&typ.Methods[i]] = true
			}
		}
	}
	t.open()
	if errs := t.unknownGlobals(p.main.file, p.main.proto, nil); len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return t, nil
}

// open makes the globals of a test file.
func (t *test) open() {
	v := t.v
	for i := range t.api.Globals {
		f := &t.api.Globals[i]
		fn := v.L.NewFunction(func(L *lua.LState) int { return v.callFunction(L, f.Name, f, nil, 1) })
		v.library.names[fn] = f.Name
		v.library.env.RawSetString(f.Name, fn)
	}
	for _, m := range t.api.Tables {
		v.library.env.RawSetString(m.Name, v.readOnly.freeze(v.bindModule(m), m.Name))
	}
	v.library.env.RawSetString("assert", t.assert("", v.library.env.RawGetString("assert")))
	v.library.env.RawSetString("print", v.L.NewFunction(func(L *lua.LState) int {
		parts := make([]string, L.GetTop())
		for i := range parts {
			parts[i] = v.tostring(L, L.Get(i+1))
		}
		t.api.Print(strings.TrimSuffix(callerPosition(L), ":"), strings.Join(parts, "\t"))
		return 0
	}))
	t.openSpies()
	weir := v.newWeirModule()
	v.modules.add("weir", weir)
	v.library.env.RawSetString("weir", weir)
}

// assert is a table of assertions: a name is looked for together with the
// words before it, so that assert.is.same is assert.is_same. The first one can be
// called as Lua's assert.
func (t *test) assert(words string, call lua.LValue) *lua.LTable {
	v := t.v
	known := map[string]lua.LValue{}
	table := v.L.CreateTable(0, 4)
	mt := v.L.CreateTable(0, 4)
	mt.RawSetString("__index", v.L.NewFunction(func(L *lua.LState) int {
		name := L.Get(2).String()
		if x, ok := known[name]; ok {
			L.Push(x)
			return 1
		}
		full := strings.TrimPrefix(words+"_"+name, "_")
		if full == "spy" || full == "stub" {
			known[name] = L.NewFunction(t.assertSpy)
			L.Push(known[name])
			return 1
		}
		f, more, err := t.api.Assert(full)
		v.must(L, err)
		if more {
			known[name] = t.assert(full, nil)
		} else {
			known[name] = L.NewFunction(func(L *lua.LState) int { return v.callFunction(L, "assert."+full, f, nil, 1) })
		}
		L.Push(known[name])
		return 1
	}))
	mt.RawSetString("__newindex", v.L.NewFunction(func(L *lua.LState) int {
		v.raise(L, errors.New("cannot add to assert: it is read-only"))
		return 0
	}))
	mt.RawSetString("__metatable", lua.LFalse)
	if call != nil {
		mt.RawSetString("__call", v.L.NewFunction(func(L *lua.LState) int {
			L.Remove(1)
			return call.(*lua.LFunction).GFunction(L)
		}))
	}
	table.Metatable = mt
	return table
}

// unknownGlobals finds reads of globals that are not there.
func (t *test) unknownGlobals(f scripting.File, p *lua.FunctionProto, errs []error) []error {
	for pc, inst := range p.Code {
		if int(inst>>26) != lua.OP_GETGLOBAL {
			continue
		}
		name := p.Constants[inst&0x3ffff].String()
		if t.v.library.env.RawGetString(name) != lua.LNil {
			continue
		}
		e := f.Error(p.DbgSourcePositions[pc], hookLoad, fmt.Errorf("there is no global %q", name))
		if e.Hint = t.api.Unknown(name, t.globals()); e.Hint == "" {
			e.Hint = removed[name]
		}
		if e.Hint == "" {
			e.Hint = "the globals of a test are " + strings.Join(t.globals(), ", ")
		}
		errs = append(errs, e)
	}
	for _, sub := range p.FunctionPrototypes {
		errs = t.unknownGlobals(f, sub, errs)
	}
	return errs
}

// ofTests are the globals of a test that this package makes.
var ofTests = []string{"assert", "mock", "spy", "stub", "weir"}

// globals are those that a test has and a script has not.
func (t *test) globals() []string {
	names := slices.Clone(ofTests)
	for _, f := range t.api.Globals {
		names = append(names, f.Name)
	}
	for _, m := range t.api.Tables {
		names = append(names, m.Name)
	}
	slices.Sort(names)
	return names
}

// raises reports whether a function's error ends the test, as everywhere in
// the API; the standard library's are results, as in a script.
func (t *test) raises(f *scripting.Function) bool { return !t.funcs[f] }

// recordCaller notes who calls the host until the returned function is called.
func (t *test) recordCaller(L *lua.LState) func() {
	before := t.at
	t.at = L
	return func() { t.at = before }
}

// testCallback lets the host call a function of the test, now or later. Its
// error is an *scripting.Error with the line in the function.
func (v *vm) testCallback(fn lua.LValue) scripting.Callback {
	return func(args ...scripting.Value) (scripting.Value, error) {
		L := v.test.at
		if L == nil {
			L = v.L
		}
		L.Push(fn)
		for _, a := range args {
			L.Push(v.fromGo(L, a, 0))
		}
		if err := v.trap.tryRecorded(L, len(args), 1); err != nil {
			return nil, v.scriptError(err)
		}
		x := L.Get(-1)
		L.Pop(1)
		switch x.(type) {
		case lua.LBool, lua.LNumber, lua.LString:
			return v.toGo(L, x, 0), nil
		case *lua.LTable:
			return v.testResult(L, x), nil
		}
		return nil, nil
	}
}

// testResult converts a table that a function of the test returned. It returns nil
// if the table has no form in Go; the caller may not need the result.
func (v *vm) testResult(L *lua.LState, x lua.LValue) (out scripting.Value) {
	L.Push(L.NewFunction(func(L *lua.LState) int {
		out = v.toGo(L, L.Get(1), 0)
		return 0
	}))
	L.Push(x)
	if err := L.PCall(1, 0, v.trap.keep); err != nil {
		return nil
	}
	return out
}

// Load runs the file.
func (t *test) Load(limit time.Duration) error {
	v := t.v
	t.start(limit)
	v.call.enter(loading, hookLoad)
	err := v.runFunction(v.L.NewFunctionFromProto(v.prog.main.proto), 0)
	v.call.leave()
	return err
}

// Call runs a function of the file.
func (t *test) Call(fn scripting.Callback, limit time.Duration) error {
	t.start(limit)
	t.at, t.inside = nil, true
	_, err := fn()
	t.v.prog.probe.Ran(t.v.budget.instr.ran())
	return err
}

// Used is the time of the last call.
func (t *test) Used() time.Duration {
	_ = t.v.budget.checkLimits() // counts what ran since it looked last
	return t.v.budget.clock.used
}

func (t *test) start(limit time.Duration) {
	t.v.budget.start(limit, 0)
	t.v.budget.clock.setting = ", the limit of a test"
}

// Pos is where the test calls the host.
func (t *test) Pos() (file string, line int) {
	if t.at == nil {
		return t.v.prog.main.file.Name, 0
	}
	c, line, _ := t.v.prog.position(callerPosition(t.at))
	if c == nil {
		return t.v.prog.main.file.Name, 0
	}
	return c.file.Name, line
}

// Match matches a Lua pattern.
func (t *test) Match(pattern, text string) (bool, error) {
	m := t.v.newMatcher(text, pattern)
	start, _ := m.find(0)
	return start >= 0, m.err
}

// Broken reports whether a limit stopped the VM.
func (t *test) Broken() bool { return t.v.broken }
