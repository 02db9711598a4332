package lua

import (
	"errors"
	"fmt"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/weir-run/weir/engine/regex"
	"github.com/weir-run/weir/engine/view"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/api"
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
	L := v.L
	methods := map[lua.LString]*lua.LFunction{}
	for name, f := range map[lua.LString]lua.LGFunction{
		"drop_where": v.dropWhere, "keep_where": v.keepWhere,
		"set_label": v.setLabel, "drop_label": v.dropLabel, "rename_label": v.renameLabel, "map_label": v.mapLabel,
		"set_line": v.setLine, "promote": v.promoteField,
		"json": v.jsonEach, "logfmt": v.logfmtEach, "match": v.matchEach,
		"filter": v.filterLines, "rows": v.lineRows, "set": v.setLineRow, "drop": v.drop,
		"each": v.eachLine, "records": v.lineRecords, "group_by": v.groupBy, "text": v.logsText,
	} {
		methods[name] = L.NewFunction(f)
	}
	meta := mt(func(L *lua.LState) int {
		switch key := L.Get(2).(type) {
		case lua.LString:
			f, ok := methods[key]
			if !ok {
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
	meta.RawSetString("__len", L.NewFunction(func(L *lua.LState) int {
		L.Push(v.values.numbers.value(float64(v.checkLogs(L).Len())))
		return 1
	}))
	v.args.logBatch = &lua.LUserData{Value: logsHandle{v}, Metatable: meta}
	v.openLines(mt)
}

// chargeLines charges for a native operation that goes over the lines.
func (v *vm) chargeLines(L *lua.LState, m *view.Logs) {
	bytes := m.Batch().Bytes()
	v.budget.native(bytes)
	v.must(L, v.budget.charge(int64(m.Len()/8+bytes>>8)+1))
}

func (v *vm) setLine(L *lua.LState) int {
	m := v.checkLogs(L)
	v.chargeLines(L, m)
	v.must(L, m.SetLineAll(L.CheckString(2)))
	return 0
}

func (v *vm) promoteField(L *lua.LState) int {
	m := v.checkLogs(L)
	v.chargeLines(L, m)
	v.must(L, m.Promote(L.CheckString(2), L.CheckString(3)))
	return 0
}

// fieldNames reads a table of field names.
func (v *vm) fieldNames(L *lua.LState, t *lua.LTable) []string {
	t = v.readOnly.real(t)
	var names []string
	for i := 1; i <= t.Len(); i++ {
		s, ok := t.RawGetInt(i).(lua.LString)
		if !ok {
			v.raise(L, fmt.Errorf("cannot use a %s as a field: it must be a string", t.RawGetInt(i).Type()))
		}
		names = append(names, string(s))
	}
	return names
}

func (v *vm) filterLines(L *lua.LState) int {
	m := v.checkLogs(L)
	v.chargeLines(L, m)
	p, err := m.Projection("", v.fieldNames(L, L.CheckTable(2)))
	v.must(L, err)
	fn := L.CheckFunction(3)
	for i := m.Next(0); i >= 0; i = m.Next(i + 1) {
		L.Push(fn)
		v.pushCells(L, m, p, i)
		L.Call(p.Len(), 1)
		keep := L.Get(-1)
		L.Pop(1)
		if !v.checkAnswer(L, keep) {
			m.Drop(i)
		}
	}
	return 0
}

// pushCells pushes the fields of a row.
func (v *vm) pushCells(L *lua.LState, m *view.Logs, p *view.Projection, row int) {
	v.handles.cells = m.Read(p, row, v.handles.cells[:0])
	for _, c := range v.handles.cells {
		L.Push(v.cell(c, m.Line(row)))
	}
}

// jsonEach is batch:json({ "level" }, function(level, record) … end).
func (v *vm) jsonEach(L *lua.LState) int { return v.projectEach(L, "json") }

// logfmtEach is batch:logfmt({ "level" }, function(level, record) … end).
func (v *vm) logfmtEach(L *lua.LState) int { return v.projectEach(L, "logfmt") }

func (v *vm) projectEach(L *lua.LState, kind string) int {
	m := v.checkLogs(L)
	v.chargeLines(L, m)
	p, err := m.Projection(kind, v.fieldNames(L, L.CheckTable(2)))
	v.must(L, err)
	fn := L.CheckFunction(3)
	wants := takes(fn, p.Len()+1)
	return v.eachRow(L, &m.Window, m, func(L *lua.LState, row int) {
		L.Push(fn)
		v.pushCells(L, m, p, row)
		v.callLine(L, m, row, p.Len(), wants)
	})
}

// takes reports whether a function takes a parameter of that number.
func takes(fn *lua.LFunction, n int) bool {
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

// matchEach is batch:match(re, function(group, record) … end), called for the
// lines that match.
func (v *vm) matchEach(L *lua.LState) int {
	m := v.checkLogs(L)
	v.chargeLines(L, m)
	re, fn := v.patternArg(L, 2), L.CheckFunction(3)
	return v.eachRow(L, &m.Window, m, func(L *lua.LState, row int) {
		text := m.Line(row)
		at := v.find(L, re, text)
		if at == nil {
			return
		}
		L.Push(fn)
		n := v.pushGroups(L, text, at)
		v.callLine(L, m, row, n, takes(fn, n+1))
	})
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

func (v *vm) eachLine(L *lua.LState) int {
	m := v.checkLogs(L)
	fn := L.CheckFunction(2)
	return v.eachRow(L, &m.Window, m, func(L *lua.LState, row int) {
		L.Push(fn)
		L.Push(&v.newLine(row).ud)
		L.Call(1, 0)
	})
}

func (v *vm) lineRows(L *lua.LState) int {
	m := v.checkLogs(L)
	v.chargeLines(L, m)
	names := make([]string, 0, 8)
	for i := 2; i <= L.GetTop(); i++ {
		names = append(names, L.CheckString(i))
	}
	p, err := m.Projection("", names)
	v.must(L, err)
	return v.pushIterator(L, &m.Window, "rows", func(L *lua.LState, row int) int {
		L.Push(v.values.numbers.value(float64(row + 1)))
		v.pushCells(L, m, p, row)
		return p.Len() + 1
	})
}

func (v *vm) lineRecords(L *lua.LState) int {
	m := v.checkLogs(L)
	return v.pushIterator(L, &m.Window, "records", func(L *lua.LState, row int) int {
		L.Push(&v.newLine(row).ud)
		return 1
	})
}

// setLineRow is batch:set(i, field, value) and batch:set(i, { field = value }).
func (v *vm) setLineRow(L *lua.LState) int {
	m := v.checkLogs(L)
	i := v.rowArg(L, &m.Window)
	set := func(field string, x lua.LValue) {
		if name, ok := strings.CutPrefix(field, "labels."); ok {
			v.must(L, m.SetLabel(i, name, v.labelValue(L, x, name)))
			return
		}
		if name, ok := strings.CutPrefix(field, "meta."); ok {
			v.must(L, m.SetMeta(i, name, v.labelValue(L, x, name)))
			return
		}
		v.setLineField(L, i, field, x, true)
	}
	if t, ok := L.Get(3).(*lua.LTable); ok {
		for k, x := range entries(v.readOnly.real(t)) {
			set(k.String(), x)
		}
		return 0
	}
	set(L.CheckString(3), L.Get(4))
	return 0
}

func (v *vm) logsText(L *lua.LState) int {
	m := v.checkLogs(L)
	v.must(L, v.budget.charge(int64(m.Len())*10))
	var out []byte
	for i := m.Next(0); i >= 0; i = m.Next(i + 1) {
		if out = m.Text(out, i); len(out) > maxString {
			break // pushString reports the error
		}
	}
	v.pushString(L, string(out))
	return 1
}
