package lua

import (
	"errors"
	"fmt"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/weir-run/weir/engine/view"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/api"
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
	methods := map[string]*lua.LFunction{}
	for name, f := range map[string]lua.LGFunction{
		"drop_where": v.dropWhere, "keep_where": v.keepWhere, "scale": v.scale, "set_value": v.setValue,
		"set_label": v.setLabel, "drop_label": v.dropLabel, "rename_label": v.renameLabel,
		"map_label": v.mapLabel, "map_value": v.mapValue,
		"filter": v.filter, "rows": v.rows, "set": v.set, "drop": v.drop,
		"each": v.each, "records": v.records, "text": v.batchText, "group_by": v.groupBy,
	} {
		methods[name] = L.NewFunction(f)
	}
	v.values.mt.batch = mt(func(L *lua.LState) int {
		switch key := L.Get(2).(type) {
		case lua.LString:
			f, ok := methods[string(key)]
			if !ok {
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

// checkWindow returns the rows of the batch, of samples or lines, that a method was
// called on.
func (v *vm) checkWindow(L *lua.LState) *view.Window {
	if ud, ok := L.Get(1).(*lua.LUserData); ok {
		if b, ok := ud.Value.(logsHandle); ok {
			return &b.check(L).Window
		}
	}
	return &v.checkMetrics(L).Window
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

// chargeRows charges for a native operation over the batch: about 5 ns a row, a
// tenth of an instruction.
func (v *vm) chargeRows(L *lua.LState, m *view.Window) {
	v.budget.native(0)
	v.must(L, v.budget.charge(int64(m.Len()/8)+1))
}

// chargeWhere charges for an expression, which may read lines.
func (v *vm) chargeWhere(L *lua.LState) *view.Window {
	m := v.checkWindow(L)
	if v.call.logs != nil && m == &v.call.logs.Window {
		v.chargeLines(L, v.call.logs)
	} else {
		v.chargeRows(L, m)
	}
	return m
}

func (v *vm) dropWhere(L *lua.LState) int {
	m := v.chargeWhere(L)
	v.must(L, m.DropWhere(L.CheckString(2)))
	return 0
}

func (v *vm) keepWhere(L *lua.LState) int {
	m := v.chargeWhere(L)
	v.must(L, m.KeepWhere(L.CheckString(2)))
	return 0
}

func (v *vm) scale(L *lua.LState) int {
	m := v.checkMetrics(L)
	v.chargeRows(L, &m.Window)
	where := ""
	if L.Get(2) != lua.LNil {
		where = L.CheckString(2)
	}
	v.must(L, m.Scale(where, float64(L.CheckNumber(3))))
	return 0
}

func (v *vm) setValue(L *lua.LState) int {
	m := v.checkMetrics(L)
	v.chargeRows(L, &m.Window)
	where := ""
	if L.Get(2) != lua.LNil {
		where = L.CheckString(2)
	}
	v.must(L, m.SetValueWhere(where, L.CheckString(3)))
	return 0
}

func (v *vm) setLabel(L *lua.LState) int {
	m := v.checkWindow(L)
	v.chargeRows(L, m)
	name := L.CheckString(2)
	v.must(L, m.SetLabelAll(name, v.labelValue(L, L.Get(3), name)))
	return 0
}

func (v *vm) dropLabel(L *lua.LState) int {
	m := v.checkWindow(L)
	v.chargeRows(L, m)
	v.must(L, m.DropLabel(L.CheckString(2)))
	return 0
}

func (v *vm) renameLabel(L *lua.LState) int {
	m := v.checkWindow(L)
	v.chargeRows(L, m)
	v.must(L, m.RenameLabel(L.CheckString(2), L.CheckString(3)))
	return 0
}

func (v *vm) mapLabel(L *lua.LState) int {
	m := v.checkWindow(L)
	v.chargeRows(L, m)
	name, fn := L.CheckString(2), L.CheckFunction(3)
	// Answers are remembered under a key that is the same in every VM: the shared
	// code of a script's function, or the name of a library function.
	var site any
	if fn.Proto != nil {
		site = fn.Proto
	} else if n, ok := v.library.names[fn]; ok {
		site = n
	}
	v.must(L, m.MapLabel(site, name, func(value string) (string, bool, error) {
		L.Push(fn)
		L.Push(lua.LString(value))
		L.Call(1, 1)
		x := L.Get(-1)
		L.Pop(1)
		if x == lua.LNil {
			return "", true, nil
		}
		return v.labelValue(L, x, name), false, nil
	}))
	return 0
}

func (v *vm) mapValue(L *lua.LState) int {
	m := v.checkMetrics(L)
	fn := L.CheckFunction(2)
	for i := m.Next(0); i >= 0; i = m.Next(i + 1) {
		if !m.Judged(i) {
			continue
		}
		f, _ := m.Value(i)
		L.Push(fn)
		L.Push(v.values.numbers.value(f))
		L.Call(1, 1)
		x := L.Get(-1)
		L.Pop(1)
		switch n := x.(type) {
		case lua.LNumber:
			v.must(L, m.SetValue(i, float64(n)))
		case *lua.LNilType:
		default:
			v.raise(L, fmt.Errorf("cannot use a %s as a value: map_value takes a function that returns a number, or nil to leave it", x.Type()))
		}
	}
	return 0
}

// column is one projected field of rows and filter.
type column struct {
	kind byte // 'l' label or name, 'v' value, 't' time, 'T' type, 's' stale
	col  *view.Column
}

func (v *vm) newColumn(L *lua.LState, m *view.Metrics, x lua.LValue) column {
	name, ok := x.(lua.LString)
	if !ok {
		v.raise(L, fmt.Errorf("cannot use a %s as a field: it is name, value, time, type, stale or a label", x.Type()))
	}
	switch name {
	case "value":
		return column{kind: 'v'}
	case "time":
		return column{kind: 't'}
	case "type":
		return column{kind: 'T'}
	case "stale":
		return column{kind: 's'}
	}
	return column{kind: 'l', col: m.Column(string(name))}
}

// fieldValue returns the field of row i.
func (v *vm) fieldValue(m *view.Metrics, c column, i int) lua.LValue {
	switch c.kind {
	case 'l':
		if p := c.col.At(m.Series(i)); p != nil {
			return boxString(p)
		}
	case 'v':
		return v.sampleValue(m, i)
	case 't':
		return v.values.numbers.value(float64(m.Time(i)))
	case 'T':
		return v.values.label(m.Type(i))
	case 's':
		return lua.LBool(m.Stale(i))
	}
	return lua.LNil
}

func (v *vm) filter(L *lua.LState) int {
	m := v.checkMetrics(L)
	names, fn := v.readOnly.real(L.CheckTable(2)), L.CheckFunction(3)
	var cols []column
	value := false
	for i := 1; i <= names.Len(); i++ {
		c := v.newColumn(L, m, names.RawGetInt(i))
		cols = append(cols, c)
		value = value || c.kind == 'v'
	}
	if len(cols) == 0 || len(cols) > maxFields {
		v.raise(L, fmt.Errorf("cannot filter on %d fields: name between 1 and %d", len(cols), maxFields))
	}
	for i := m.Next(0); i >= 0; i = m.Next(i + 1) {
		if value && !m.Judged(i) {
			continue
		}
		L.Push(fn)
		for _, c := range cols {
			L.Push(v.fieldValue(m, c, i))
		}
		L.Call(len(cols), 1)
		keep := L.Get(-1)
		L.Pop(1)
		if !v.checkAnswer(L, keep) {
			m.Drop(i)
		}
	}
	return 0
}

// checkAnswer reports whether a filter keeps a record. It refuses nil, the result of a
// forgotten return, which must not drop data.
func (v *vm) checkAnswer(L *lua.LState, answer lua.LValue) bool {
	if answer != lua.LTrue && answer != lua.LFalse {
		v.raise(L, fmt.Errorf("cannot filter by a %s: the function must return true to keep or false to drop", answer.Type()))
	}
	return answer == lua.LTrue
}

// maxFields is how many fields rows and filter may name.
const maxFields = 32

func (v *vm) rows(L *lua.LState) int {
	m := v.checkMetrics(L)
	n := L.GetTop() - 1
	if n < 1 || n > maxFields {
		v.raise(L, fmt.Errorf("cannot read %d fields: name between 1 and %d", n, maxFields))
	}
	cols := make([]column, n)
	for i := range cols {
		cols[i] = v.newColumn(L, m, L.Get(i+2))
	}
	return v.pushIterator(L, &m.Window, "rows", func(L *lua.LState, row int) int {
		L.Push(v.values.numbers.value(float64(row + 1)))
		for _, c := range cols {
			L.Push(v.fieldValue(m, c, row))
		}
		return n + 1
	})
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

// rowArg is a row number that a script passes.
func (v *vm) rowArg(L *lua.LState, m *view.Window) int {
	return v.rowNumber(L, m, L.CheckNumber(2))
}

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

// set is batch:set(i, field, value) and batch:set(i, { field = value }).
func (v *vm) set(L *lua.LState) int {
	m := v.checkMetrics(L)
	i := v.rowArg(L, &m.Window)
	if t, ok := L.Get(3).(*lua.LTable); ok {
		for k, x := range entries(v.readOnly.real(t)) {
			v.setRowField(L, m, i, k.String(), x)
		}
		return 0
	}
	v.setRowField(L, m, i, L.CheckString(3), L.Get(4))
	return 0
}

// setRowField sets a field as rows names them: labels by their names, those
// that are called like a field as labels.<name>.
func (v *vm) setRowField(L *lua.LState, m *view.Metrics, i int, field string, x lua.LValue) {
	if name, ok := strings.CutPrefix(field, "labels."); ok {
		v.must(L, m.SetLabel(i, name, v.labelValue(L, x, name)))
		return
	}
	v.setField(L, i, field, x, true)
}

func (v *vm) drop(L *lua.LState) int {
	m := v.checkWindow(L)
	m.Drop(v.rowArg(L, m))
	return 0
}

// each calls the function with one record at a time.
func (v *vm) each(L *lua.LState) int {
	m := v.checkMetrics(L)
	fn := L.CheckFunction(2)
	cursor := v.cursorFor(L, m, fn)
	if cursor == nil {
		return v.eachRow(L, &m.Window, m, func(L *lua.LState, row int) {
			L.Push(fn)
			L.Push(&v.newRecord(row).ud)
			L.Call(1, 0)
		})
	}
	fn = cursor.of.function(fn)
	v.projector.active = cursor
	defer func() {
		v.projector.active = nil
		cursor.release()
	}()
	return v.eachRow(L, &m.Window, m, func(L *lua.LState, row int) {
		L.Push(fn)
		cursor.move(m, row)
		L.Push(cursor.table)
		L.Call(1, 0)
	})
}

// eachRow calls step for one row at a time. An error undoes what was done to
// that row, and what was emitted, and goes on with the next.
func (v *vm) eachRow(L *lua.LState, m *view.Window, b scripting.MarkedBatch, step func(L *lua.LState, row int)) int {
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
			return 0
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

func (v *vm) records(L *lua.LState) int {
	m := v.checkMetrics(L)
	return v.pushIterator(L, &m.Window, "records", func(L *lua.LState, row int) int {
		L.Push(&v.newRecord(row).ud)
		return 1
	})
}

func (v *vm) batchText(L *lua.LState) int {
	m := v.checkMetrics(L)
	v.must(L, v.budget.charge(int64(m.Len())*10))
	v.pushString(L, string(m.Text()))
	return 1
}
