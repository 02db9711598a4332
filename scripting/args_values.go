package scripting

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/weir-run/weir/engine/component"
)

// convert converts a script's value, such as a default, to goType.
func (a *Arg) convert(v any) (reflect.Value, error) {
	wrong := func(want string) (reflect.Value, error) {
		return reflect.Value{}, fmt.Errorf("%s is not %s", describe(v), want)
	}
	switch a.Kind {
	case ArgString:
		if s, ok := v.(string); ok {
			return reflect.ValueOf(s), nil
		}
		return wrong("a string")
	case ArgInt:
		if i, ok := v.(int64); ok {
			return reflect.ValueOf(i), nil
		}
		if f, ok := v.(float64); ok && f == math.Trunc(f) && math.Abs(f) <= 1<<53 {
			return reflect.ValueOf(int64(f)), nil
		}
		return wrong("an integer")
	case ArgNumber:
		if f, ok := v.(float64); ok {
			return reflect.ValueOf(f), nil
		}
		return wrong("a number")
	case ArgBool:
		if b, ok := v.(bool); ok {
			return reflect.ValueOf(b), nil
		}
		return wrong("a bool")
	case ArgDuration:
		switch x := v.(type) {
		case string:
			d, err := time.ParseDuration(x)
			if err != nil {
				return wrong(`a duration such as "30s"`)
			}
			return reflect.ValueOf(d), nil
		case float64:
			return reflect.ValueOf(time.Duration(x * float64(time.Second))), nil
		}
		return wrong(`a duration such as "30s"`)
	case ArgSize:
		switch x := v.(type) {
		case string:
			s, err := component.ParseSize(x)
			if err != nil {
				return reflect.Value{}, err
			}
			return reflect.ValueOf(s), nil
		case float64:
			if x >= 0 && x == math.Trunc(x) && x <= 1<<53 {
				return reflect.ValueOf(component.Size(x)), nil
			}
		}
		return wrong(`a size such as "8MiB"`)
	case ArgEnum:
		s, ok := v.(string)
		if !ok || !slices.Contains(a.Values, s) {
			return wrong("one of " + strings.Join(a.Values, ", "))
		}
		return reflect.ValueOf(Enum{allowed: a.Values, value: s}), nil
	case ArgList:
		out := reflect.MakeSlice(a.plainType(), 0, 0)
		l, ok := v.([]any)
		if m, isMap := v.(map[string]any); isMap && len(m) == 0 {
			ok = true // {} in Lua
		}
		if !ok {
			return wrong("a list")
		}
		for i, e := range l {
			ev, err := a.Of.convert(e)
			if err != nil {
				return reflect.Value{}, fmt.Errorf("element %d: %w", i+1, err)
			}
			out = reflect.Append(out, plainValue(ev, a.plainType().Elem()))
		}
		return a.chosen(out), nil
	case ArgMap:
		m, ok := v.(map[string]any)
		if l, isList := v.([]any); isList && len(l) == 0 {
			ok = true
		}
		if !ok {
			return wrong("a map")
		}
		out := reflect.MakeMap(a.plainType())
		for _, k := range sortedKeys(m) { // sorted, so that the same error is reported each time
			ev, err := a.Of.convert(m[k])
			if err != nil {
				return reflect.Value{}, fmt.Errorf("%q: %w", k, err)
			}
			out.SetMapIndex(reflect.ValueOf(k), plainValue(ev, a.plainType().Elem()))
		}
		return a.chosen(out), nil
	case ArgTargets:
		return (&Arg{Kind: ArgList, Of: &Arg{Kind: ArgMap, Of: &Arg{Kind: ArgString}}}).convert(v)
	case ArgRegexp:
		s, ok := v.(string)
		if !ok {
			return wrong("a regular expression")
		}
		var re Regexp
		err := re.UnmarshalText([]byte(s))
		return reflect.ValueOf(re), err
	case ArgSecret:
		switch x := v.(type) {
		case string:
			return reflect.ValueOf(component.Secret(x)), nil
		case Secret:
			return reflect.ValueOf(component.Secret(x.value)), nil
		}
		return wrong("a secret")
	}
	panic("BUG: unknown argument kind " + string(a.Kind))
}

// scriptValue converts a decoded field to a value for a language: string,
// float64, int64, bool, []any, map[string]any, Secret, Regexp.
func (a *Arg) scriptValue(v reflect.Value) any {
	switch a.Kind {
	case ArgDuration:
		return time.Duration(v.Int()).Seconds()
	case ArgSize:
		return v.Int()
	case ArgEnum:
		if e, ok := v.Interface().(Enum); ok {
			return e.value
		}
		return v.String() // an element of Choices
	case ArgTargets:
		return (&Arg{Kind: ArgList, Of: &Arg{Kind: ArgMap, Of: &Arg{Kind: ArgString}}}).scriptValue(v)
	case ArgBlock:
		if !a.Repeated {
			return ArgValues(a.Fields, v)
		}
		out := make([]any, v.Len())
		for i := range out {
			out[i] = ArgValues(a.Fields, v.Index(i))
		}
		return out
	case ArgSecret:
		return Secret{v.String()}
	case ArgList:
		if c, ok := v.Interface().(Choices); ok {
			v = reflect.ValueOf(c.Plain())
		}
		out := make([]any, v.Len())
		for i := range out {
			out[i] = a.Of.scriptValue(v.Index(i))
		}
		return out
	case ArgMap:
		if c, ok := v.Interface().(Choices); ok {
			v = reflect.ValueOf(c.Plain())
		}
		out := make(map[string]any, v.Len())
		for it := v.MapRange(); it.Next(); {
			out[it.Key().String()] = a.Of.scriptValue(it.Value())
		}
		return out
	}
	return v.Interface()
}

// Secret is a secret argument. Scripts can pass it to host calls and cannot do
// anything else with it.
type Secret struct{ value string }

// NewSecret returns a secret that contains text.
func NewSecret(text string) Secret { return Secret{text} }

// String returns "<secret>".
func (Secret) String() string { return "<secret>" }

// Reveal returns the text of the secret, for a host call.
func (s Secret) Reveal() string { return s.value }

// exprValue returns a script's value as expressions see it. An optional
// argument that is not given has the zero value of its type. ok is false for
// secrets, which expressions cannot use.
func (a *Arg) exprValue(v any, given bool) (_ any, ok bool) {
	switch {
	case given:
	case a.Kind == ArgBlock && !a.Repeated, a.Kind == ArgMap:
		v = map[string]any{}
	case a.Kind == ArgBlock, a.Kind == ArgList:
		v = []any{}
	default:
		v = a.scriptValue(reflect.Zero(a.goType()))
	}
	switch {
	case a.Kind == ArgBlock && a.Repeated:
		out := make([]any, len(v.([]any)))
		for i, e := range v.([]any) {
			out[i] = ExprValues(a.Fields, e.(map[string]any))
		}
		return out, true
	case a.Kind == ArgBlock:
		return ExprValues(a.Fields, v.(map[string]any)), true
	}
	return v, a.Kind != ArgSecret && !hasSecret(v)
}

// ExprValues returns the arguments that expressions can use.
func ExprValues(args []*Arg, values map[string]any) map[string]any {
	out := make(map[string]any, len(args))
	for _, a := range args {
		given, ok := values[a.Name]
		if v, ok := a.exprValue(given, ok); ok {
			out[a.Name] = v
		}
	}
	return out
}
