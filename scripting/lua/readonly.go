package lua

import lua "github.com/yuin/gopher-lua"

// readOnlyTables are the tables that a script can read and not write.
type readOnlyTables struct {
	L      *lua.LState
	behind map[*lua.LTable]*lua.LTable // by the table that the script gets
}

// freeze returns a table that reads from t and refuses writes. Like Lua's own
// solution it is an empty table with a metatable; here pairs, ipairs, next, unpack and
// table.concat know such tables too.
func (r *readOnlyTables) freeze(t *lua.LTable, what string) *lua.LTable {
	L := r.L
	p := L.CreateTable(0, 0)
	mt := L.CreateTable(0, 4)
	mt.RawSetString("__index", t)
	mt.RawSetString("__newindex", L.NewFunction(func(L *lua.LState) int {
		L.RaiseError("cannot assign to %s.%s: it is read-only", what, L.Get(2).String())
		return 0
	}))
	mt.RawSetString("__len", L.NewFunction(func(L *lua.LState) int {
		L.Push(lua.LNumber(t.Len()))
		return 1
	}))
	mt.RawSetString("__metatable", lua.LFalse)
	p.Metatable = mt
	r.behind[p] = t
	return p
}

// has reports whether t is a read-only table.
func (r *readOnlyTables) has(t *lua.LTable) bool {
	_, ok := r.behind[t]
	return ok
}

// real returns the table behind a read-only table, and t itself if it is another.
func (r *readOnlyTables) real(t *lua.LTable) *lua.LTable {
	if t.Metatable == lua.LNil {
		return t // the common case: a read-only table has a metatable
	}
	if behind, ok := r.behind[t]; ok {
		return behind
	}
	return t
}

// of returns the read-only table in front of t, nil if there is none.
func (r *readOnlyTables) of(t *lua.LTable) *lua.LTable {
	for p, behind := range r.behind {
		if behind == t {
			return p
		}
	}
	return nil
}
