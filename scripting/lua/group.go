package lua

import (
	"errors"
	"fmt"

	lua "github.com/yuin/gopher-lua"

	"github.com/weir-run/weir/engine/view"
	"github.com/weir-run/weir/scripting/api"
)

// group is some records of a batch of either signal: those with the same values
// of some fields.
type group struct {
	v      *vm
	win    *view.Window
	epoch  uint64
	rows   []int
	record func(row int) *lua.LUserData
}

func (g *group) check(L *lua.LState) {
	if g.v.currentWindow() != g.win || g.win.Epoch() != g.epoch {
		g.v.raise(L, errors.New("cannot use a group after its hook returned"))
	}
}

// groupBy is batch:group_by { "job" }: an iterator over groups and the values
// that they have in common, in the order of their first records.
func (v *vm) groupBy(L *lua.LState) int {
	var win *view.Window
	var read func(row int) []lua.LValue
	var record func(row int) *lua.LUserData
	if _, lines := L.Get(1).(*lua.LUserData).Value.(logsHandle); lines {
		m := v.checkLogs(L)
		v.chargeLines(L, m)
		p, err := m.Projection("", v.fieldNames(L, L.CheckTable(2)))
		v.must(L, err)
		win, record = &m.Window, func(row int) *lua.LUserData { return &v.newLine(row).ud }
		read = func(row int) (vs []lua.LValue) {
			v.handles.cells = m.Read(p, row, v.handles.cells[:0])
			for _, c := range v.handles.cells {
				vs = append(vs, v.cell(c, m.Line(row)))
			}
			return vs
		}
	} else {
		m := v.checkMetrics(L)
		var cols []column
		for _, name := range v.fieldNames(L, L.CheckTable(2)) {
			cols = append(cols, v.newColumn(L, m, lua.LString(name)))
		}
		if len(cols) == 0 || len(cols) > maxFields {
			v.raise(L, fmt.Errorf("cannot group by %d fields: name between 1 and %d", len(cols), maxFields))
		}
		win, record = &m.Window, func(row int) *lua.LUserData { return &v.newRecord(row).ud }
		read = func(row int) (vs []lua.LValue) {
			for _, c := range cols {
				vs = append(vs, v.fieldValue(m, c, row))
			}
			return vs
		}
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
		g := &group{v: v, win: win, epoch: epoch, rows: e.Rows, record: record}
		L.Push(&lua.LUserData{Value: g, Metatable: v.values.mt.group})
		for _, x := range e.Values {
			L.Push(x)
		}
		return 1 + len(e.Values)
	}))
	return 1
}

func (v *vm) openGroup(mt func(index, newindex, tostring lua.LGFunction) *lua.LTable) {
	L := v.L
	drop := L.NewFunction(func(L *lua.LState) int {
		g := self[*group](v, L, "a group")
		g.check(L)
		for _, row := range g.rows {
			g.win.Drop(row)
		}
		return 0
	})
	records := L.NewFunction(func(L *lua.LState) int {
		g := self[*group](v, L, "a group")
		g.check(L)
		at := 0
		L.Push(L.NewFunction(func(L *lua.LState) int {
			g.check(L)
			for ; at < len(g.rows); at++ {
				if g.win.Alive(g.rows[at]) {
					L.Push(g.record(g.rows[at]))
					at++
					return 1
				}
			}
			L.Push(lua.LNil)
			return 1
		}))
		return 1
	})
	v.values.mt.group = mt(func(L *lua.LState) int {
		g := self[*group](v, L, "a group")
		g.check(L)
		switch key := L.Get(2).(type) {
		case lua.LString:
			switch key {
			case "records":
				L.Push(records)
			case "drop":
				L.Push(drop)
			default:
				v.raise(L, api.Unknown(api.Get().Group, string(key)))
			}
		case lua.LNumber:
			i := int(key) - 1
			if float64(i+1) != float64(key) || i < 0 || i >= len(g.rows) || !g.win.Alive(g.rows[i]) {
				L.Push(lua.LNil)
				break
			}
			L.Push(g.record(g.rows[i]))
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
	v.values.mt.group.RawSetString("__len", L.NewFunction(func(L *lua.LState) int {
		L.Push(v.values.numbers.value(float64(len(self[*group](v, L, "a group").rows))))
		return 1
	}))
}
