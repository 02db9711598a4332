package lua

import (
	"errors"
	"fmt"

	lua "github.com/yuin/gopher-lua"

	"github.com/weir-run/weir/engine/view"
	"github.com/weir-run/weir/scripting/api"
	"github.com/weir-run/weir/scripting/operation"
)

// group is some records of a batch of either signal: those with the same values
// of some fields.
type group struct {
	v     *vm
	win   *view.Window
	epoch uint64
	rows  []int
}

func (g *group) check(L *lua.LState) {
	if g.v.currentWindow() != g.win || g.win.Epoch() != g.epoch {
		g.v.raise(L, errors.New("cannot use a group after its hook returned"))
	}
}

// groups is batch:group_by { "job" }: an iterator over groups and the values
// that they have in common, in the order of their first records.
func (v *vm) groups(L *lua.LState, c *operation.Call) int {
	win, f := c.Window, c.Fields
	read := func(row int) (vs []lua.LValue) {
		if f.Lines == nil {
			for _, col := range f.Columns {
				vs = append(vs, v.fieldValue(v.call.metrics, col, row))
			}
			return vs
		}
		v.handles.cells = v.call.logs.Read(f.Lines, row, v.handles.cells[:0])
		for _, cell := range v.handles.cells {
			vs = append(vs, v.cell(cell, v.call.logs.Line(row)))
		}
		return vs
	}
	v.must(L, v.budget.charge(int64(win.Len())))
	groups := view.GroupBy(win, read, func(x lua.LValue) string { return string(rune('0'+x.Type())) + x.String() })
	next, epoch := 0, win.Epoch()
	L.Push(L.NewFunction(func(L *lua.LState) int {
		if next >= len(groups) {
			L.Push(lua.LNil)
			return 1
		}
		e := groups[next]
		next++
		g := &group{v: v, win: win, epoch: epoch, rows: e.Rows}
		L.Push(&lua.LUserData{Value: g, Metatable: v.values.mt.group})
		for _, x := range e.Values {
			L.Push(x)
		}
		return 1 + len(e.Values)
	}))
	return 1
}

// groupRecords is group:records().
func (v *vm) groupRecords(L *lua.LState, g *group) int {
	at := 0
	L.Push(L.NewFunction(func(L *lua.LState) int {
		g.check(L)
		for ; at < len(g.rows); at++ {
			if g.win.Alive(g.rows[at]) {
				L.Push(v.record(g.rows[at]))
				at++
				return 1
			}
		}
		L.Push(lua.LNil)
		return 1
	}))
	return 1
}

func (v *vm) openGroup(mt func(index, newindex, tostring lua.LGFunction) *lua.LTable) {
	methods := v.bindOperations(api.Get().Group, func(L *lua.LState, c *operation.Call) {
		g := self[*group](v, L, "a group")
		g.check(L)
		c.Window, c.Metrics, c.Logs, c.Group = g.win, v.call.metrics, v.call.logs, g.rows
	})
	v.values.mt.group = mt(func(L *lua.LState) int {
		g := self[*group](v, L, "a group")
		g.check(L)
		switch key := L.Get(2).(type) {
		case lua.LString:
			f := methods.find(key)
			if f == nil {
				v.raise(L, api.Unknown(api.Get().Group, string(key)))
			}
			L.Push(f)
		case lua.LNumber:
			i := int(key) - 1
			if float64(i+1) != float64(key) || i < 0 || i >= len(g.rows) || !g.win.Alive(g.rows[i]) {
				L.Push(lua.LNil)
				break
			}
			L.Push(v.record(g.rows[i]))
		default:
			L.Push(lua.LNil)
		}
		return 1
	}, func(L *lua.LState) int {
		v.raise(L, errors.New("cannot assign to a group: set the fields of its records"))
		return 0
	}, func(L *lua.LState) int {
		L.Push(lua.LString(fmt.Sprintf("group of %d records", len(self[*group](v, L, "a group").rows))))
		return 1
	})
	v.values.mt.group.RawSetString("__len", v.L.NewFunction(func(L *lua.LState) int {
		L.Push(v.values.numbers.value(float64(len(self[*group](v, L, "a group").rows))))
		return 1
	}))
}
