package scripting

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
)

// ArgKind is the type of an argument of a scripted block.
type ArgKind string

// The argument types a script may declare.
const (
	ArgString   ArgKind = "string"
	ArgInt      ArgKind = "int"
	ArgNumber   ArgKind = "number"
	ArgBool     ArgKind = "bool"
	ArgDuration ArgKind = "duration"
	ArgSize     ArgKind = "size"
	ArgList     ArgKind = "list"
	ArgMap      ArgKind = "map"
	ArgEnum     ArgKind = "enum"
	ArgSecret   ArgKind = "secret"
)

// ArgKinds are the kinds in the order of the manual.
var ArgKinds = []ArgKind{ArgString, ArgInt, ArgNumber, ArgBool, ArgDuration, ArgSize, ArgList, ArgMap, ArgEnum, ArgSecret}

// Arg is one argument that a script declares. NewArg makes it.
type Arg struct {
	Name     string // set by the definition it stands in
	Kind     ArgKind
	Of       *Arg     // element of a list or map
	Values   []string // of an enum
	Default  any      // a Go value of the argument's type; nil without one
	Optional bool     // may be left out and is then missing in ctx.args
	Doc      string
	Line     int // where it was declared
}

var argOptions = map[string]string{
	"default": "", "doc": "", "optional": "",
	"of": "list, map", "values": "enum",
}

// NewArg checks what a script wrote in weir.arg.<kind>{…}. Values are what a
// language hands over: string, float64, bool, []any, map[string]any, *Arg.
func NewArg(kind ArgKind, options map[string]any, line int) (*Arg, error) {
	a := &Arg{Kind: kind, Line: line}
	var errs []error
	for name, v := range options {
		only, known := argOptions[name]
		if !known || (only != "" && !strings.Contains(only, string(kind))) {
			errs = append(errs, fmt.Errorf("cannot use %q in weir.arg.%s: there is %s", name, kind, a.knownOptions()))
			continue
		}
		ok := true
		switch name {
		case "doc":
			a.Doc, ok = v.(string)
		case "optional":
			a.Optional, ok = v.(bool)
		case "of":
			a.Of, ok = v.(*Arg)
		case "values":
			a.Values, ok = stringList(v)
		}
		if !ok {
			errs = append(errs, fmt.Errorf("cannot use %s as %q of weir.arg.%s: it must be %s", describe(v), name, kind,
				map[string]string{"doc": "a string", "optional": "a bool", "of": "an argument type such as weir.arg.string{}", "values": "a list of strings"}[name]))
		}
	}
	if len(errs) > 0 {
		slices.SortFunc(errs, func(x, y error) int { return strings.Compare(x.Error(), y.Error()) })
		return nil, errors.Join(errs...)
	}
	switch kind {
	case ArgList, ArgMap:
		if a.Of == nil {
			a.Of = &Arg{Kind: ArgString, Line: line}
		}
		if a.Of.Kind == ArgEnum || a.Of.Default != nil || a.Of.Optional {
			return nil, fmt.Errorf("cannot use this element type in weir.arg.%s: an element has no values, default or optional of its own yet", kind)
		}
	case ArgEnum:
		if len(a.Values) == 0 {
			return nil, errors.New(`cannot declare weir.arg.enum without values: write values = { "a", "b" }`)
		}
	}
	if v, has := options["default"]; has {
		d, err := a.convert(v)
		if err != nil {
			return nil, fmt.Errorf("cannot use this default of weir.arg.%s: %w", kind, err)
		}
		if kind == ArgSecret {
			return nil, errors.New("cannot give a secret a default: it would stand in the script")
		}
		if a.Optional {
			return nil, errors.New("cannot use both default and optional: an argument with a default is never missing")
		}
		a.Default = d.Interface()
	}
	return a, nil
}

func (a *Arg) knownOptions() string {
	names := []string{"default", "optional", "doc"}
	switch a.Kind {
	case ArgList, ArgMap:
		names = append(names, "of")
	case ArgEnum:
		names = append(names, "values")
	case ArgSecret:
		names = []string{"optional", "doc"}
	}
	return strings.Join(names, ", ")
}

// String returns the type in words: list(string), enum("a", "b").
func (a *Arg) String() string {
	switch a.Kind {
	case ArgList, ArgMap:
		return string(a.Kind) + "(" + a.Of.String() + ")"
	case ArgEnum:
		q := make([]string, len(a.Values))
		for i, v := range a.Values {
			q[i] = strconv.Quote(v)
		}
		return "enum(" + strings.Join(q, ", ") + ")"
	}
	return string(a.Kind)
}

// goType is the field type that the config decoder fills.
func (a *Arg) goType() reflect.Type {
	switch a.Kind {
	case ArgString:
		return reflect.TypeFor[string]()
	case ArgInt:
		return reflect.TypeFor[int64]()
	case ArgNumber:
		return reflect.TypeFor[float64]()
	case ArgBool:
		return reflect.TypeFor[bool]()
	case ArgDuration:
		return reflect.TypeFor[time.Duration]()
	case ArgSize:
		return reflect.TypeFor[component.Size]()
	case ArgList:
		return reflect.SliceOf(a.Of.goType())
	case ArgMap:
		return reflect.MapOf(reflect.TypeFor[string](), a.Of.goType())
	case ArgEnum:
		return reflect.TypeFor[Enum]()
	case ArgSecret:
		return reflect.TypeFor[component.Secret]()
	}
	panic("BUG: unknown argument kind " + string(a.Kind))
}

// convert turns a script's value, such as a default, into goType.
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
		out := reflect.MakeSlice(a.goType(), 0, 0)
		l, ok := v.([]any)
		if m, isMap := v.(map[string]any); isMap && len(m) == 0 {
			ok = true // {} in Lua
		}
		if !ok {
			return wrong("a list")
		}
		for _, e := range l {
			ev, err := a.Of.convert(e)
			if err != nil {
				return reflect.Value{}, err
			}
			out = reflect.Append(out, ev)
		}
		return out, nil
	case ArgMap:
		m, ok := v.(map[string]any)
		if l, isList := v.([]any); isList && len(l) == 0 {
			ok = true
		}
		if !ok {
			return wrong("a map")
		}
		out := reflect.MakeMap(a.goType())
		for _, k := range sortedKeys(m) { // of several mistakes, the same is said each time
			ev, err := a.Of.convert(m[k])
			if err != nil {
				return reflect.Value{}, fmt.Errorf("%q: %w", k, err)
			}
			out.SetMapIndex(reflect.ValueOf(k), ev)
		}
		return out, nil
	case ArgSecret:
		if s, ok := v.(string); ok {
			return reflect.ValueOf(component.Secret(s)), nil
		}
		return wrong("a secret")
	}
	panic("BUG: unknown argument kind " + string(a.Kind))
}

// Secret is an argument as scripts get it: they can pass it to host calls and
// nothing else.
type Secret struct{ value string }

// String returns "<secret>".
func (Secret) String() string { return "<secret>" }

// Reveal returns the secret to a host call.
func (s Secret) Reveal() string { return s.value }

// scriptValue turns a decoded field into what a language gets: string,
// float64, int64, bool, []any, map[string]any, Secret.
func (a *Arg) scriptValue(v reflect.Value) any {
	switch a.Kind {
	case ArgDuration:
		return time.Duration(v.Int()).Seconds()
	case ArgSize:
		return v.Int()
	case ArgEnum:
		return v.Interface().(Enum).value
	case ArgSecret:
		return Secret{v.String()}
	case ArgList:
		out := make([]any, v.Len())
		for i := range out {
			out[i] = a.Of.scriptValue(v.Index(i))
		}
		return out
	case ArgMap:
		out := make(map[string]any, v.Len())
		for it := v.MapRange(); it.Next(); {
			out[it.Key().String()] = a.Of.scriptValue(it.Value())
		}
		return out
	}
	return v.Interface()
}

// Enum is a string of the config that must be one of a list.
type Enum struct {
	allowed []string
	value   string
}

// UnmarshalText accepts an allowed value.
func (e *Enum) UnmarshalText(text []byte) error {
	if !slices.Contains(e.allowed, string(text)) {
		return fmt.Errorf("cannot use %q: it must be one of %s", text, strings.Join(e.allowed, ", "))
	}
	e.value = string(text)
	return nil
}

// MarshalText returns the value.
func (e Enum) MarshalText() ([]byte, error) { return []byte(e.value), nil }

// String returns the value.
func (e Enum) String() string { return e.value }

// Values returns what is allowed; the caller does not change it.
func (e Enum) Values() []string { return e.allowed }

// argsType makes the type that the config decoder fills and a maker of new
// values with the defaults in. The fields are the script's arguments in order,
// then ForwardTo and Script.
func argsType(args []*Arg) (reflect.Type, func() any) {
	fields := make([]reflect.StructField, 0, len(args)+2)
	for _, a := range args {
		t := a.goType()
		tag := a.Name + ",attr"
		if a.Default != nil {
			tag += ",optional"
		} else if a.Optional {
			tag += ",optional"
			t = reflect.PointerTo(t) // nil is missing
		}
		fields = append(fields, reflect.StructField{
			Name: "Arg_" + a.Name,
			Type: t,
			Tag:  reflect.StructTag(fmt.Sprintf("alloy:%q", tag)),
		})
	}
	fields = append(fields,
		reflect.StructField{Name: "ForwardTo", Type: reflect.TypeFor[[]*flow.Receiver](), Tag: `alloy:"forward_to,attr"`},
		reflect.StructField{Name: "Script", Type: reflect.TypeFor[ScriptBlock](), Tag: `alloy:"script,block,optional"`},
	)
	t := reflect.StructOf(fields)
	return t, func() any {
		p := reflect.New(t)
		for i, a := range args {
			f := p.Elem().Field(i)
			switch {
			case a.Default != nil:
				f.Set(cloneValue(reflect.ValueOf(a.Default)))
			case a.Kind == ArgEnum && a.Optional:
				// The decoder fills a pointer that is there; one that stays
				// unset is told apart by its empty value.
				f.Set(reflect.ValueOf(&Enum{allowed: a.Values}))
			case a.Kind == ArgEnum:
				f.Set(reflect.ValueOf(Enum{allowed: a.Values}))
			}
		}
		p.Elem().FieldByName("Script").Addr().Interface().(*ScriptBlock).SetToDefault()
		return p.Interface()
	}
}

// scriptArgs reads a value made by argsType: what the script sees in ctx.args.
func scriptArgs(args []*Arg, v any) (values map[string]any, to []*flow.Receiver, block ScriptBlock) {
	rv := reflect.ValueOf(v).Elem()
	values = make(map[string]any, len(args))
	for i, a := range args {
		f := rv.Field(i)
		if a.Optional {
			if f.IsNil() {
				continue
			}
			f = f.Elem()
			if a.Kind == ArgEnum && f.Interface().(Enum).value == "" {
				continue
			}
		}
		values[a.Name] = a.scriptValue(f)
	}
	return values, rv.FieldByName("ForwardTo").Interface().([]*flow.Receiver), rv.FieldByName("Script").Interface().(ScriptBlock)
}

// cloneValue copies lists and maps, so that no two blocks share a default.
func cloneValue(v reflect.Value) reflect.Value {
	switch v.Kind() {
	case reflect.Slice:
		out := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		for i := range v.Len() {
			out.Index(i).Set(cloneValue(v.Index(i)))
		}
		return out
	case reflect.Map:
		out := reflect.MakeMapWithSize(v.Type(), v.Len())
		for it := v.MapRange(); it.Next(); {
			out.SetMapIndex(it.Key(), cloneValue(it.Value()))
		}
		return out
	}
	return v
}

var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// reservedArgs belong to the host in every scripted block.
var reservedArgs = []string{"forward_to", "routes", "script", "interval", "listen"}

func stringList(v any) ([]string, bool) {
	l, ok := v.([]any)
	if !ok {
		return nil, false
	}
	out := make([]string, len(l))
	for i, e := range l {
		if out[i], ok = e.(string); !ok {
			return nil, false
		}
	}
	return out, true
}

// describe names a script's value in a message.
func describe(v any) string {
	switch x := v.(type) {
	case nil:
		return "nil"
	case string:
		return strconv.Quote(x)
	case float64:
		return strconv.FormatFloat(x, 'g', -1, 64)
	case bool:
		return strconv.FormatBool(x)
	case []any:
		return "a list"
	case map[string]any:
		return "a map"
	case *Arg:
		return "an argument type"
	case Func:
		return "a function"
	}
	return fmt.Sprintf("a %T", v)
}
