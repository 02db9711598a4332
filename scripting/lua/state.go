package lua

import (
	"fmt"

	lua "github.com/yuin/gopher-lua"

	"github.com/weir-run/weir/scripting"
)

// newStateModule creates weir.state: the kinds of state that a definition declares.
func (v *vm) newStateModule() *lua.LTable {
	L := v.L
	t := L.CreateTable(0, 4)
	for _, kind := range scripting.StateKinds {
		t.RawSetString(string(kind), L.NewFunction(func(L *lua.LState) int {
			opts, _ := v.rawValue(L, L.Get(1), 0).(map[string]any)
			if x := L.Get(1); opts == nil && x != lua.LNil && !isEmptyTable(x) {
				v.raise(L, fmt.Errorf("cannot use weir.state.%s(%s): write weir.state.%s { max = … }", kind, x.Type(), kind))
			}
			s, err := scripting.NewState(kind, opts, v.callerLine(L))
			v.must(L, err)
			L.Push(v.opaque(s))
			return 1
		}))
	}
	mt := L.CreateTable(0, 4)
	mt.RawSetString("__index", L.NewFunction(func(L *lua.LState) int {
		v.raise(L, scripting.NoStateKind(L.Get(2).String()))
		return 0
	}))
	t.Metatable = mt
	return v.readOnly.freeze(t, "weir.state")
}
