package lua

import (
	"fmt"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/operation"
)

// methods are the operations of a type.
type methods []method

type method struct {
	name lua.LString
	fn   *lua.LFunction
}

// find returns the method of that name, nil for none. There are so few that this
// is as quick as a map.
func (ms methods) find(name lua.LString) *lua.LFunction {
	for i := range ms {
		if ms[i].name == name {
			return ms[i].fn
		}
	}
	return nil
}

// bindOperations makes the operations of a type. on puts into a call what the
// method was called on.
func (v *vm) bindOperations(t *scripting.ObjectType, on func(L *lua.LState, c *operation.Call)) methods {
	ms := make(methods, len(t.Methods))
	for i := range t.Methods {
		f := &t.Methods[i]
		ms[i] = method{lua.LString(f.Name), v.L.NewFunction(v.operate(f, on))}
	}
	return ms
}

// operate returns an operation as a function of Lua.
func (v *vm) operate(f *scripting.Function, on func(L *lua.LState, c *operation.Call)) lua.LGFunction {
	cost, kinds, run, result := f.Op.Cost, f.Op.Kinds, f.Op.Run, f.Op.Result
	return func(L *lua.LState) int {
		// An operation may call the script, which may call another one. After an
		// error the call stays in use, and another one takes its place.
		c := v.handles.spareCall
		if c == nil || c.Busy() {
			c = new(operation.Call)
			v.handles.spareCall = c
		}
		c.Begin(result)
		on(L, c)
		if cost != operation.Free {
			v.charge(L, cost.Price(c))
		}
		for i, k := range kinds {
			v.argument(L, c, f, i, k)
		}
		if run != nil {
			v.must(L, run(c))
		}
		n := 0
		if c.Result != operation.Nothing {
			n = v.result(L, c)
		}
		c.End()
		return n
	}
}

func (v *vm) charge(L *lua.LState, p operation.Price) {
	if p.Made >= 0 {
		v.must(L, v.budget.chargeString(p.Made))
	}
	if p.Native >= 0 {
		v.budget.native(p.Native)
	}
	v.must(L, v.budget.charge(p.Instructions))
}

// argument converts argument i of an operation.
func (v *vm) argument(L *lua.LState, c *operation.Call, f *scripting.Function, i int, k operation.Kind) {
	a, at := &c.Args[i], i+2 // behind what the method is called on
	switch k {
	case operation.Text:
		a.Text = L.CheckString(at)
	case operation.OptionalText:
		a.Text = ""
		if L.Get(at) != lua.LNil {
			a.Text = L.CheckString(at)
		}
	case operation.Label:
		a.Text = v.labelValue(L, L.Get(at), c.Args[i-1].Text)
	case operation.Number:
		a.Number = float64(L.CheckNumber(at))
	case operation.Row:
		a.Row = v.rowNumber(L, c.Window, L.CheckNumber(at))
	case operation.Names:
		a.Names = v.namesArg(L, c, &f.Params[i], L.CheckTable(at))
	case operation.RestNames:
		a.Names = v.restNames(L, c, &f.Params[i], at)
	case operation.Function:
		a.Func = &callback{v, L, L.CheckFunction(at), f}
	case operation.Pattern:
		a.Pattern = v.patternArg(L, at)
	}
}

// namesArg reads a table of names: of fields or of labels.
func (v *vm) namesArg(L *lua.LState, c *operation.Call, p *scripting.Param, t *lua.LTable) []string {
	t = v.readOnly.real(t)
	var names []string
	for i := 1; i <= t.Len(); i++ {
		names = append(names, v.nameArg(L, c, p, t.RawGetInt(i)))
	}
	return names
}

func (v *vm) nameArg(L *lua.LState, c *operation.Call, p *scripting.Param, x lua.LValue) string {
	s, ok := x.(lua.LString)
	if !ok {
		what, want := strings.TrimSuffix(p.Name, "s"), "a string"
		if c.Metrics != nil && what == "field" {
			want = "name, value, time, type, stale or a label"
		}
		v.raise(L, fmt.Errorf("cannot use a %s as a %s: it must be %s", x.Type(), what, want))
	}
	return string(s)
}

// restNames are all arguments from one on.
func (v *vm) restNames(L *lua.LState, c *operation.Call, p *scripting.Param, from int) []string {
	names := make([]string, 0, max(0, L.GetTop()-from+1))
	for i := from; i <= L.GetTop(); i++ {
		if c.Logs != nil {
			names = append(names, L.CheckString(i))
		} else {
			names = append(names, v.nameArg(L, c, p, L.Get(i)))
		}
	}
	return names
}

// callback is a function of the script that an operation calls.
type callback struct {
	v  *vm
	L  *lua.LState
	fn *lua.LFunction
	of *scripting.Function
}

var _ operation.Func = (*callback)(nil)

// Site returns what is the same in every VM: the shared code of a script's
// function, the name of a library function.
func (f *callback) Site() any {
	if f.fn.Proto != nil {
		return f.fn.Proto
	}
	if name, ok := f.v.library.names[f.fn]; ok {
		return name
	}
	return nil
}

// call calls the function with what was pushed behind it.
func (f *callback) call(args int) lua.LValue {
	f.L.Call(args, 1)
	x := f.L.Get(-1)
	f.L.Pop(1)
	return x
}

// MapLabel implements operation.Func.
func (f *callback) MapLabel(name, value string) (string, bool) {
	f.L.Push(f.fn)
	f.L.Push(lua.LString(value))
	x := f.call(1)
	if x == lua.LNil {
		return "", false
	}
	return f.v.labelValue(f.L, x, name), true
}

// MapNumber implements operation.Func.
func (f *callback) MapNumber(x float64) (float64, bool) {
	f.L.Push(f.fn)
	f.L.Push(f.v.values.numbers.value(x))
	switch x := f.call(1).(type) {
	case lua.LNumber:
		return float64(x), true
	case *lua.LNilType:
	default:
		f.v.raise(f.L, fmt.Errorf("cannot use a %s as a value: %s takes a function that returns a number, or nil to leave it", x.Type(), f.of.Name))
	}
	return 0, false
}

// Keeps implements operation.Func. Nothing is what a forgotten return gives; it
// must not drop data.
func (f *callback) Keeps(fields *operation.Fields, row int) bool {
	f.L.Push(f.fn)
	f.v.pushFields(f.L, fields, row)
	answer := f.call(fields.Len())
	if answer != lua.LTrue && answer != lua.LFalse {
		f.v.raise(f.L, fmt.Errorf("cannot filter by a %s: the function must return true to keep or false to drop", answer.Type()))
	}
	return answer == lua.LTrue
}

// pushFields pushes the fields of a row of the batch of the hook that runs.
func (v *vm) pushFields(L *lua.LState, f *operation.Fields, row int) {
	if f.Lines != nil {
		v.pushCells(L, v.call.logs, f.Lines, row)
		return
	}
	for _, c := range f.Columns {
		L.Push(v.fieldValue(v.call.metrics, c, row))
	}
}

// record is the handle of a row of the batch of the hook that runs.
func (v *vm) record(row int) *lua.LUserData {
	if v.call.metrics != nil {
		return &v.newRecord(row).ud
	}
	return &v.newLine(row).ud
}

// result pushes what an operation results in, or runs the loop over it, and
// returns how many values the script gets.
func (v *vm) result(L *lua.LState, c *operation.Call) int {
	switch c.Result {
	case operation.IsString:
		v.pushString(L, c.String)
	case operation.IsBool:
		L.Push(lua.LBool(c.Bool))
	case operation.IsValue:
		L.Push(v.lineValue(c.Value, c.Logs.Line(c.Record)))
	case operation.IsMatch:
		text := c.Logs.Line(c.Record)
		at := v.find(L, c.Pattern(0), text)
		if at == nil {
			L.Push(lua.LNil)
			break
		}
		return v.pushGroups(L, text, at)
	case operation.SampleCopy:
		L.Push(v.newCopy(c.Sample))
	case operation.LineCopy:
		L.Push(v.newCopiedLine(c.Line))
	case operation.RowList:
		f := c.Fields
		return v.pushIterator(L, c.Window, "rows", func(L *lua.LState, row int) int {
			L.Push(v.values.numbers.value(float64(row + 1)))
			v.pushFields(L, &f, row)
			return f.Len() + 1
		})
	case operation.RecordList:
		if ud := L.Get(1).(*lua.LUserData); ud.Metatable == v.values.mt.group {
			return v.groupRecords(L, ud.Value.(*group))
		}
		return v.pushIterator(L, c.Window, "records", func(L *lua.LState, row int) int {
			L.Push(v.record(row))
			return 1
		})
	case operation.GroupList:
		return v.groups(L, c)
	case operation.SetValues:
		v.setValues(L, c)
		return 0
	case operation.EachRecord, operation.EachFields, operation.EachMatch:
		v.eachOf(L, c)
		return 0
	}
	return 1
}

// eachOf calls the last argument for one record at a time.
func (v *vm) eachOf(L *lua.LState, c *operation.Call) {
	switch c.Result {
	case operation.EachRecord:
		fn := c.Func(0).(*callback).fn
		if c.Metrics != nil {
			v.eachRecord(L, c.Metrics, fn)
			return
		}
		v.eachRow(L, c.Window, c.Logs, func(L *lua.LState, row int) {
			L.Push(fn)
			L.Push(&v.newLine(row).ud)
			L.Call(1, 0)
		})
	case operation.EachFields:
		m, p, fn := c.Logs, c.Fields.Lines, c.Func(1).(*callback).fn
		wants := takesParams(fn, p.Len()+1)
		v.eachRow(L, c.Window, m, func(L *lua.LState, row int) {
			L.Push(fn)
			v.pushCells(L, m, p, row)
			v.callLine(L, m, row, p.Len(), wants)
		})
	case operation.EachMatch:
		m, re, fn := c.Logs, c.Pattern(0), c.Func(1).(*callback).fn
		v.eachRow(L, c.Window, m, func(L *lua.LState, row int) {
			text := m.Line(row)
			at := v.find(L, re, text)
			if at == nil {
				return
			}
			L.Push(fn)
			n := v.pushGroups(L, text, at)
			v.callLine(L, m, row, n, takesParams(fn, n+1))
		})
	}
}

// setValues is batch:set(i, field, value) and batch:set(i, { field = value }).
func (v *vm) setValues(L *lua.LState, c *operation.Call) {
	row := c.Row(0)
	if t, ok := L.Get(3).(*lua.LTable); ok {
		for k, x := range entries(v.readOnly.real(t)) {
			v.setRowField(L, c, row, k.String(), x)
		}
		return
	}
	v.setRowField(L, c, row, L.CheckString(3), L.Get(4))
}
