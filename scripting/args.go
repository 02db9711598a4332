package scripting

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/config"
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
	ArgTargets  ArgKind = "targets"
	ArgRegexp   ArgKind = "regexp"
	ArgBlock    ArgKind = "block"
)

// ArgKinds are all kinds in the order of the manual.
var ArgKinds = []ArgKind{ArgString, ArgInt, ArgNumber, ArgBool, ArgDuration, ArgSize, ArgList, ArgMap, ArgEnum, ArgSecret, ArgTargets, ArgRegexp, ArgBlock}

// Arg is an argument that a script declares. Create it with NewArg.
type Arg struct {
	Name     string // set by the definition that contains it
	Kind     ArgKind
	Of       *Arg     // element of a list or map
	Values   []string // of an enum
	Fields   []*Arg   // of a block, in the order of their declaration
	Repeated bool     // a block that may occur several times
	Default  any      // a Go value of the argument's type; nil if there is none
	Optional bool     // may be omitted and is then missing in ctx.args
	Doc      string
	Line     int // where it was declared
}

var argOptions = map[string]string{
	"default": "", "doc": "", "optional": "",
	"of": "list, map", "values": "enum", "fields": "block", "repeated": "block",
}

// wantOption describes the valid values of an option.
var wantOption = map[string]string{
	"doc": "a string", "optional": "a bool", "of": "an argument type such as weir.arg.string{}",
	"values": "a list of strings", "repeated": "a bool",
}

// NewArg checks a declaration weir.arg.<kind>{…} of a script. The language
// passes the values as string, float64, bool, []any, map[string]any, *Arg.
func NewArg(kind ArgKind, options map[string]any, line int) (*Arg, error) {
	a := &Arg{Kind: kind, Line: line}
	var errs []error
	for _, name := range sortedKeys(options) {
		if err := a.option(name, options[name]); err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	switch kind {
	case ArgList, ArgMap:
		if a.Of == nil {
			a.Of = &Arg{Kind: ArgString, Line: line}
		}
		if a.Of.Kind == ArgBlock {
			return nil, fmt.Errorf("cannot use weir.arg.block as an element of weir.arg.%s: a block that may be there several times is weir.arg.block { repeated = true, … }", kind)
		}
		if a.Of.Default != nil || a.Of.Optional {
			return nil, fmt.Errorf("cannot use this element type in weir.arg.%s: an element is there or it is not, so it has no default and is not optional", kind)
		}
	case ArgEnum:
		if len(a.Values) == 0 {
			return nil, errors.New(`cannot declare weir.arg.enum without values: write values = { "a", "b" }`)
		}
	case ArgBlock:
		if len(a.Fields) == 0 {
			return nil, errors.New(`cannot declare weir.arg.block without fields: write fields = { name = weir.arg.string {} }`)
		}
	}
	return a, a.setDefault(options)
}

// option sets one option. The default is not set here, because it depends on
// the other options.
func (a *Arg) option(name string, v any) error {
	only, known := argOptions[name]
	if !known || only != "" && !slices.Contains(strings.Split(only, ", "), string(a.Kind)) || name == "default" && a.Kind == ArgBlock {
		return fmt.Errorf("cannot use %q in weir.arg.%s: there is %s%s", name, a.Kind, a.knownOptions(), suggestName(name, strings.Split(a.knownOptions(), ", ")))
	}
	ok := true
	switch name {
	case "doc":
		a.Doc, ok = v.(string)
	case "optional":
		a.Optional, ok = v.(bool)
	case "repeated":
		a.Repeated, ok = v.(bool)
	case "of":
		a.Of, ok = v.(*Arg)
	case "values":
		a.Values, ok = stringList(v)
	case "fields":
		var errs []error
		a.Fields = declared(RawField{Name: "fields", Line: a.Line, Value: v}, "field", nil, func(_ int, format string, args ...any) {
			errs = append(errs, fmt.Errorf(format, args...))
		})
		return errors.Join(errs...)
	}
	if !ok {
		return fmt.Errorf("cannot use %s as %q of weir.arg.%s: it must be %s", describe(v), name, a.Kind, wantOption[name])
	}
	return nil
}

func (a *Arg) setDefault(options map[string]any) error {
	v, has := options["default"]
	if !has {
		return nil
	}
	d, err := a.convert(v)
	if err != nil {
		return fmt.Errorf("cannot use this default of weir.arg.%s: %w", a.Kind, err)
	}
	if a.Kind == ArgSecret {
		return errors.New("cannot give a secret a default: it would stand in the script")
	}
	if a.Optional {
		return errors.New("cannot use both default and optional: an argument with a default is never missing")
	}
	a.Default = d.Interface()
	return nil
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
	case ArgBlock:
		names = []string{"fields", "repeated", "optional", "doc"}
	}
	return strings.Join(names, ", ")
}

// String returns the type as text: list(string), enum("a", "b").
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
	case ArgTargets:
		return "list(map(string))"
	}
	return string(a.Kind)
}

// goType returns the field type for the config decoder.
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
	case ArgList, ArgMap:
		if a.hasEnums() {
			return reflect.TypeFor[Choices]()
		}
		return a.plainType()
	case ArgEnum:
		return reflect.TypeFor[Enum]()
	case ArgSecret:
		return reflect.TypeFor[component.Secret]()
	case ArgTargets:
		return reflect.TypeFor[[]map[string]string]()
	case ArgRegexp:
		return reflect.TypeFor[Regexp]()
	case ArgBlock:
		t := reflect.StructOf(ArgFields(a.Fields))
		if a.Repeated {
			return reflect.SliceOf(t)
		}
		return t
	}
	panic("BUG: unknown argument kind " + string(a.Kind))
}

// IsIdentifier reports whether name is a valid name of an argument, or a valid
// part of the name of a block.
func IsIdentifier(name string) bool { return identifier.MatchString(name) }

var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// reservedArgs are arguments of the host in every scripted block, and sinkArgs
// those in the block of a sink.
var (
	reservedArgs = []string{"forward_to", "routes", "script", "interval", "listen"}
	sinkArgs     = append(slices.Clip(reservedArgs), "batch", "journal")
)

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

// suggestName returns the end of a message that suggests names similar to a
// misspelt name.
func suggestName(name string, names []string) string {
	if hint := config.DidYouMean(name, names); hint != "" {
		return "; " + hint
	}
	return ""
}

// describe describes a script's value for a message.
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
	case Func, Callback:
		return "a function"
	case Secret:
		return "a secret"
	case *Object:
		return "a " + x.Type.Name
	}
	if v == Null {
		return "null"
	}
	return fmt.Sprintf("a %T", v)
}

func quoteList(ss []string) string {
	q := make([]string, len(ss))
	for i, s := range ss {
		q[i] = fmt.Sprintf("%q", s)
	}
	return strings.Join(q, " or ")
}
