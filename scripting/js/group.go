package js

import (
	"errors"
	"fmt"

	"github.com/dop251/goja"

	"github.com/weir-run/weir/engine/view"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/api"
	"github.com/weir-run/weir/scripting/operation"
)

// group is a set of records of a batch of either signal that have the same
// values in some fields.
type group struct {
	hosted
	v     *vm
	win   *view.Window
	epoch uint64
	rows  []int
	logs  bool
}

func (g *group) check() { g.v.alive(g.win, g.epoch, "a group") }

// record is the handle of a row.
func (g *group) record(row int) goja.Value {
	if g.logs {
		return g.v.newLine(row).hosted.value()
	}
	return g.v.newRecord(row).hosted.value()
}

// Len returns the number of records when the group was created.
func (g *group) Len() int { return len(g.rows) }

// Get returns a record, or undefined if it was dropped or does not exist.
func (g *group) Get(i int) goja.Value {
	g.check()
	if i < 0 || i >= len(g.rows) || !g.win.Alive(g.rows[i]) {
		return goja.Undefined() // otherwise, the prototype would be searched
	}
	return g.record(g.rows[i])
}

// Set refuses.
func (g *group) Set(int, goja.Value) bool {
	g.v.raise(errors.New("cannot assign to a group: set the fields of its records"))
	return false
}

// SetLen refuses.
func (g *group) SetLen(int) bool { return g.Set(0, nil) }

// heldBytes returns the size of the group's memory.
func (g *group) heldBytes() int { return 8 * cap(g.rows) }

// groups implements batch.groupBy(["job"]): it returns an iterator over groups
// and their common values, in the order of their first records.
func (v *vm) groups(c *operation.Call) goja.Value {
	win, f, logs := c.Window, c.Fields, c.Logs != nil
	read := func(row int) []goja.Value {
		values := make([]goja.Value, f.Len())
		v.readFields(&f, row, values)
		return values
	}
	v.must(v.budget.charge(int64(win.Len())))
	groups := view.GroupBy(win, read, func(x goja.Value) string { return kindOf(x) + x.String() })
	next, epoch := 0, win.Epoch()
	return v.iterate(win.Len()*8+len(groups)*(24+16*f.Len()), func() (goja.Value, bool) {
		v.alive(win, epoch, "groups")
		if next >= len(groups) {
			return nil, false
		}
		of := groups[next]
		next++
		g := &group{v: v, win: win, epoch: epoch, rows: of.Rows, logs: logs}
		r := v.newRow(1 + len(of.Values))
		proto := v.data.proto.group
		if logs {
			proto = v.data.proto.lineGroup
		}
		r.values[0] = g.openArray(v.rt, proto, g)
		copy(r.values[1:], of.Values)
		return r.hosted.value(), true
	})
}

// groupRecords implements group.records().
func (v *vm) groupRecords(g *group) goja.Value {
	at := 0
	return v.iterate(0, func() (goja.Value, bool) {
		g.check()
		for ; at < len(g.rows); at++ {
			if g.win.Alive(g.rows[at]) {
				at++
				return g.record(g.rows[at-1]), true
			}
		}
		return nil, false
	})
}

// openGroups creates the methods of groups.
func (v *vm) openGroups() {
	of := func(call goja.FunctionCall) *group {
		g, ok := arrayOf(call.This).(*group)
		if !ok {
			v.raise(fmt.Errorf("cannot use %s as a group: call methods as group.method()", kindOf(call.This)))
		}
		g.check()
		return g
	}
	open := func(t *scripting.ObjectType) *goja.Object {
		p := v.rt.NewObject()
		for name, fn := range v.operations(t, func(call goja.FunctionCall, c *operation.Call) {
			g := of(call)
			c.Window, c.Metrics, c.Logs, c.Group = g.win, v.win, v.lines, g.rows
		}) {
			v.method(p, name, fn)
		}
		v.method(p, "toString", func(call goja.FunctionCall) goja.Value {
			return v.data.texts.value(fmt.Sprintf("group of %d records", of(call).Len()))
		})
		v.must(p.SetSymbol(goja.SymIterator, p.Get("records")))
		v.guard(p, func(name string) error { return api.Unknown(t, name) })
		return v.freeze(p)
	}
	v.data.proto.group, v.data.proto.lineGroup = open(named().group), open(named().lineGroup)
}
