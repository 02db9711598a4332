package js

import (
	"errors"
	"fmt"

	"github.com/dop251/goja"

	"github.com/weir-run/weir/engine/view"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/api"
)

// group is some records of a batch of either signal: those with the same values
// of some fields.
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

// Len returns how many records there were when the group was made.
func (g *group) Len() int { return len(g.rows) }

// Get returns a record, undefined for one that was dropped or is not there.
func (g *group) Get(i int) goja.Value {
	g.check()
	if i < 0 || i >= len(g.rows) || !g.win.Alive(g.rows[i]) {
		return goja.Undefined() // or the prototype would be asked
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

// heldBytes tells what a group holds.
func (g *group) heldBytes() int { return 8 * cap(g.rows) }

// groupBy is batch.groupBy(["job"]): an iterator over groups and the values that
// they have in common, in the order of their first records.
func (v *vm) groupBy(call goja.FunctionCall) goja.Value {
	win := v.windowOf(call)
	names := v.fieldNames(call.Argument(0), "groupBy")
	logs := call.This == v.logBatch
	var read func(row int) []goja.Value
	if logs {
		m := v.lines
		v.readLines(m)
		p := v.projection(m, "", names)
		read = func(row int) []goja.Value {
			values := make([]goja.Value, p.Len())
			v.readCells(m, p, row, values)
			return values
		}
	} else {
		m := v.win
		cols := v.columns(m, names)
		read = func(row int) []goja.Value {
			values := make([]goja.Value, len(cols))
			for k, c := range cols {
				values[k] = v.field(m, c, row)
			}
			return values
		}
	}
	v.must(v.budget.charge(int64(win.Len())))
	groups := view.GroupBy(win, read, func(x goja.Value) string { return kindOf(x) + x.String() })
	next, epoch := 0, win.Epoch()
	return v.iterate(win.Len()*8+len(groups)*(24+16*len(names)), func() (goja.Value, bool) {
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

// openGroups makes the methods of groups.
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
		v.method(p, "drop", func(call goja.FunctionCall) goja.Value {
			g := of(call)
			for _, row := range g.rows {
				g.win.Drop(row)
			}
			return goja.Undefined()
		})
		v.method(p, "records", func(call goja.FunctionCall) goja.Value {
			g, at := of(call), 0
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
		})
		v.method(p, "toString", func(call goja.FunctionCall) goja.Value {
			return v.data.texts.value(fmt.Sprintf("group of %d records", of(call).Len()))
		})
		v.must(p.SetSymbol(goja.SymIterator, p.Get("records")))
		v.guard(p, func(name string) error { return api.Unknown(t, name) })
		return v.freeze(p)
	}
	v.data.proto.group, v.data.proto.lineGroup = open(named().group), open(named().lineGroup)
}
