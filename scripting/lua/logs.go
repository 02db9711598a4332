package lua

import (
	"errors"
	"fmt"

	lua "github.com/yuin/gopher-lua"

	"github.com/weir-run/weir/engine/regex"
	"github.com/weir-run/weir/engine/view"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/api"
	"github.com/weir-run/weir/scripting/operation"
)

// logsHandle is `batch` of the hook logs; there is one a VM.
type logsHandle struct{ v *vm }

func (b logsHandle) check(L *lua.LState) *view.Logs {
	if b.v.call.logs == nil {
		b.v.raise(L, errors.New("cannot use a batch after its hook returned"))
	}
	return b.v.call.logs
}

// checkLogs returns the batch of lines that a method was called on.
func (v *vm) checkLogs(L *lua.LState) *view.Logs { return self[logsHandle](v, L, "a batch").check(L) }

func (v *vm) openLogs(mt func(index, newindex, tostring lua.LGFunction) *lua.LTable) {
	methods := v.bindOperations(api.Get().Logs, func(L *lua.LState, c *operation.Call) {
		m := v.checkLogs(L)
		c.Window, c.Metrics, c.Logs = &m.Window, nil, m
	})
	meta := mt(func(L *lua.LState) int {
		switch key := L.Get(2).(type) {
		case lua.LString:
			f := methods.find(key)
			if f == nil {
				v.raise(L, api.Unknown(api.Get().Logs, string(key)))
			}
			L.Push(f)
		case lua.LNumber:
			m := v.checkLogs(L)
			i := int(key) - 1
			if float64(i+1) != float64(key) || i < 0 || i >= m.Len() || !m.Alive(i) {
				L.Push(lua.LNil)
				break
			}
			L.Push(&v.newLine(i).ud)
		default:
			L.Push(lua.LNil)
		}
		return 1
	}, func(L *lua.LState) int {
		v.raise(L, errors.New("cannot assign to a batch: set the fields of its records"))
		return 0
	}, func(L *lua.LState) int {
		L.Push(lua.LString(fmt.Sprintf("batch of %d records", v.checkLogs(L).Left())))
		return 1
	})
	meta.RawSetString("__len", v.L.NewFunction(func(L *lua.LState) int {
		L.Push(v.values.numbers.value(float64(v.checkLogs(L).Len())))
		return 1
	}))
	v.args.logBatch = &lua.LUserData{Value: logsHandle{v}, Metatable: meta}
	v.openLines(mt)
}

// pushCells pushes the fields of a row.
func (v *vm) pushCells(L *lua.LState, m *view.Logs, p *view.Projection, row int) {
	v.handles.cells = m.Read(p, row, v.handles.cells[:0])
	for _, c := range v.handles.cells {
		L.Push(v.cell(c, m.Line(row)))
	}
}

// takesParams reports whether a function takes a parameter of that number.
func takesParams(fn *lua.LFunction, n int) bool {
	return fn.Proto == nil || fn.Proto.IsVarArg != 0 || int(fn.Proto.NumParameters) >= n
}

// callLine calls what was pushed with n arguments, and with the record behind
// them if it takes one. false drops the row, true and nothing keep it.
func (v *vm) callLine(L *lua.LState, m *view.Logs, row, n int, record bool) {
	if record {
		L.Push(&v.newLine(row).ud)
		n++
	}
	L.Call(n, 1)
	keep := L.Get(-1)
	L.Pop(1)
	switch keep {
	case lua.LFalse:
		m.Drop(row)
	case lua.LTrue, lua.LNil:
	default:
		v.raise(L, fmt.Errorf("cannot use a %s as an answer: the function returns false to drop the record, else nothing", keep.Type()))
	}
}

// patternArg is a regular expression that a script passes: its text, or what
// re.compile made.
func (v *vm) patternArg(L *lua.LState, n int) scripting.Pattern {
	x := L.Get(n)
	if ud, ok := x.(*lua.LUserData); ok {
		if o, ok := ud.Value.(*scripting.Object); ok {
			if re, ok := o.Data.(scripting.Pattern); ok {
				return re
			}
		}
		v.raise(L, errors.New("cannot use this value as a pattern: it must be a string, or what re.compile returned"))
	}
	re, err := v.values.patterns.Compile(v.prog.stdlib, L.CheckString(n))
	v.must(L, err)
	return re
}

func (v *vm) find(L *lua.LState, re scripting.Pattern, text string) []int {
	v.budget.native(len(text))
	v.must(L, v.budget.charge(int64(len(text)>>5)+2))
	at, err := re.FindSubmatchIndex(text, regex.Guard{Steps: regex.MaxSteps, Check: v.budget.check})
	v.must(L, err)
	return at
}

// pushGroups pushes the groups of a match, or all of it when there are none, and
// returns how many; a group that took no part is nil.
func (v *vm) pushGroups(L *lua.LState, text string, at []int) int {
	if len(at) == 2 {
		L.Push(v.values.part(text[at[0]:at[1]], text))
		return 1
	}
	for i := 2; i < len(at); i += 2 {
		if at[i] < 0 {
			L.Push(lua.LNil)
			continue
		}
		L.Push(v.values.part(text[at[i]:at[i+1]], text))
	}
	return len(at)/2 - 1
}
