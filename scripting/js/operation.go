package js

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/dop251/goja"

	"github.com/weir-run/weir/engine/view"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/operation"
)

// operations returns the methods of a type, by their names in JavaScript. on
// sets the receiver of the method in a call.
func (v *vm) operations(t *scripting.ObjectType, on func(call goja.FunctionCall, c *operation.Call)) map[string]native {
	ms := make(map[string]native, len(t.Methods))
	for i := range t.Methods {
		f := &t.Methods[i]
		ms[f.Name] = v.operate(f, on)
	}
	return ms
}

// operate returns an operation as a JavaScript function.
func (v *vm) operate(f *scripting.Function, on func(call goja.FunctionCall, c *operation.Call)) native {
	cost, kinds, run, result := f.Op.Cost, f.Op.Kinds, f.Op.Run, f.Op.Result
	return func(call goja.FunctionCall) goja.Value {
		// An operation may call the script, which may call another operation. After
		// an error, the call stays in use, and a new one replaces it.
		c := v.data.spareCall
		if c == nil || c.Busy() {
			c = new(operation.Call)
			v.data.spareCall = c
		}
		c.Begin(result)
		on(call, c)
		if cost != operation.Free {
			v.charge(cost.Price(c))
		}
		for i, k := range kinds {
			switch k {
			case operation.Values: // read by setValues
			case operation.RestNames:
				c.Args[i].Names = v.restNames(call.Arguments[min(i, len(call.Arguments)):], &f.Params[i])
			default:
				v.argument(call.Argument(i), c, f, i, k)
			}
		}
		if run != nil {
			v.must(run(c))
		}
		var x goja.Value
		if c.Result == operation.Nothing {
			x = goja.Undefined()
		} else {
			x = v.result(call, c, f)
		}
		c.End()
		return x
	}
}

func (v *vm) charge(p operation.Price) {
	if p.Made >= 0 {
		v.must(v.budget.chargeString(p.Made))
	}
	if p.Native >= 0 {
		v.budget.native(p.Native)
	}
	v.must(v.budget.charge(p.Instructions))
}

// argument converts argument i of an operation.
func (v *vm) argument(x goja.Value, c *operation.Call, f *scripting.Function, i int, k operation.Kind) {
	a := &c.Args[i]
	switch k {
	case operation.Text:
		a.Text = v.stringArg(x, f, i)
	case operation.OptionalText:
		a.Text = ""
		if !absentValue(x) {
			a.Text = v.stringArg(x, f, i)
		}
	case operation.Label:
		a.Text = v.labelValue(x, c.Args[i-1].Text)
	case operation.Number:
		var ok bool
		if a.Number, ok = number(x); !ok {
			v.typeError(f, i, x, "a number")
		}
	case operation.Row:
		a.Row = v.rowNumber(c.Window, x)
	case operation.Names:
		a.Names = v.namesArg(x, f, i)
	case operation.Function:
		a.Func = &callback{v: v, of: f, value: x, fn: v.callbackArg(x, f, i)}
	case operation.Pattern:
		a.Pattern = v.patternArg(x, f, i)
	}
}

// typeError throws the error for an argument of the wrong kind.
func (v *vm) typeError(f *scripting.Function, i int, x goja.Value, want string) {
	msg := fmt.Sprintf("must be %s, not %s", want, kindOf(x))
	if x == nil || goja.IsUndefined(x) {
		msg = "is missing; it is " + want
	}
	v.raise(&scripting.ArgError{Func: f.Name, Param: f.Params[i].Name, Msg: msg})
}

func (v *vm) stringArg(x goja.Value, f *scripting.Function, i int) string {
	s, ok := stringOf(x)
	if !ok {
		v.typeError(f, i, x, "a string")
	}
	return s
}

// callbackArg returns a function of the script that is called directly. The
// function that goja exports does not catch exceptions, which makes it three
// times as fast.
func (v *vm) callbackArg(x goja.Value, f *scripting.Function, i int) native {
	o, ok := x.(*goja.Object)
	if !ok {
		v.typeError(f, i, x, "a function")
	}
	if fn := exported[native](o); fn != nil {
		return fn
	}
	fn, ok := goja.AssertFunction(o) // a proxy of a function
	if !ok {
		v.typeError(f, i, x, "a function")
	}
	return func(call goja.FunctionCall) goja.Value {
		out, err := fn(call.This, call.Arguments...)
		v.must(err)
		return out
	}
}

// namesArg reads an array of names: of fields or of labels.
func (v *vm) namesArg(x goja.Value, f *scripting.Function, i int) []string {
	o, ok := x.(*goja.Object)
	if !ok || o.ClassName() != "Array" {
		v.typeError(f, i, x, "an array of strings")
	}
	n := o.Get("length").ToInteger()
	if n > operation.MaxFields {
		v.raise(fmt.Errorf("cannot read %d %s: name between 1 and %d", n, f.Params[i].Name, operation.MaxFields))
	}
	names := make([]string, n)
	for k := range names {
		names[k] = v.nameArg(o.Get(fmt.Sprint(k)), &f.Params[i])
	}
	return names
}

func (v *vm) restNames(args []goja.Value, p *scripting.Param) []string {
	names := make([]string, len(args))
	for i, x := range args {
		names[i] = v.nameArg(x, p)
	}
	return names
}

func (v *vm) nameArg(x goja.Value, p *scripting.Param) string {
	s, ok := stringOf(x)
	if !ok {
		v.raise(fmt.Errorf("cannot use %s as a %s: it must be a string", kindOf(x), strings.TrimSuffix(p.Name, "s")))
	}
	return s
}

// callback is a function of the script that an operation calls.
type callback struct {
	v     *vm
	of    *scripting.Function
	value goja.Value
	fn    native
	args  []goja.Value // of the next call
}

var _ operation.Func = (*callback)(nil)

// Site returns a value that is the same in every VM of a program: the compiled
// code of the function. A built-in function has none, so its results are cached
// for one call only.
func (f *callback) Site() any {
	impl := reflect.ValueOf(f.value).Elem().FieldByName("self").Elem()
	if impl.Kind() != reflect.Pointer || impl.Elem().Kind() != reflect.Struct {
		return nil
	}
	if code := impl.Elem().FieldByName("prg"); code.IsValid() && code.Kind() == reflect.Pointer && !code.IsNil() {
		return code.UnsafePointer()
	}
	return nil
}

// room returns n unset arguments for the next call.
func (f *callback) room(n int) []goja.Value {
	if cap(f.args) < n {
		f.args = make([]goja.Value, n)
	}
	return f.args[:n]
}

func (f *callback) call(args []goja.Value) goja.Value {
	return f.fn(goja.FunctionCall{This: goja.Undefined(), Arguments: args})
}

// MapLabel implements operation.Func.
func (f *callback) MapLabel(name, value string) (string, bool) {
	args := f.room(1)
	args[0] = f.v.data.texts.value(value)
	x := f.call(args)
	if absentValue(x) {
		return "", false
	}
	return f.v.labelValue(x, name), true
}

// MapNumber implements operation.Func.
func (f *callback) MapNumber(n float64) (float64, bool) {
	args := f.room(1)
	args[0] = f.v.data.numbers.value(n)
	x := f.call(args)
	to, ok := number(x)
	if !ok && !absentValue(x) {
		f.v.raise(fmt.Errorf("cannot use %s as a value: %s takes a function that returns a number, or undefined to leave it", kindOf(x), f.of.Name))
	}
	return to, ok
}

// Keeps implements operation.Func. undefined is the result of a forgotten
// return, which must not drop data.
func (f *callback) Keeps(fields *operation.Fields, row int) bool {
	args := f.room(fields.Len())
	f.v.readFields(fields, row, args)
	answer := f.call(args)
	keep, ok := boolean(answer)
	if !ok {
		f.v.raise(fmt.Errorf("cannot filter by %s: the function must return true to keep or false to drop", kindOf(answer)))
	}
	return keep
}

// readFields reads the fields of a row in the running hook's batch into out.
func (v *vm) readFields(f *operation.Fields, row int, out []goja.Value) {
	if f.Lines != nil {
		v.readCells(v.lines, f, row, out)
		return
	}
	for k, c := range f.Columns {
		out[k] = v.field(v.win, c, row)
	}
}

// rowRecord returns the handle of a row in the running hook's batch.
func (v *vm) rowRecord(row int) goja.Value {
	if v.win != nil {
		return v.newRecord(row).hosted.value()
	}
	return v.newLine(row).hosted.value()
}

// result returns the script's result of an operation. It runs the loop of an
// operation with a callback.
func (v *vm) result(call goja.FunctionCall, c *operation.Call, f *scripting.Function) goja.Value {
	switch c.Result {
	case operation.IsString:
		return v.hostString(c.String)
	case operation.IsBool:
		return boolOf(c.Bool)
	case operation.IsValue:
		return v.lineValue(c.Value, c.Logs.Line(c.Record))
	case operation.IsMatch:
		return v.match(c.Pattern(0), c.Logs.Line(c.Record))
	case operation.SampleCopy:
		return v.newCopy(c.Sample)
	case operation.LineCopy:
		return v.newCopiedLine(c.Line)
	case operation.RowList:
		return v.rows(c.Window, c.Fields)
	case operation.RecordList:
		if g, ok := arrayOf(call.This).(*group); ok {
			return v.groupRecords(g)
		}
		return v.iterateRows(c.Window, "records", v.rowRecord)
	case operation.GroupList:
		return v.groups(c)
	case operation.SetValues:
		v.setValues(call, c, f)
	case operation.EachRecord:
		v.eachRecord(c)
	case operation.EachFields:
		v.eachFields(c)
	case operation.EachMatch:
		v.eachMatch(c)
	}
	return goja.Undefined()
}

// rows implements batch.rows("job", "value").
func (v *vm) rows(m *view.Window, f operation.Fields) goja.Value {
	n := 1 + f.Len()
	return v.iterateRows(m, "rows", func(row int) goja.Value {
		r := v.newRow(n)
		r.values[0] = v.data.numbers.int(int64(row))
		v.readFields(&f, row, r.values[1:])
		return r.hosted.value()
	})
}

func (v *vm) eachRecord(c *operation.Call) {
	fn := c.Func(0).(*callback)
	args := fn.room(1)
	v.eachRow(c, func(row int) {
		args[0] = v.rowRecord(row)
		v.atOnce(fn.call(args))
	})
}

func (v *vm) eachFields(c *operation.Call) {
	m, f, fn := c.Logs, c.Fields, c.Func(1).(*callback)
	n := f.Len()
	wants := takesParams(fn.value, n+1)
	args := fn.room(n + 1)
	v.eachRow(c, func(row int) {
		v.readCells(m, &f, row, args)
		v.callLine(m, row, fn.fn, args, n, wants)
	})
}

func (v *vm) eachMatch(c *operation.Call) {
	m, re, fn := c.Logs, c.Pattern(0), c.Func(1).(*callback)
	var args []goja.Value
	wants := false
	v.eachRow(c, func(row int) {
		text := m.Line(row)
		at := v.find(re, text)
		if at == nil {
			return
		}
		if args == nil { // all matches have the same number of groups
			wants = takesParams(fn.value, max(2, len(at)/2))
		}
		args = append(v.groupsOf(args[:0], text, at), nil)
		v.callLine(m, row, fn.fn, args, len(args)-1, wants)
	})
}

// setValues implements batch.set(i, field, value) and batch.set(i, { field:
// value }).
func (v *vm) setValues(call goja.FunctionCall, c *operation.Call, f *scripting.Function) {
	row := c.Row(0)
	if field, ok := stringOf(call.Argument(1)); ok {
		v.setRowField(c, row, field, call.Argument(2))
		return
	}
	if _, ok := call.Argument(1).(*goja.Object); !ok {
		v.typeError(f, 1, call.Argument(1), "a string or an object of fields and values")
	}
	o := v.plain(call.Argument(1), "set fields to")
	for _, k := range v.keys(o) {
		v.setRowField(c, row, k, o.Get(k))
	}
}
