package js

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/dop251/goja"

	"github.com/weir-run/weir/engine/view"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/api"
)

// native is a function that goja calls.
type native = func(goja.FunctionCall) goja.Value

// rowsHandle is `batch` of the hooks metrics and logs; there is one of each a
// VM.
type rowsHandle struct {
	hosted
	v    *vm
	logs bool
}

// window returns the rows of the hook that runs.
func (b *rowsHandle) window() *view.Window {
	switch {
	case b.logs && b.v.lines != nil:
		return &b.v.lines.Window
	case !b.logs && b.v.win != nil:
		return &b.v.win.Window
	}
	b.v.raise(errors.New("cannot use a batch after its hook returned"))
	return nil
}

// Len returns how many records there are, dropped ones among them.
func (b *rowsHandle) Len() int { return b.window().Len() }

// Get returns a record, undefined for one that was dropped or is not there.
func (b *rowsHandle) Get(i int) goja.Value {
	m := b.window()
	switch {
	case i < 0 || i >= m.Len() || !m.Alive(i):
		return goja.Undefined() // or the prototype would be asked
	case b.logs:
		return b.v.newLine(i).hosted.value()
	}
	return b.v.newRecord(i).hosted.value()
}

// Set refuses.
func (b *rowsHandle) Set(int, goja.Value) bool {
	b.v.raise(errors.New("cannot assign to a batch: set the fields of its records"))
	return false
}

// SetLen refuses.
func (b *rowsHandle) SetLen(int) bool { return b.Set(0, nil) }

// openRows makes a batch with its methods.
func (v *vm) openRows(b *rowsHandle, t *scripting.ObjectType, methods map[string]native) goja.Value {
	b.v = v
	p := v.rt.NewObject()
	for name, fn := range methods {
		v.method(p, name, fn)
	}
	v.method(p, "toString", func(call goja.FunctionCall) goja.Value {
		return v.data.texts.value(fmt.Sprintf("batch of %d records", v.windowOf(call).Left()))
	})
	v.must(p.SetSymbol(goja.SymIterator, p.Get("records")))
	v.guard(p, func(name string) error { return api.Unknown(t, name) })
	return b.openArray(v.rt, v.freeze(p), b)
}

func (v *vm) openBatch() {
	v.batch = v.openRows(&rowsHandle{}, named().batch, map[string]native{
		"dropWhere": v.dropWhere, "keepWhere": v.keepWhere, "scale": v.scale, "setValue": v.setValue,
		"setLabel": v.setLabel, "dropLabel": v.dropLabel, "renameLabel": v.renameLabel,
		"mapLabel": v.mapLabel, "mapValue": v.mapValue,
		"filter": v.filter, "rows": v.rows, "set": v.set, "drop": v.drop,
		"each": v.each, "records": v.records, "text": v.batchText, "groupBy": v.groupBy,
	})
}

// windowOf returns the rows of the batch, of whatever signal, that a method was
// called on.
func (v *vm) windowOf(call goja.FunctionCall) *view.Window {
	if b, ok := arrayOf(call.This).(*rowsHandle); ok {
		return b.window()
	}
	v.raise(fmt.Errorf("cannot use %s as a batch: call methods as batch.method()", kindOf(call.This)))
	return nil
}

// samples returns the batch of samples that a method was called on.
func (v *vm) samples(call goja.FunctionCall) *view.Metrics {
	v.windowOf(call)
	if call.This != v.batch {
		v.raise(errors.New("cannot use a batch of log lines as one of samples"))
	}
	return v.win
}

// current returns the rows of the batch of the hook that runs, nil for none.
func (v *vm) current() *view.Window {
	switch {
	case v.win != nil:
		return &v.win.Window
	case v.lines != nil:
		return &v.lines.Window
	}
	return nil
}

// typeError is the error of an argument of the wrong kind.
func (v *vm) typeError(method, param string, x goja.Value, want string) {
	msg := fmt.Sprintf("must be %s, not %s", want, kindOf(x))
	if x == nil || goja.IsUndefined(x) {
		msg = "is missing; it is " + want
	}
	v.raise(&scripting.ArgError{Func: method, Param: param, Msg: msg})
}

func (v *vm) stringArg(call goja.FunctionCall, i int, method, param string) string {
	s, ok := stringOf(call.Argument(i))
	if !ok {
		v.typeError(method, param, call.Argument(i), "a string")
	}
	return s
}

// whereArg is an expression for which nothing stands for all.
func (v *vm) whereArg(call goja.FunctionCall, method string) string {
	if absentValue(call.Argument(0)) {
		return ""
	}
	return v.stringArg(call, 0, method, "where")
}

// callbackArg is a function of the script's, to be called directly: what goja
// exports of a function does not catch what it throws, which is three times as
// quick as what it offers.
func (v *vm) callbackArg(call goja.FunctionCall, i int, method string) native {
	x := call.Argument(i)
	o, ok := x.(*goja.Object)
	if !ok {
		v.typeError(method, "fn", x, "a function")
	}
	if fn := exported[native](o); fn != nil {
		return fn
	}
	fn, ok := goja.AssertFunction(o) // a proxy of one
	if !ok {
		v.typeError(method, "fn", x, "a function")
	}
	return func(call goja.FunctionCall) goja.Value {
		out, err := fn(call.This, call.Arguments...)
		v.must(err)
		return out
	}
}

// work charges for a native operation over the batch: about 5 ns a row, a
// tenth of an instruction.
func (v *vm) work(m *view.Window) {
	v.budget.native(0)
	v.must(v.budget.charge(int64(m.Len()/8) + 1))
}

// workWhere is work for an expression, which may read lines.
func (v *vm) workWhere(call goja.FunctionCall) *view.Window {
	m := v.windowOf(call)
	if v.lines != nil && m == &v.lines.Window {
		v.readLines(v.lines)
	} else {
		v.work(m)
	}
	return m
}

func (v *vm) dropWhere(call goja.FunctionCall) goja.Value {
	m := v.workWhere(call)
	v.must(m.DropWhere(v.stringArg(call, 0, "dropWhere", "where")))
	return goja.Undefined()
}

func (v *vm) keepWhere(call goja.FunctionCall) goja.Value {
	m := v.workWhere(call)
	v.must(m.KeepWhere(v.stringArg(call, 0, "keepWhere", "where")))
	return goja.Undefined()
}

func (v *vm) scale(call goja.FunctionCall) goja.Value {
	m := v.samples(call)
	v.work(&m.Window)
	factor, ok := number(call.Argument(1))
	if !ok {
		v.typeError("scale", "factor", call.Argument(1), "a number")
	}
	v.must(m.Scale(v.whereArg(call, "scale"), factor))
	return goja.Undefined()
}

func (v *vm) setValue(call goja.FunctionCall) goja.Value {
	m := v.samples(call)
	v.work(&m.Window)
	v.must(m.SetValueWhere(v.whereArg(call, "setValue"), v.stringArg(call, 1, "setValue", "value")))
	return goja.Undefined()
}

func (v *vm) setLabel(call goja.FunctionCall) goja.Value {
	m := v.windowOf(call)
	v.work(m)
	name := v.stringArg(call, 0, "setLabel", "name")
	v.must(m.SetLabelAll(name, v.labelValue(call.Argument(1), name)))
	return goja.Undefined()
}

func (v *vm) dropLabel(call goja.FunctionCall) goja.Value {
	m := v.windowOf(call)
	v.work(m)
	v.must(m.DropLabel(v.stringArg(call, 0, "dropLabel", "name")))
	return goja.Undefined()
}

func (v *vm) renameLabel(call goja.FunctionCall) goja.Value {
	m := v.windowOf(call)
	v.work(m)
	v.must(m.RenameLabel(v.stringArg(call, 0, "renameLabel", "name"), v.stringArg(call, 1, "renameLabel", "new")))
	return goja.Undefined()
}

func (v *vm) mapLabel(call goja.FunctionCall) goja.Value {
	m := v.windowOf(call)
	v.work(m)
	name, fn := v.stringArg(call, 0, "mapLabel", "name"), v.callbackArg(call, 1, "mapLabel")
	args := make([]goja.Value, 1)
	v.must(m.MapLabel(siteOf(call.Argument(1)), name, func(value string) (string, bool, error) {
		args[0] = v.data.texts.value(value)
		x := fn(goja.FunctionCall{This: goja.Undefined(), Arguments: args})
		if absentValue(x) {
			return "", true, nil
		}
		return v.labelValue(x, name), false, nil
	}))
	return goja.Undefined()
}

// siteOf identifies a function for what is remembered of its answers, in every
// VM of a program: by the code that goja compiled of it, which they share. A
// function of goja's own has none, and its answers are remembered for one call.
func siteOf(fn goja.Value) any {
	impl := reflect.ValueOf(fn).Elem().FieldByName("self").Elem()
	if impl.Kind() != reflect.Pointer || impl.Elem().Kind() != reflect.Struct {
		return nil
	}
	if code := impl.Elem().FieldByName("prg"); code.IsValid() && code.Kind() == reflect.Pointer && !code.IsNil() {
		return code.UnsafePointer()
	}
	return nil
}

func (v *vm) mapValue(call goja.FunctionCall) goja.Value {
	m := v.samples(call)
	fn := v.callbackArg(call, 0, "mapValue")
	args := make([]goja.Value, 1)
	for i := m.Next(0); i >= 0; i = m.Next(i + 1) {
		if !m.Judged(i) {
			continue
		}
		f, _ := m.Value(i)
		args[0] = v.data.numbers.value(f)
		x := fn(goja.FunctionCall{This: goja.Undefined(), Arguments: args})
		if f, ok := number(x); ok {
			v.must(m.SetValue(i, f))
		} else if !absentValue(x) {
			v.raise(fmt.Errorf("cannot use %s as a value: mapValue takes a function that returns a number, or undefined to leave it", kindOf(x)))
		}
	}
	return goja.Undefined()
}

// column is one projected field of rows and filter.
type column struct {
	kind byte // 'l' label or name, 'v' value, 't' time, 'T' type, 's' stale
	col  *view.Column
}

func columnOf(m *view.Metrics, name string) column {
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
	return column{kind: 'l', col: m.Column(name)}
}

// field returns the field of row i.
func (v *vm) field(m *view.Metrics, c column, i int) goja.Value {
	switch c.kind {
	case 'l':
		if p := c.col.At(m.Series(i)); p != nil {
			return v.data.texts.fixed(p)
		}
	case 'v':
		return v.sampleValue(m, i)
	case 't':
		return v.data.numbers.int(m.Time(i))
	case 'T':
		return v.data.texts.value(m.Type(i))
	case 's':
		return boolOf(m.Stale(i))
	}
	return goja.Undefined()
}

// maxFields is how many fields rows and filter may name.
const maxFields = 32

// fieldNames reads an array of field names.
func (v *vm) fieldNames(x goja.Value, method string) []string {
	o, ok := x.(*goja.Object)
	if !ok || o.ClassName() != "Array" {
		v.typeError(method, "fields", x, "an array of strings")
	}
	n := o.Get("length").ToInteger()
	if n > maxFields {
		v.raise(fmt.Errorf("cannot read %d fields: name between 1 and %d", n, maxFields))
	}
	names := make([]string, n)
	for i := range names {
		names[i] = v.fieldName(o.Get(fmt.Sprint(i)))
	}
	return names
}

func (v *vm) fieldName(x goja.Value) string {
	s, ok := stringOf(x)
	if !ok {
		v.raise(fmt.Errorf("cannot use %s as a field: it must be a string", kindOf(x)))
	}
	return s
}

// columns are the fields of samples that a script names.
func (v *vm) columns(m *view.Metrics, names []string) []column {
	if len(names) == 0 || len(names) > maxFields {
		v.raise(fmt.Errorf("cannot read %d fields: name between 1 and %d", len(names), maxFields))
	}
	cols := make([]column, len(names))
	for i, name := range names {
		cols[i] = columnOf(m, name)
	}
	return cols
}

func (v *vm) filter(call goja.FunctionCall) goja.Value {
	m := v.samples(call)
	cols, fn := v.columns(m, v.fieldNames(call.Argument(0), "filter")), v.callbackArg(call, 1, "filter")
	value := false
	for _, c := range cols {
		value = value || c.kind == 'v'
	}
	args := make([]goja.Value, len(cols))
	for i := m.Next(0); i >= 0; i = m.Next(i + 1) {
		if value && !m.Judged(i) {
			continue
		}
		for k, c := range cols {
			args[k] = v.field(m, c, i)
		}
		if !v.keeps(fn(goja.FunctionCall{This: goja.Undefined(), Arguments: args})) {
			m.Drop(i)
		}
	}
	return goja.Undefined()
}

// keeps is the answer of a filter. Nothing is what a forgotten return gives; it
// must not drop data.
func (v *vm) keeps(answer goja.Value) bool {
	keep, ok := boolean(answer)
	if !ok {
		v.raise(fmt.Errorf("cannot filter by %s: the function must return true to keep or false to drop", kindOf(answer)))
	}
	return keep
}

// names reads the arguments of rows.
func (v *vm) names(call goja.FunctionCall) []string {
	names := make([]string, len(call.Arguments))
	for i, x := range call.Arguments {
		names[i] = v.fieldName(x)
	}
	return names
}

func (v *vm) rows(call goja.FunctionCall) goja.Value {
	m := v.samples(call)
	cols := v.columns(m, v.names(call))
	return v.iterateRows(&m.Window, "rows", func(row int) goja.Value {
		r := v.newRow(1 + len(cols))
		r.values[0] = v.data.numbers.int(int64(row))
		for k, c := range cols {
			r.values[1+k] = v.field(m, c, row)
		}
		return r.hosted.value()
	})
}

// rowNumber is a row number that a script passes.
func (v *vm) rowNumber(m *view.Window, x goja.Value) int {
	f, ok := number(x)
	if !ok {
		v.raise(fmt.Errorf("cannot find a record by %s: it is found by its number, as batch.rows gives it", kindOf(x)))
	}
	if f != float64(int(f)) {
		v.raise(fmt.Errorf("cannot find record %s: its number is a whole number, as batch.rows gives it", x))
	}
	i := int(f)
	if i < 0 || i >= m.Len() {
		v.raise(fmt.Errorf("cannot find record %d: the batch has %d, counted from 0", i, m.Len()))
	}
	return i
}

// setRow calls set with the fields of batch.set(i, field, value) and of
// batch.set(i, { field: value }).
func (v *vm) setRow(call goja.FunctionCall, set func(field string, x goja.Value)) {
	if field, ok := stringOf(call.Argument(1)); ok {
		set(field, call.Argument(2))
		return
	}
	if _, ok := call.Argument(1).(*goja.Object); !ok {
		v.typeError("set", "field", call.Argument(1), "a string or an object of fields and values")
	}
	o := v.plain(call.Argument(1), "set fields to")
	for _, k := range v.keys(o) {
		set(k, o.Get(k))
	}
}

func (v *vm) set(call goja.FunctionCall) goja.Value {
	m := v.samples(call)
	i := v.rowNumber(&m.Window, call.Argument(0))
	v.setRow(call, func(field string, x goja.Value) {
		// Labels go by their names, those that are called like a field as
		// labels.<name>.
		if name, ok := strings.CutPrefix(field, "labels."); ok {
			v.must(m.SetLabel(i, name, v.labelValue(x, name)))
			return
		}
		v.setField(i, field, x, true)
	})
	return goja.Undefined()
}

func (v *vm) drop(call goja.FunctionCall) goja.Value {
	m := v.windowOf(call)
	m.Drop(v.rowNumber(m, call.Argument(0)))
	return goja.Undefined()
}

// each calls the function with one record at a time.
func (v *vm) each(call goja.FunctionCall) goja.Value {
	m := v.samples(call)
	fn := v.callbackArg(call, 0, "each")
	args := make([]goja.Value, 1)
	v.eachRow(&m.Window, m, func(row int) {
		args[0] = v.newRecord(row).hosted.value()
		v.atOnce(fn(goja.FunctionCall{This: goja.Undefined(), Arguments: args}))
	})
	return goja.Undefined()
}

// atOnce refuses a promise: what comes after it would come too late to be undone.
func (v *vm) atOnce(x goja.Value) {
	if promiseOf(x) != nil {
		v.raise(errors.New("cannot wait in each: an error could not be undone; go over batch.records() with for, in an async hook"))
	}
}

// eachRow calls step for one row at a time. An error undoes what was done to
// that row, and what was emitted, and goes on with the next.
func (v *vm) eachRow(m *view.Window, b scripting.MarkedBatch, step func(row int)) {
	if v.hook == hookEach {
		v.raise(errors.New("cannot use each inside of each: an error could not be undone; go over batch.records() inside"))
	}
	hook := v.hook
	v.hook = hookEach
	defer func() { v.hook = hook }()
	rows := scripting.RowsOf(m, b, v.out, v.outLogs)
	// One try for many records: the loop is entered again after an error.
	loop := func() { rows.Each(step) }
	for {
		ex := v.rt.Try(loop)
		if ex == nil {
			return
		}
		v.must(v.budget.err())
		e := v.scriptError(ex).(*scripting.Error)
		if v.broken {
			v.raise(e.Err)
		}
		rows.Fail(v.call, e)
	}
}

// hookEach is what errors in the callback of each give as their hook.
const hookEach = "each"

func (v *vm) records(call goja.FunctionCall) goja.Value {
	m := v.samples(call)
	return v.iterateRows(&m.Window, "records", func(row int) goja.Value { return v.newRecord(row).hosted.value() })
}

func (v *vm) batchText(call goja.FunctionCall) goja.Value {
	m := v.samples(call)
	v.must(v.budget.charge(int64(m.Len()) * 10))
	return v.hostString(string(m.Text()))
}

// hostString is a string that the host made.
func (v *vm) hostString(s string) goja.Value {
	v.must(v.budget.chargeString(int64(len(s))))
	return v.data.texts.value(s)
}
