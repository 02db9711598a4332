package lua

import (
	"errors"
	"fmt"
	"iter"
	"math"

	lua "github.com/yuin/gopher-lua"

	"github.com/weir-run/weir/scripting"
)

// maxValueDepth is how deep a value may nest that crosses into Go or back.
const maxValueDepth = 100

// toGo turns a script's value into the form that host functions take.
func (v *vm) toGo(L *lua.LState, x lua.LValue, depth int) scripting.Value {
	if depth > maxValueDepth {
		v.raise(L, fmt.Errorf("cannot pass a value that nests deeper than %d: does it contain itself?", maxValueDepth))
	}
	switch x := x.(type) {
	case *lua.LNilType:
		return nil
	case lua.LBool:
		return bool(x)
	case lua.LString:
		return string(x)
	case lua.LNumber:
		if f := float64(x); f == math.Trunc(f) && math.Abs(f) <= 1<<53 && !(f == 0 && math.Signbit(f)) {
			return int64(f)
		}
		return float64(x)
	case *lua.LFunction:
		if v.test != nil {
			return v.testCallback(x)
		}
		return scripting.Callback(func(args ...scripting.Value) (scripting.Value, error) { return v.callback(L, x, args) })
	case *lua.LUserData:
		switch x.Metatable {
		case v.values.mt.record:
			r := x.Value.(*record)
			r.check(L)
			return scripting.Row(r.row)
		case v.values.mt.line:
			r := x.Value.(*line)
			r.check(L)
			return scripting.Row(r.row)
		}
		switch o := x.Value.(type) {
		case *scripting.Object:
			return o
		case labelled:
			m := scripting.NewMap()
			for n, val := range o.all(L) {
				m.Set(n, val)
			}
			return m
		}
		return x.Value
	case *lua.LTable:
		if v.test != nil && v.test.spies[x] != nil {
			return v.testCallback(x)
		}
		return v.tableToGo(L, x, depth)
	}
	v.raise(L, fmt.Errorf("cannot pass a %s to a function of the host", x.Type()))
	return nil
}

func (v *vm) tableToGo(L *lua.LState, x *lua.LTable, depth int) scripting.Value {
	isList := x.Metatable == lua.LValue(v.values.mt.list)
	x = v.readOnly.real(x)
	n := x.Len()
	v.must(L, v.budget.charge(int64(n/4)+1))
	if key := namedKey(x); n > 0 && key != "" {
		v.raise(L, fmt.Errorf("cannot pass a table that is both a list and a map: it has %q next to its items", key))
	} else if n > 0 || isList && key == "" {
		l := &scripting.List{Items: make([]scripting.Value, n)}
		for i := range l.Items {
			if l.Items[i] = v.toGo(L, x.RawGetInt(i+1), depth+1); l.Items[i] == nil {
				l.Items[i] = scripting.Null
			}
		}
		return l
	}
	m := scripting.NewMap()
	for k, e := range entries(x) {
		name, ok := k.(lua.LString)
		if !ok {
			v.raise(L, fmt.Errorf("cannot pass a map with a %s as key: keys must be strings", k.Type()))
		}
		v.must(L, v.budget.charge(1))
		m.Set(string(name), v.toGo(L, e, depth+1))
	}
	return m
}

// namedKey is the first key of t that is not in its array part, "" for none.
func namedKey(t *lua.LTable) string {
	last := lua.LValue(lua.LNil)
	if n := t.MaxN(); n > 0 {
		last = lua.LNumber(n)
	}
	k, _ := t.Next(last)
	if k == lua.LNil {
		return ""
	}
	return k.String()
}

// entries are the keys and values of t in the order in which pairs has them:
// items first, then what was set first. ForEach has them in any order.
func entries(t *lua.LTable) iter.Seq2[lua.LValue, lua.LValue] {
	return func(yield func(k, x lua.LValue) bool) {
		for k, x := t.Next(lua.LNil); k != lua.LNil && yield(k, x); k, x = t.Next(k) {
		}
	}
}

// callback calls a script's function from Go.
func (v *vm) callback(L *lua.LState, fn *lua.LFunction, args []scripting.Value) (scripting.Value, error) {
	L.Push(fn)
	for _, a := range args {
		L.Push(v.fromGo(L, a, 0))
	}
	if err := v.trap.try(L, len(args), 1, nil); err != nil {
		if v.budget.tripped != nil {
			return nil, v.budget.tripped
		}
		if api, ok := errors.AsType[*lua.ApiError](err); ok {
			return nil, errors.New(v.errorValue(api.Object).String())
		}
		return nil, err
	}
	x := v.toGo(L, L.Get(-1), 0)
	L.Pop(1)
	return x, nil
}

// fromGo turns what a host function returned into a script's value.
func (v *vm) fromGo(L *lua.LState, x scripting.Value, depth int) lua.LValue {
	if depth > maxValueDepth {
		v.raise(L, fmt.Errorf("cannot use a value that nests deeper than %d", maxValueDepth))
	}
	switch x := x.(type) {
	case nil:
		return lua.LNil
	case bool:
		return lua.LBool(x)
	case float64:
		return v.values.numbers.value(x)
	case int64:
		if x > 1<<53 || x < -1<<53 {
			return v.opaque(x) // a number would round it
		}
		return v.values.numbers.value(float64(x))
	case string:
		v.must(L, v.budget.chargeString(int64(len(x))))
		return lua.LString(x)
	case *scripting.List:
		v.must(L, v.budget.charge(int64(len(x.Items)/4)+1))
		t := L.CreateTable(len(x.Items), 0)
		for i, e := range x.Items {
			t.RawSetInt(i+1, v.fromGo(L, e, depth+1))
		}
		if len(x.Items) == 0 {
			t.Metatable = v.values.mt.list
		}
		return t
	case *scripting.Map:
		t := L.CreateTable(0, x.Len())
		for _, k := range x.Keys() {
			v.must(L, v.budget.charge(2))
			e, _ := x.Get(k)
			t.RawSetString(k, v.fromGo(L, e, depth+1))
		}
		return t
	case *scripting.Object:
		return &lua.LUserData{Value: x, Metatable: v.values.mt.object}
	case scripting.Sequence:
		return L.NewFunction(func(L *lua.LState) int {
			e, ok := x()
			if !ok {
				L.Push(lua.LNil)
				return 1
			}
			L.Push(v.fromGo(L, e, 0))
			return 1
		})
	}
	if x == scripting.Null {
		return v.null()
	}
	return v.opaque(x)
}

// opaque is a Go value that a script can only pass on: it comes back as it was.
func (v *vm) opaque(x any) *lua.LUserData {
	return &lua.LUserData{Value: x, Metatable: v.values.mt.opaque}
}

func (v *vm) null() *lua.LUserData {
	if v.values.null == nil {
		v.values.null = v.opaque(scripting.Null)
	}
	return v.values.null
}
