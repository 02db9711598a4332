package scripttest

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-run/weir/scripting"
)

// same is deep equality. Numbers are equal as numbers, NaN equals NaN, and an
// empty list an empty map, which are one thing in Lua.
func same(a, b scripting.Value) bool {
	if x, ok := number(a); ok {
		y, ok := number(b)
		return ok && (x == y || math.IsNaN(x) && math.IsNaN(y)) && sameInt(a, b)
	}
	switch a := a.(type) {
	case *scripting.List:
		return sameList(a, b)
	case *scripting.Map:
		if l, ok := b.(*scripting.List); ok {
			return a.Len() == 0 && len(l.Items) == 0
		}
		m, ok := b.(*scripting.Map)
		if !ok || a.Len() != m.Len() {
			return false
		}
		for _, k := range a.Keys() {
			x, _ := a.Get(k)
			if y, ok := m.Get(k); !ok || !same(x, y) {
				return false
			}
		}
		return true
	case *scripting.Object:
		o, ok := b.(*scripting.Object)
		return ok && a.Type == o.Type && a.Data == o.Data
	case scripting.Callback, scripting.Sequence:
		return false // functions cannot be compared here
	}
	switch b.(type) {
	case *scripting.List, *scripting.Map, scripting.Callback, scripting.Sequence:
		return false
	}
	return a == b
}

func sameList(a *scripting.List, b scripting.Value) bool {
	if m, ok := b.(*scripting.Map); ok {
		return len(a.Items) == 0 && m.Len() == 0
	}
	l, ok := b.(*scripting.List)
	return ok && slices.EqualFunc(a.Items, l.Items, same)
}

// sameInt tells int64s apart that are equal as float64.
func sameInt(a, b scripting.Value) bool {
	x, ok1 := a.(int64)
	y, ok2 := b.(int64)
	return !ok1 || !ok2 || x == y
}

func number(v scripting.Value) (float64, bool) {
	switch v := v.(type) {
	case int64:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

// typeName is what a value is, in words that hold in every language.
func typeName(v scripting.Value) string {
	switch v := v.(type) {
	case nil:
		return "nil"
	case bool:
		return "boolean"
	case int64, float64:
		return "number"
	case string:
		return "string"
	case *scripting.List, *scripting.Map:
		return "table"
	case scripting.Callback, scripting.Sequence:
		return "function"
	case *scripting.Object:
		return v.Type.Name
	}
	if v == scripting.Null {
		return "null"
	}
	return "value"
}

// show writes a value for people: short ones in a line, others a line for each
// item. It is not meant to be read back.
func show(v scripting.Value) string {
	if s := showFlat(v); len(s) <= 70 && !strings.Contains(s, "\n") {
		return s
	}
	return showDeep(v, "")
}

func showFlat(v scripting.Value) string {
	switch v := v.(type) {
	case *scripting.List:
		parts := make([]string, len(v.Items))
		for i, e := range v.Items {
			parts[i] = showFlat(e)
		}
		return "{ " + strings.Join(parts, ", ") + " }"
	case *scripting.Map:
		if v.Len() == 0 {
			return "{}"
		}
		parts := make([]string, 0, v.Len())
		for _, k := range sortedKeys(v) {
			e, _ := v.Get(k)
			parts = append(parts, k+" = "+showFlat(e))
		}
		return "{ " + strings.Join(parts, ", ") + " }"
	}
	return showLeaf(v)
}

func showDeep(v scripting.Value, indent string) string {
	var b strings.Builder
	in := indent + "  "
	switch v := v.(type) {
	case *scripting.List:
		b.WriteString("{\n")
		for _, e := range v.Items {
			b.WriteString(in + showDeep(e, in) + ",\n")
		}
	case *scripting.Map:
		b.WriteString("{\n")
		for _, k := range sortedKeys(v) {
			e, _ := v.Get(k)
			b.WriteString(in + k + " = " + showDeep(e, in) + ",\n")
		}
	default:
		return showLeaf(v)
	}
	return b.String() + indent + "}"
}

func showLeaf(v scripting.Value) string {
	switch v := v.(type) {
	case nil:
		return "nil"
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case bool:
		return strconv.FormatBool(v)
	case string:
		if strings.Contains(v, "\n") {
			return v // as it is, for a diff by lines
		}
		return strconv.Quote(v)
	case *scripting.Object:
		if v.Type.String != nil {
			return v.Type.String(v.Data)
		}
	}
	if v == scripting.Null {
		return "null"
	}
	return typeName(v)
}

func sortedKeys(m *scripting.Map) []string {
	keys := slices.Clone(m.Keys())
	slices.Sort(keys)
	return keys
}
