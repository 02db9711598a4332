package scripting

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/config"
)

// Definition is what a script says it is: its manifest, checked.
type Definition struct {
	Args     []*Arg        // in the order they were declared
	Series   bool          // it has the hook series(s, ctx)
	Metrics  bool          // it has the hook metrics(batch, ctx)
	Stream   bool          // it has the hook stream(s, ctx)
	Logs     bool          // it has the hook logs(batch, ctx)
	Sends    batch.Signals // that leave the component
	Setup    bool          // it has setup(ctx)
	Teardown bool          // it has teardown(ctx)
	Every    []Every       // its timers, the shortest first
	State    []*State      // in the order they were declared
	Version  int64         // of what it keeps in state; 1 if it does not say
	Migrate  bool          // it has migrate(old_state, old_version, ctx)
	Needs    Needs         // of the world outside
	Hooks    []string      // what is a function or a table of them, in the order of the manual
	Outputs  []string      // names of the outputs beside forward_to, in the order of their ways
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

// Define checks a definition. The error joins an *Error for every mistake.
func Define(f File, raw Raw) (*Definition, error) {
	d := &definer{file: f, kind: raw.Kind, def: &Definition{Version: 1}}
	if raw.Kind != "transform" {
		d.fail(raw.Line, "cannot use weir.%s: it is not supported yet, there is weir.transform", raw.Kind)
		return nil, errors.Join(d.errs...)
	}
	for _, field := range raw.Fields {
		i := slices.IndexFunc(transformKeys, func(k definitionKey) bool { return k.name == field.Name })
		if i < 0 {
			d.unknown(field)
			continue
		}
		transformKeys[i].read(d, field)
	}
	if d.def.Accepts() == 0 && len(d.errs) == 0 {
		d.fail(raw.Line, "cannot use a transform without a hook: write series or metrics, for logs stream or logs")
	}
	if d.def.Sends == 0 {
		d.def.Sends = d.def.Accepts()
	}
	if len(d.errs) > 0 {
		return nil, errors.Join(d.errs...)
	}
	for _, k := range transformKeys {
		if slices.ContainsFunc(raw.Fields, func(f RawField) bool { return f.Name == k.name && isHook(f.Value) }) {
			d.def.Hooks = append(d.def.Hooks, k.name)
		}
	}
	return d.def, nil
}

// isHook reports whether a value of a definition is a function or a table of
// them.
func isHook(v any) bool {
	if m, ok := v.(map[string]any); ok {
		for _, e := range m {
			v = e
		}
	}
	_, ok := v.(Func)
	return ok
}

// definitionKey is a key of a definition and what reads it, which lives in a
// file of its own where it is more than a hook.
type definitionKey struct {
	name string
	read func(d *definer, field RawField)
}

// transformKeys are the keys of weir.transform, in the order of the manual.
var transformKeys = []definitionKey{
	{"args", defineArgs},
	{"series", hookKey(func(d *Definition) *bool { return &d.Series })},
	{"metrics", hookKey(func(d *Definition) *bool { return &d.Metrics })},
	{"stream", hookKey(func(d *Definition) *bool { return &d.Stream })},
	{"logs", hookKey(func(d *Definition) *bool { return &d.Logs })},
	{"sends", defineSends},
	{"every", defineEvery},
	{"setup", hookKey(func(d *Definition) *bool { return &d.Setup })},
	{"teardown", hookKey(func(d *Definition) *bool { return &d.Teardown })},
	{hookMigrate, hookKey(func(d *Definition) *bool { return &d.Migrate })},
	{"version", defineVersion},
	{"state", defineState},
	{"outputs", defineOutputs},
	{"needs", defineNeeds},
}

// definer reads a definition and collects its mistakes.
type definer struct {
	file File
	kind string
	def  *Definition
	errs []error
}

// fail notes a mistake in a line; the returned error may get a Hint.
func (d *definer) fail(line int, format string, args ...any) *Error {
	e := d.file.Error(line, hookLoad, fmt.Errorf(format, args...))
	d.errs = append(d.errs, e)
	return e
}

func (d *definer) unknown(field RawField) {
	names := make([]string, len(transformKeys))
	for i, k := range transformKeys {
		names[i] = k.name
	}
	e := d.fail(field.Line, "cannot use %q in weir.%s: there is %s", field.Name, d.kind, strings.Join(names, ", "))
	e.Hint = config.DidYouMean(field.Name, names)
}

// hookKey reads a key that is a function.
func hookKey(has func(*Definition) *bool) func(*definer, RawField) {
	return func(d *definer, field RawField) {
		if _, ok := field.Value.(Func); !ok {
			d.fail(field.Line, "cannot use %s as hook %s: it must be a function", describe(field.Value), field.Name)
			return
		}
		*has(d.def) = true
	}
}

func defineArgs(d *definer, field RawField) {
	d.def.Args = declared(field, "argument", reservedArgs, func(line int, format string, args ...any) { d.fail(line, format, args...) })
}

// declared reads a table of argument types: args, or the fields of a block.
func declared(field RawField, what string, reserved []string, fail func(int, string, ...any)) []*Arg {
	m, ok := field.Value.(map[string]any)
	if l, isList := field.Value.([]any); isList && len(l) == 0 {
		ok = true // {} in Lua
	}
	if !ok {
		fail(field.Line, "cannot use %s as %s: it must be a table of argument types", describe(field.Value), field.Name)
		return nil
	}
	var args []*Arg
	for _, name := range sortedKeys(m) {
		v, ok := m[name].(*Arg)
		switch {
		case !ok:
			fail(field.Line, "cannot use %s as %s %q: write weir.arg.string{} or another type", describe(m[name]), what, name)
			continue
		case !identifier.MatchString(name):
			fail(v.Line, "cannot name %s %s %q: it must be an identifier", article(what), what, name)
			continue
		case slices.Contains(reserved, name):
			fail(v.Line, "cannot name %s %s %q: the name is reserved (%s)", article(what), what, name, strings.Join(reserved, ", "))
			continue
		}
		a := *v // one type value may serve several arguments
		a.Name = name
		args = append(args, &a)
	}
	slices.SortStableFunc(args, func(x, y *Arg) int { return cmp.Compare(x.Line, y.Line) })
	return args
}

func article(noun string) string {
	if strings.ContainsRune("aeiou", rune(noun[0])) {
		return "an"
	}
	return "a"
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
