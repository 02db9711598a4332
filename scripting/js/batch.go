package js

import (
	"errors"
	"fmt"
	"strings"

	"github.com/dop251/goja"

	"github.com/weir-run/weir/engine/view"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/api"
	"github.com/weir-run/weir/scripting/operation"
)

// native is a function that goja calls.
type native = func(goja.FunctionCall) goja.Value

// rowsHandle is `batch` of the hooks metrics and logs. Each VM has one of each.
type rowsHandle struct {
	hosted
	v    *vm
	logs bool
}

// window returns the rows of the running hook.
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

// Len returns the number of records, including dropped ones.
func (b *rowsHandle) Len() int { return b.window().Len() }

// Get returns a record, or undefined if it was dropped or does not exist.
func (b *rowsHandle) Get(i int) goja.Value {
	m := b.window()
	switch {
	case i < 0 || i >= m.Len() || !m.Alive(i):
		return goja.Undefined() // otherwise, the prototype would be searched
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

// openRows creates a batch object with its methods.
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
	t := named().batch
	v.batch = v.openRows(&rowsHandle{}, t, v.operations(t, func(call goja.FunctionCall, c *operation.Call) {
		m := v.samples(call)
		c.Window, c.Metrics, c.Logs = &m.Window, m, nil
	}))
}

// windowOf returns the rows of the batch, of either signal, that a method was
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

// current returns the rows of the running hook's batch, or nil.
func (v *vm) current() *view.Window {
	switch {
	case v.win != nil:
		return &v.win.Window
	case v.lines != nil:
		return &v.lines.Window
	}
	return nil
}

// field returns a field of row i.
func (v *vm) field(m *view.Metrics, c operation.Column, i int) goja.Value {
	switch c.Kind {
	case operation.LabelColumn:
		if p := c.Labels.At(m.Series(i)); p != nil {
			return v.data.texts.fixed(p)
		}
	case operation.ValueColumn:
		return v.sampleValue(m, i)
	case operation.TimeColumn:
		return v.data.numbers.int(m.Time(i))
	case operation.TypeColumn:
		return v.data.texts.value(m.Type(i))
	case operation.StaleColumn:
		return boolOf(m.Stale(i))
	}
	return goja.Undefined()
}

// rowNumber converts a row number from a script.
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

// setRowField sets a field, with the names of rows: labels by their names, or
// as labels.<name> if the name is that of a field.
func (v *vm) setRowField(c *operation.Call, i int, field string, x goja.Value) {
	if name, ok := strings.CutPrefix(field, "labels."); ok {
		v.must(c.Window.SetLabel(i, name, v.labelValue(x, name)))
		return
	}
	if c.Metrics != nil {
		v.setField(i, field, x, true)
		return
	}
	if name, ok := strings.CutPrefix(field, "meta."); ok {
		v.must(c.Logs.SetMeta(i, name, v.labelValue(x, name)))
		return
	}
	v.setLineField(i, field, x, true)
}

// atOnce refuses a promise, because later changes could not be undone.
func (v *vm) atOnce(x goja.Value) {
	if promiseOf(x) != nil {
		v.raise(errors.New("cannot wait in each: an error could not be undone; go over batch.records() with for, in an async hook"))
	}
}

// eachRow calls step for one row at a time. An error undoes the changes to that
// row and its emitted records, and the loop continues with the next row.
func (v *vm) eachRow(c *operation.Call, step func(row int)) {
	if v.hook == hookEach {
		v.raise(errors.New("cannot use each inside of each: an error could not be undone; go over batch.records() inside"))
	}
	hook := v.hook
	v.hook = hookEach
	defer func() { v.hook = hook }()
	b := scripting.MarkedBatch(c.Metrics)
	if c.Logs != nil {
		b = c.Logs
	}
	rows := scripting.RowsOf(c.Window, b, v.out, v.outLogs)
	// One try covers many records. After an error, the loop is entered again.
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

// hookEach is the hook of errors in the callback of each.
const hookEach = "each"

// hostString converts a string that the host created.
func (v *vm) hostString(s string) goja.Value {
	v.must(v.budget.chargeString(int64(len(s))))
	return v.data.texts.value(s)
}
