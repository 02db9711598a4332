package lua

import (
	"errors"
	"fmt"

	lua "github.com/yuin/gopher-lua"

	"github.com/weir-run/weir/scripting"
)

// spy is a function that notes its calls, in the shape of luassert: a table that
// can be called.
type spy struct {
	table   *lua.LTable
	fn      lua.LValue   // that is called; nil: a stub
	returns []lua.LValue // of a stub
	calls   []scripting.SpyCall
	revert  func() // puts back what it stands for; nil: nothing
}

// maxSpyCalls is how many calls a spy notes.
const maxSpyCalls = 10_000

// openSpies makes spy, stub and mock.
func (t *test) openSpies() {
	L := t.v.L
	callable := func(fields map[string]lua.LGFunction, call lua.LGFunction, name string) *lua.LTable {
		inner := L.CreateTable(0, 4)
		for n, f := range fields {
			inner.RawSetString(n, L.NewFunction(f))
		}
		frozen := t.v.readOnly.freeze(inner, name)
		frozen.Metatable.(*lua.LTable).RawSetString("__call", L.NewFunction(func(L *lua.LState) int {
			L.Remove(1)
			return call(L)
		}))
		return frozen
	}
	newSpy := func(L *lua.LState) int {
		L.Push(t.newSpy(L.CheckFunction(1)).table)
		return 1
	}
	on := func(stub bool) lua.LGFunction {
		return func(L *lua.LState) int {
			s := t.replace(L, L.CheckTable(1), L.CheckAny(2), stub)
			for i := 3; stub && i <= L.GetTop(); i++ {
				s.returns = append(s.returns, L.Get(i))
			}
			L.Push(s.table)
			return 1
		}
	}
	newStub := func(L *lua.LState) int {
		if L.GetTop() > 0 {
			return on(true)(L)
		}
		L.Push(t.newSpy(nil).table)
		return 1
	}
	mock := func(L *lua.LState) int {
		table := L.CheckTable(1)
		for k, x := range entries(table) {
			if inner, _ := x.(*lua.LTable); x.Type() == lua.LTFunction || t.spies[inner] != nil {
				t.replace(L, table, k, lua.LVAsBool(L.Get(2)))
			}
		}
		L.Push(table)
		return 1
	}
	isSpy := func(L *lua.LState) int {
		x, _ := L.Get(1).(*lua.LTable)
		L.Push(lua.LBool(x != nil && t.spies[x] != nil))
		return 1
	}
	t.v.library.env.RawSetString("spy", callable(map[string]lua.LGFunction{"new": newSpy, "on": on(false), "is_spy": isSpy}, newSpy, "spy"))
	t.v.library.env.RawSetString("stub", callable(map[string]lua.LGFunction{"new": newStub}, newStub, "stub"))
	t.v.library.env.RawSetString("mock", L.NewFunction(mock))
}

// replace puts a spy, or a stub, in the place of a table's function.
func (t *test) replace(L *lua.LState, table *lua.LTable, key lua.LValue, stub bool) *spy {
	if t.v.readOnly.has(table) {
		t.v.raise(L, errors.New("cannot put a spy into this table: it is read-only; a component under test has a VM of its own, in which it would not be seen"))
	}
	was := table.RawGet(key)
	if inner, _ := was.(*lua.LTable); was.Type() != lua.LTFunction && !stub && t.spies[inner] == nil {
		t.v.raise(L, fmt.Errorf("cannot put a spy in place of %s: it is a %s and no function", key.String(), was.Type()))
	}
	s := t.newSpy(was)
	if stub {
		s.fn = nil
	}
	s.revert = func() { table.RawSet(key, was) }
	table.RawSet(key, s.table)
	return s
}

// newSpy makes a spy of a function, or a stub of none.
func (t *test) newSpy(fn lua.LValue) *spy {
	v, L := t.v, t.v.L
	s := &spy{table: L.CreateTable(0, 4), fn: fn}
	// Methods are called with a dot or a colon.
	method := func(f func(L *lua.LState, args []lua.LValue)) *lua.LFunction {
		return L.NewFunction(func(L *lua.LState) int {
			var args []lua.LValue
			for i := 1; i <= L.GetTop(); i++ {
				if x := L.Get(i); i > 1 || x != lua.LValue(s.table) {
					args = append(args, x)
				}
			}
			f(L, args)
			L.Push(s.table)
			return 1
		})
	}
	methods := L.CreateTable(0, 4)
	methods.RawSetString("revert", method(func(*lua.LState, []lua.LValue) { s.putBack() }))
	methods.RawSetString("clear", method(func(*lua.LState, []lua.LValue) { s.calls = nil }))
	methods.RawSetString("returns", method(func(_ *lua.LState, args []lua.LValue) { s.fn, s.returns = nil, args }))
	methods.RawSetString("invokes", method(func(L *lua.LState, args []lua.LValue) {
		if len(args) != 1 || args[0].Type() != lua.LTFunction {
			v.raise(L, errors.New("cannot invoke this: write s.invokes(function(…) … end)"))
		}
		s.fn = args[0]
	}))
	mt := L.CreateTable(0, 4)
	mt.RawSetString("__index", methods)
	mt.RawSetString("__call", L.NewFunction(func(L *lua.LState) int { return t.callSpy(L, s) }))
	mt.RawSetString("__metatable", lua.LFalse)
	s.table.Metatable = mt
	t.spies[s.table] = s
	if t.inside {
		t.made = append(t.made, s)
	}
	return s
}

func (s *spy) putBack() {
	if s.revert != nil {
		s.revert()
		s.revert = nil
	}
}

// callSpy notes the call, with copies of its arguments, and passes it on.
func (t *test) callSpy(L *lua.LState, s *spy) int {
	n := L.GetTop() - 1 // the first is the spy
	if len(s.calls) >= maxSpyCalls {
		t.v.raise(L, fmt.Errorf("cannot note more than %d calls of a spy", maxSpyCalls))
	}
	var call scripting.SpyCall
	for i := range n {
		call.Args = append(call.Args, t.snapshotValue(L, L.Get(i+2)))
	}
	at := len(s.calls)
	s.calls = append(s.calls, call)
	results := len(s.returns)
	if s.fn != nil {
		base := L.GetTop()
		L.Push(s.fn)
		for i := range n {
			L.Push(L.Get(i + 2))
		}
		L.Call(n, lua.MultRet)
		results = L.GetTop() - base
	} else {
		for _, x := range s.returns {
			L.Push(x)
		}
	}
	for i := range results {
		if at < len(s.calls) {
			s.calls[at].Results = append(s.calls[at].Results, t.snapshotValue(L, L.Get(-results+i)))
		}
	}
	return results
}

// snapshotValue is a value as it is at the moment. Functions are themselves.
func (t *test) snapshotValue(L *lua.LState, x lua.LValue) scripting.Value {
	if fn, ok := x.(*lua.LFunction); ok {
		return fn
	}
	return t.v.toGo(L, x, 0)
}

// assertSpy is assert.spy(s): words follow, and a call.
func (t *test) assertSpy(L *lua.LState) int {
	table, _ := L.Get(1).(*lua.LTable)
	s := t.spies[table]
	if s == nil {
		t.v.raise(L, errors.New("cannot use assert.spy on this: it is no spy; make one with spy.new(fn), spy.on(table, name) or stub(table, name)"))
	}
	L.Push(t.spyWords(s, ""))
	return 1
}

func (t *test) spyWords(s *spy, words string) *lua.LTable {
	table, mt := t.v.L.CreateTable(0, 4), t.v.L.NewTable()
	mt.RawSetString("__index", t.v.L.NewFunction(func(L *lua.LState) int {
		next := L.Get(2).String()
		if words != "" {
			next = words + "_" + next
		}
		L.Push(t.spyWords(s, next))
		return 1
	}))
	mt.RawSetString("__call", t.v.L.NewFunction(func(L *lua.LState) int {
		var args []scripting.Value
		for i := 2; i <= L.GetTop(); i++ {
			args = append(args, t.snapshotValue(L, L.Get(i)))
		}
		t.v.must(L, t.api.Spied(words, s.calls, args))
		return 0
	}))
	table.Metatable = mt
	return table
}

// EndTest puts back what spies stand for, and forgets them.
func (t *test) EndTest() error {
	for _, s := range t.made {
		s.putBack()
		delete(t.spies, s.table)
	}
	t.made, t.inside = nil, false
	return nil
}
