package lua

import (
	"errors"
	"fmt"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/weir-run/weir/engine/view"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/api"
	"github.com/weir-run/weir/scripting/operation"
)

// batchHandle is `batch` of the hook metrics; there is one a VM.
type batchHandle struct{ v *vm }

func (b batchHandle) check(L *lua.LState) *view.Metrics {
	if b.v.call.metrics == nil {
		b.v.raise(L, errors.New("cannot use a batch after its hook returned"))
	}
	return b.v.call.metrics
}

// checkMetrics returns the batch that a method was called on.
func (v *vm) checkMetrics(L *lua.LState) *view.Metrics {
	if v.projector.active != nil {
		v.projector.active.touch()
	}
	return self[batchHandle](v, L, "a batch").check(L)
}

func (v *vm) openBatch(mt func(index, newindex, tostring lua.LGFunction) *lua.LTable) {
	L := v.L
	methods := v.bindOperations(api.Get().Batch, func(L *lua.LState, c *operation.Call) {
		m := v.checkMetrics(L)
		c.Window, c.Metrics, c.Logs = &m.Window, m, nil
	})
	v.values.mt.batch = mt(func(L *lua.LState) int {
		switch key := L.Get(2).(type) {
		case lua.LString:
			f := methods.find(key)
			if f == nil {
				v.raise(L, api.Unknown(api.Get().Batch, string(key)))
			}
			L.Push(f)
		case lua.LNumber:
			m := v.checkMetrics(L)
			i := int(key) - 1
			if float64(i+1) != float64(key) || i < 0 || i >= m.Len() || !m.Alive(i) {
				L.Push(lua.LNil)
				break
			}
			L.Push(&v.newRecord(i).ud)
		default:
			L.Push(lua.LNil)
		}
		return 1
	}, func(L *lua.LState) int {
		v.raise(L, errors.New("cannot assign to a batch: set the fields of its records"))
		return 0
	}, func(L *lua.LState) int {
		L.Push(lua.LString(fmt.Sprintf("batch of %d records", v.checkMetrics(L).Left())))
		return 1
	})
	v.values.mt.batch.RawSetString("__len", L.NewFunction(func(L *lua.LState) int {
		L.Push(v.values.numbers.value(float64(v.checkMetrics(L).Len())))
		return 1
	}))
	v.args.batch = &lua.LUserData{Value: batchHandle{v}, Metatable: v.values.mt.batch}
}

// currentWindow returns the rows of the batch of the hook that runs, nil for none.
func (v *vm) currentWindow() *view.Window {
	switch {
	case v.call.metrics != nil:
		return &v.call.metrics.Window
	case v.call.logs != nil:
		return &v.call.logs.Window
	}
	return nil
}

// fieldValue returns the field of row i.
func (v *vm) fieldValue(m *view.Metrics, c operation.Column, i int) lua.LValue {
	switch c.Kind {
	case operation.LabelColumn:
		if p := c.Labels.At(m.Series(i)); p != nil {
			return boxString(p)
		}
	case operation.ValueColumn:
		return v.sampleValue(m, i)
	case operation.TimeColumn:
		return v.values.numbers.value(float64(m.Time(i)))
	case operation.TypeColumn:
		return v.values.label(m.Type(i))
	case operation.StaleColumn:
		return lua.LBool(m.Stale(i))
	}
	return lua.LNil
}

// pushIterator pushes an iterator over the rows that are left. push pushes the values
// of a row and returns their number.
func (v *vm) pushIterator(L *lua.LState, m *view.Window, what string, push func(L *lua.LState, row int) int) int {
	row, epoch := -1, m.Epoch()
	L.Push(L.NewFunction(func(L *lua.LState) int {
		if v.currentWindow() != m || m.Epoch() != epoch {
			v.raise(L, fmt.Errorf("cannot use %s after its hook returned", what))
		}
		row = m.Next(row + 1)
		if row < 0 {
			row = m.Len()
			L.Push(lua.LNil)
			return 1
		}
		return push(L, row)
	}))
	return 1
}

// rowNumber is a row number that a script passes.
func (v *vm) rowNumber(L *lua.LState, m *view.Window, n lua.LNumber) int {
	if n != lua.LNumber(int(n)) {
		v.raise(L, fmt.Errorf("cannot find record %s: its number is a whole number, as batch:rows gives it", formatNumber(float64(n))))
	}
	i := int(n) - 1
	if i < 0 || i >= m.Len() {
		v.raise(L, fmt.Errorf("cannot find record %d: the batch has %d", i+1, m.Len()))
	}
	return i
}

// setRowField sets a field as rows names them: labels by their names, those
// that are called like a field as labels.<name>.
func (v *vm) setRowField(L *lua.LState, c *operation.Call, i int, field string, x lua.LValue) {
	if name, ok := strings.CutPrefix(field, "labels."); ok {
		v.must(L, c.Window.SetLabel(i, name, v.labelValue(L, x, name)))
		return
	}
	if c.Metrics != nil {
		v.setField(L, i, field, x, true)
		return
	}
	if name, ok := strings.CutPrefix(field, "meta."); ok {
		v.must(L, c.Logs.SetMeta(i, name, v.labelValue(L, x, name)))
		return
	}
	v.setLineField(L, i, field, x, true)
}

// eachRecord calls the function with one record at a time.
func (v *vm) eachRecord(L *lua.LState, m *view.Metrics, fn *lua.LFunction) {
	cursor := v.cursorFor(m, fn)
	if cursor == nil {
		v.eachRow(L, &m.Window, m, func(L *lua.LState, row int) {
			L.Push(fn)
			L.Push(&v.newRecord(row).ud)
			L.Call(1, 0)
		})
		return
	}
	fn = cursor.of.function(fn)
	v.projector.active = cursor
	defer func() {
		v.projector.active = nil
		cursor.release()
	}()
	v.eachRow(L, &m.Window, m, func(L *lua.LState, row int) {
		L.Push(fn)
		cursor.move(m, row)
		L.Push(cursor.table)
		L.Call(1, 0)
	})
}

// eachRow calls step for one row at a time. An error undoes what was done to
// that row, and what was emitted, and goes on with the next.
func (v *vm) eachRow(L *lua.LState, m *view.Window, b scripting.MarkedBatch, step func(L *lua.LState, row int)) {
	hook, ok := v.call.enterEach()
	if !ok {
		v.raise(L, errors.New("cannot use each inside of each: an error could not be undone; go over batch:records() inside"))
	}
	defer v.call.leaveEach(hook)
	rows := scripting.RowsOf(m, b, v.call.outMetrics, v.call.outLogs)
	// One PCall for many records: the loop is entered again after an error.
	loop := L.NewFunction(func(L *lua.LState) int {
		rows.Each(func(row int) { step(L, row) })
		return 0
	})
	for {
		L.Push(loop)
		err := v.trap.tryRecorded(L, 0, 0)
		if err == nil {
			return
		}
		if v.budget.tripped != nil {
			v.raise(L, v.budget.tripped)
		}
		e := v.scriptError(err).(*scripting.Error)
		if v.broken {
			v.raise(L, e.Err)
		}
		rows.Fail(v.call.params, e)
	}
}
