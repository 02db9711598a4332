package scripting

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Definition is what a script says it is: its manifest, checked.
type Definition struct {
	Args    []*Arg // in the order they were declared
	Series  bool   // it has the hook series(s, ctx)
	Metrics bool   // it has the hook metrics(batch, ctx)
}

// Raw is a definition as a script wrote it, in values every language has.
type Raw struct {
	Kind   string // transform, source, sink
	Line   int
	Fields []RawField
}

// RawField is one key of a definition. Value is nil, string, float64, bool,
// []any, map[string]any, *Arg or Func.
type RawField struct {
	Name  string
	Line  int
	Value any
}

// Func stands for a function in a Raw.
type Func struct {
	Line int
	Ref  any // what the language finds it again by
}

// plannedKeys are keys of SCRIPTING's contract that are refused by name.
var plannedKeys = map[string]string{
	"stream": "logs", "logs": "logs",
	"every": "timers", "state": "state", "outputs": "routes", "needs": "grants",
	"setup": "setup", "teardown": "teardown", "migrate": "state",
}

// Define checks a definition. The error joins an *Error for every mistake.
func Define(f File, raw Raw) (*Definition, error) {
	var errs []error
	fail := func(line int, format string, args ...any) {
		errs = append(errs, f.Error(line, hookLoad, fmt.Errorf(format, args...)))
	}
	if raw.Kind != "transform" {
		fail(raw.Line, "cannot use weir.%s: it is not supported yet, there is weir.transform", raw.Kind)
		return nil, errors.Join(errs...)
	}
	d := &Definition{}
	for _, field := range raw.Fields {
		line := field.Line
		switch field.Name {
		case "args":
			d.Args = defineArgs(field, fail)
		case "series", "metrics":
			if _, ok := field.Value.(Func); !ok {
				fail(line, "cannot use %s as hook %s: it must be a function", describe(field.Value), field.Name)
				continue
			}
			d.Series = d.Series || field.Name == "series"
			d.Metrics = d.Metrics || field.Name == "metrics"
		default:
			if _, planned := plannedKeys[field.Name]; planned {
				fail(line, "cannot use %q in weir.transform: it is not supported yet", field.Name)
				continue
			}
			fail(line, "cannot use %q in weir.transform: there is args, series and metrics", field.Name)
		}
	}
	if !d.Series && !d.Metrics && len(errs) == 0 {
		fail(raw.Line, "cannot use a transform without a hook: write series or metrics")
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return d, nil
}

func defineArgs(field RawField, fail func(int, string, ...any)) []*Arg {
	m, ok := field.Value.(map[string]any)
	if l, isList := field.Value.([]any); isList && len(l) == 0 {
		ok = true // {} in Lua
	}
	if !ok {
		fail(field.Line, "cannot use %s as args: it must be a table of argument types", describe(field.Value))
		return nil
	}
	var args []*Arg
	for _, name := range sortedKeys(m) {
		v, ok := m[name].(*Arg)
		switch {
		case !ok:
			fail(field.Line, "cannot use %s as argument %q: write weir.arg.string{} or another type", describe(m[name]), name)
			continue
		case !identifier.MatchString(name):
			fail(v.Line, "cannot name an argument %q: it must be an identifier", name)
			continue
		case slices.Contains(reservedArgs, name):
			fail(v.Line, "cannot name an argument %q: the name is reserved (%s)", name, strings.Join(reservedArgs, ", "))
			continue
		}
		a := *v // one type value may serve several arguments
		a.Name = name
		args = append(args, &a)
	}
	slices.SortStableFunc(args, func(x, y *Arg) int { return cmp.Compare(x.Line, y.Line) })
	return args
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
