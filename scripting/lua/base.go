package lua

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/weir-run/weir/scripting"
)

// The globals of a script are a list of what is safe, not Lua's minus what is
// not. Missing on purpose: load, loadstring, dofile, loadfile, collectgarbage,
// module, newproxy, getfenv, setfenv, io, os, debug, package, channel.

// maxResults is how many values unpack and string.byte return at most; more
// would only fill the VM's stack.
const maxResults = 8000

// fromBase are the functions of gopher-lua's base library that are safe.
var fromBase = []string{"assert", "error", "rawequal", "rawget", "select", "type"}

// fromMath likewise; huge is not math.MaxFloat64 as gopher-lua has it, and
// random is seeded per VM by nobody, hence not there: transforms are
// repeatable.
var fromMath = []string{
	"abs", "acos", "asin", "atan", "atan2", "ceil", "cos", "cosh", "deg", "exp", "floor", "fmod", "frexp",
	"ldexp", "log", "log10", "max", "min", "mod", "modf", "pow", "rad", "sin", "sinh", "sqrt", "tan", "tanh",
}

// removed says what to use in place of what Lua has and a script not.
var removed = map[string]string{
	"os":              "there is no os in a script: the clock of a batch is ctx.now, times are formatted by require \"time\"",
	"io":              "there are no files in a script",
	"load":            "code cannot be loaded at run time: put it into scripts/lib and require it",
	"loadstring":      "code cannot be loaded at run time: put it into scripts/lib and require it",
	"dofile":          "code cannot be loaded at run time: put it into scripts/lib and require it",
	"loadfile":        "code cannot be loaded at run time: put it into scripts/lib and require it",
	"debug":           "there is no debug library in a script",
	"package":         "there is no package library: modules are found in scripts/lib",
	"module":          "module is not supported: return a table from the file in scripts/lib",
	"collectgarbage":  "memory is managed by the host",
	"getfenv":         "environments are not supported",
	"setfenv":         "environments are not supported",
	"math.random":     "there is no randomness in a script: the same input gives the same output; to keep one in ten, write require(\"hash\").bucket(s.labels.instance, 10) == 0",
	"math.randomseed": "there is no randomness in a script: the same input gives the same output",
	"newproxy":        "newproxy is not supported: use a table with a metatable",
}

func (v *vm) baseLib() map[string]lua.LGFunction {
	return map[string]lua.LGFunction{
		"getmetatable": v.getmetatable, "setmetatable": v.setmetatable,
		"pcall": v.pcall, "xpcall": v.xpcall, "print": v.print, "require": v.require,
		"tonumber": tonumber, "tostring": v.tostringFn, "unpack": v.unpack,
		"next": v.next, "pairs": v.pairs, "ipairs": v.ipairs, "rawset": v.rawset,
		concatGlobal: v.concat, coverGlobal: v.hit,
	}
}

// tableLib wraps gopher-lua's: a frozen table must not be written to.
func (v *vm) tableLib(lib *lua.LTable) map[string]lua.LGFunction {
	writes := func(name string) lua.LGFunction {
		f := lib.RawGetString(name).(*lua.LFunction).GFunction
		return func(L *lua.LState) int {
			t := L.CheckTable(1)
			if v.readOnly.real(t) != t {
				L.RaiseError("cannot change this table: it is read-only")
			}
			if n := t.Len() / 16; n > 0 {
				v.must(L, v.budget.charge(int64(n)))
			}
			return f(L)
		}
	}
	reads := func(n func(*lua.LTable) int) lua.LGFunction {
		return func(L *lua.LState) int {
			L.Push(lua.LNumber(n(v.readOnly.real(L.CheckTable(1)))))
			return 1
		}
	}
	insert, remove := writes("insert"), writes("remove")
	return map[string]lua.LGFunction{
		"concat": v.tableConcat, "sort": writes("sort"),
		"insert": func(L *lua.LState) int { // at the end, mostly
			if t, ok := L.Get(1).(*lua.LTable); ok && L.GetTop() == 2 && t.Metatable == lua.LNil {
				t.Append(L.Get(2))
				return 0
			}
			return insert(L)
		},
		"remove": func(L *lua.LState) int {
			if t, ok := L.Get(1).(*lua.LTable); ok && L.GetTop() == 1 && t.Metatable == lua.LNil {
				L.Push(t.Remove(-1))
				return 1
			}
			return remove(L)
		},
		"maxn": reads((*lua.LTable).MaxN), "getn": reads((*lua.LTable).Len),
	}
}

func (v *vm) next(L *lua.LState) int {
	t := v.readOnly.real(L.CheckTable(1))
	k, x := t.Next(L.Get(2))
	for t == v.library.env && strings.HasPrefix(k.String(), "\x00") { // what the compiler calls
		k, x = t.Next(k)
	}
	if k == lua.LNil {
		L.Push(lua.LNil)
		return 1
	}
	L.Push(k)
	L.Push(x)
	return 2
}

// pairs goes over tables, frozen ones too, and over the labels of a record.
func (v *vm) pairs(L *lua.LState) int {
	switch x := L.Get(1).(type) {
	case *lua.LTable:
		L.Push(v.library.next)
		L.Push(x)
		L.Push(lua.LNil)
		return 3
	case *lua.LFunction:
		v.raise(L, errors.New("cannot go over a function with pairs: an iterator, such as records() and group_by() return, stands alone behind in"))
	case *lua.LUserData:
		if l, ok := x.Value.(labelled); ok {
			var ls []string
			for n, val := range l.all(L) {
				ls = append(ls, n, val)
			}
			i := 0
			L.Push(L.NewFunction(func(L *lua.LState) int {
				if i >= len(ls) {
					L.Push(lua.LNil)
					return 1
				}
				L.Push(v.values.label(ls[i]))
				L.Push(v.values.label(ls[i+1]))
				i += 2
				return 2
			}))
			return 1
		}
		if o, ok := x.Value.(*scripting.Object); ok {
			if _, ok := o.Type.Method("entries"); ok {
				v.raise(L, fmt.Errorf("cannot go over a %s with pairs: write pairs(x:entries()), which is a copy", o.Type.Name))
			}
		}
	}
	v.noTable(L, "pairs")
	L.ArgError(1, "table expected, got "+L.Get(1).Type().String())
	return 0
}

// noTable raises an error about an argument that has records and is no table.
func (v *vm) noTable(L *lua.LState, fn string) {
	x, ok := L.Get(1).(*lua.LUserData)
	if !ok {
		return
	}
	switch x.Value.(type) {
	case batchHandle, logsHandle, *group:
		v.raise(L, fmt.Errorf("cannot go over a batch or a group with %s: write for r in batch:records() do … end", fn))
	}
}

func (v *vm) ipairs(L *lua.LState) int {
	v.noTable(L, "ipairs")
	t := L.CheckTable(1)
	L.Push(v.library.ipairsNext)
	L.Push(t)
	L.Push(lua.LNumber(0))
	return 3
}

func (v *vm) nextItem(L *lua.LState) int {
	i := L.CheckInt(2) + 1
	x := v.readOnly.real(L.CheckTable(1)).RawGetInt(i)
	if x == lua.LNil || x == nil {
		L.Push(lua.LNil)
		return 1
	}
	L.Push(v.values.numbers.value(float64(i)))
	L.Push(x)
	return 2
}

func (v *vm) rawset(L *lua.LState) int {
	t, k := L.CheckTable(1), L.CheckAny(2)
	L.CheckAny(3)
	if v.readOnly.has(t) {
		L.RaiseError("cannot change this table: it is read-only")
	}
	if n, ok := k.(lua.LNumber); ok && n != n || k == lua.LNil {
		L.ArgError(2, "table index is nil or nan")
	}
	t.RawSet(k, L.Get(3))
	L.SetTop(1)
	return 1
}

func (v *vm) unpack(L *lua.LState) int {
	t := v.readOnly.real(L.CheckTable(1))
	from := L.OptInt(2, 1)
	to := L.OptInt(3, t.Len())
	if to-from >= maxResults {
		L.RaiseError("cannot unpack %d values: the limit is %d", to-from+1, maxResults)
	}
	for i := from; i <= to; i++ {
		L.Push(t.RawGetInt(i))
	}
	return max(to-from+1, 0)
}

// tonumber reads what Lua's does; gopher-lua's knows no exponent without a dot.
func tonumber(L *lua.LState) int {
	if s, ok := L.Get(1).(lua.LString); ok && L.GetTop() == 1 && decimal(string(s)) {
		if n, err := strconv.ParseFloat(string(s), 64); err == nil {
			L.Push(lua.LNumber(n))
			return 1
		}
	}
	base := L.OptInt(2, 10)
	var out lua.LValue = lua.LNil
	switch x := L.CheckAny(1).(type) {
	case lua.LNumber:
		out = x
	case lua.LString:
		s := strings.Trim(string(x), " \t\n\v\f\r")
		switch {
		case L.Get(2) != lua.LNil:
			if base < 2 || base > 36 {
				L.ArgError(2, "base out of range")
			}
			if n, err := strconv.ParseInt(s, base, 64); err == nil {
				out = lua.LNumber(n)
			}
		case strings.HasPrefix(strings.ToLower(strings.TrimLeft(s, "+-")), "0x"):
			if n, err := strconv.ParseInt(strings.ToLower(s), 0, 64); err == nil {
				out = lua.LNumber(n)
			}
		case !strings.ContainsAny(s, "_xXnN"): // ParseFloat also reads 1_000, 0x1p2, NaN and Infinity
			if n, err := strconv.ParseFloat(s, 64); err == nil || math.IsInf(n, 0) {
				out = lua.LNumber(n)
			}
		}
	}
	L.Push(out)
	return 1
}

// decimal reports whether s is a number as it is mostly written.
func decimal(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && c != '.' && c != '-' {
			return false
		}
	}
	return s != ""
}

func (v *vm) tostringFn(L *lua.LState) int {
	x := L.CheckAny(1)
	if f, ok := L.GetMetaField(x, "__tostring").(*lua.LFunction); ok {
		L.Push(f)
		L.Push(x)
		L.Call(1, 1) // which may return anything; what prints it insists on a string
		return 1
	}
	L.Push(lua.LString(v.tostring(L, x)))
	return 1
}

func (v *vm) tostring(L *lua.LState, x lua.LValue) string {
	switch x := x.(type) {
	case lua.LString:
		return string(x)
	case lua.LNumber:
		return formatNumber(float64(x))
	}
	if f, ok := L.GetMetaField(x, "__tostring").(*lua.LFunction); ok {
		L.Push(f)
		L.Push(x)
		L.Call(1, 1)
		s := L.Get(-1)
		L.Pop(1)
		if str, ok := s.(lua.LString); ok {
			return string(str)
		}
		L.RaiseError("'__tostring' must return a string")
	}
	switch x.(type) {
	case *lua.LTable, *lua.LFunction, *lua.LUserData, *lua.LState:
		return fmt.Sprintf("%s: %p", x.Type(), x)
	}
	return x.String()
}

func (v *vm) getmetatable(L *lua.LState) int {
	x := L.CheckAny(1)
	if t, ok := x.(*lua.LTable); ok {
		L.Push(L.GetMetatable(t))
		return 1
	}
	switch x.(type) {
	case lua.LString, *lua.LUserData:
		L.Push(lua.LFalse) // they have theirs to themselves
	default:
		L.Push(L.GetMetatable(x)) // numbers and the like have none
	}
	return 1
}

func (v *vm) setmetatable(L *lua.LState) int {
	t := L.CheckTable(1)
	mt := L.Get(2)
	if mt.Type() != lua.LTNil && mt.Type() != lua.LTTable {
		L.ArgError(2, "nil or table expected")
	}
	if old, ok := t.Metatable.(*lua.LTable); ok && old.RawGetString("__metatable") != lua.LNil {
		L.RaiseError("cannot change a protected metatable")
	}
	t.Metatable = mt
	L.SetTop(1)
	return 1
}

func (v *vm) pcall(L *lua.LState) int {
	L.CheckAny(1)
	return v.protected(L, L.GetTop()-1, nil)
}

func (v *vm) xpcall(L *lua.LState) int {
	fn, handler := L.CheckAny(1), L.CheckFunction(2)
	L.SetTop(0)
	L.Push(fn)
	return v.protected(L, 0, L.NewFunction(func(L *lua.LState) int {
		v.trap.closeUpvalues(L)
		L.Insert(handler, 1)
		L.Call(1, 1)
		return 1
	}))
}

// protected calls the function below nargs arguments, which are all there is
// on the stack.
func (v *vm) protected(L *lua.LState, nargs int, handler *lua.LFunction) int {
	if fn := L.Get(-nargs - 1); fn.Type() != lua.LTFunction && L.GetMetaField(fn, "__call").Type() != lua.LTFunction {
		L.Push(lua.LFalse) // gopher-lua would not say what it is
		L.Push(lua.LString("attempt to call a " + fn.Type().String() + " value"))
		return 2
	}
	if err := v.trap.try(L, nargs, lua.MultRet, handler); err != nil {
		L.SetTop(0)
		L.Push(lua.LFalse)
		if e, ok := err.(*lua.ApiError); ok && e.Object != nil {
			L.Push(v.errorValue(e.Object))
		} else {
			L.Push(lua.LString(err.Error()))
		}
		return 2
	}
	L.Insert(lua.LTrue, 1)
	return L.GetTop()
}

// print writes to the component's log.
func (v *vm) print(L *lua.LState) int {
	parts := make([]string, L.GetTop())
	for i := range parts {
		parts[i] = v.tostring(L, L.Get(i+1))
	}
	v.log(L, levelInfo, strings.Join(parts, "\t"), nil)
	return 0
}

// concatGlobal is the name that `..` is rewritten to call: no source can write
// it.
const concatGlobal = "\x00concat"

// concat is the operator `..` over all its arguments. gopher-lua's makes a
// string of any size in one instruction.
func (v *vm) concat(L *lua.LState) int {
	n := L.GetTop()
	size := 0
	for i := 1; i <= n; i++ {
		switch x := L.Get(i).(type) {
		case lua.LString:
			size += len(x)
		case lua.LNumber:
			size += 24
		default:
			return v.concatMeta(L, n)
		}
	}
	v.must(L, v.budget.chargeString(int64(size)))
	var b strings.Builder
	b.Grow(size)
	for i := 1; i <= n; i++ {
		switch x := L.Get(i).(type) {
		case lua.LString:
			b.WriteString(string(x))
		case lua.LNumber:
			b.WriteString(formatNumber(float64(x)))
		}
	}
	L.Push(lua.LString(b.String()))
	return 1
}

// concatMeta is concat when an operand is neither string nor number: from
// right to left, as Lua does, by the metamethod __concat.
func (v *vm) concatMeta(L *lua.LState, n int) int {
	acc := L.Get(n)
	for i := n - 1; i >= 1; i-- {
		lhs := L.Get(i)
		a, okA := concatText(lhs)
		b, okB := concatText(acc)
		if okA && okB {
			v.must(L, v.budget.chargeString(int64(len(a)+len(b))))
			acc = lua.LString(a + b)
			continue
		}
		f := L.GetMetaField(lhs, "__concat")
		if f == lua.LNil {
			f = L.GetMetaField(acc, "__concat")
		}
		if f == lua.LNil {
			L.RaiseError("cannot perform concat operation between %s and %s", lhs.Type(), acc.Type())
		}
		L.Push(f)
		L.Push(lhs)
		L.Push(acc)
		L.Call(2, 1)
		acc = L.Get(-1)
		L.Pop(1)
	}
	L.Push(acc)
	return 1
}

func concatText(x lua.LValue) (string, bool) {
	switch x := x.(type) {
	case lua.LString:
		return string(x), true
	case lua.LNumber:
		return formatNumber(float64(x)), true
	}
	return "", false
}

// tableConcat is table.concat; gopher-lua's goes over the VM's stack, which a
// long table overflows.
func (v *vm) tableConcat(L *lua.LState) int {
	t := v.readOnly.real(L.CheckTable(1))
	sep := L.OptString(2, "")
	from, to := L.OptInt(3, 1), L.OptInt(4, t.Len())
	var b strings.Builder
	for i := from; i <= to; i++ {
		text, ok := concatText(t.RawGetInt(i))
		if !ok {
			L.RaiseError("invalid value (%s) at index %d in table for 'concat'", t.RawGetInt(i).Type().String(), i)
		}
		if i > from {
			b.WriteString(sep)
		}
		b.WriteString(text)
		if b.Len() > maxString {
			break
		}
	}
	v.pushString(L, b.String())
	return 1
}
