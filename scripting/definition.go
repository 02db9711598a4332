package scripting

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/config"
)

// Definition is the validated definition of a script.
type Definition struct {
	Kind     ComponentKind
	Args     []*Arg        // in the order of their declaration
	Series   bool          // it has a hook series(s, ctx)
	Metrics  bool          // it has a hook metrics(batch, ctx)
	Stream   bool          // it has a hook stream(s, ctx)
	Logs     bool          // it has a hook logs(batch, ctx)
	Sends    batch.Signals // the signals that leave the component
	Setup    bool          // it has setup(ctx)
	Teardown bool          // it has teardown(ctx)
	Every    []Every       // its timers, shortest interval first
	State    []*State      // in the order of their declaration
	Version  int64         // of its state; 1 by default
	Migrate  bool          // it has migrate(old_state, old_version, ctx)
	Needs    Needs         // external resources
	Hooks    []string      // keys with a function or a table of functions, in the order of the manual
	Outputs  []string      // names of the outputs in addition to forward_to, in the order of their ways
	ifFails  OnError       // the key on_error, or ""

	// Fields of a source.
	Poll     bool          // it has poll(ctx)
	Interval time.Duration // of poll; 0 if the block must set it
	Run      bool          // it has run(ctx)
	HTTP     []Route       // the requests that it accepts, sorted
	Exports  []*Arg        // in the order of their declaration, without the receiver

	// Fields of a sink.
	Send  bool       // it has send(batch, ctx)
	Batch BatchBlock // default limits of the block
	takes batch.Signals
}

// Raw is a definition as written in a script, in values that all languages
// have.
type Raw struct {
	Kind   ComponentKind
	Line   int
	Fields []RawField
	// Camel means that keys of several words are in camelCase.
	Camel bool
}

// RawField is one key of a definition. Value is nil or a string, float64, bool,
// []any, map[string]any, *Arg or Func.
type RawField struct {
	Name  string
	Line  int
	Value any
}

// Func stands for a function in a Raw.
type Func struct {
	Line int
	Ref  any // identifies the function for the language
}

// Define checks a definition. The error joins an *Error for every error in it.
func Define(f File, raw Raw) (*Definition, error) {
	d := &definer{file: f, kind: raw.Kind, camel: raw.Camel, def: &Definition{Kind: raw.Kind, Version: 1, Batch: defaultBatch}}
	keys := raw.Kind.keys()
	for _, field := range raw.Fields {
		i := slices.IndexFunc(keys, func(k definitionKey) bool { return d.written(k.name) == field.Name })
		if i < 0 {
			d.unknown(field)
			continue
		}
		keys[i].read(d, field)
	}
	d.complete(raw.Line)
	if len(d.errs) > 0 {
		return nil, errors.Join(d.errs...)
	}
	for _, k := range keys {
		if slices.ContainsFunc(raw.Fields, func(f RawField) bool { return f.Name == d.written(k.name) && isHook(f.Value) }) {
			d.def.Hooks = append(d.def.Hooks, k.name)
		}
	}
	return d.def, nil
}

// isHook reports whether a value of a definition is a function or a table of
// functions.
func isHook(v any) bool {
	if m, ok := v.(map[string]any); ok {
		for _, e := range m {
			v = e
		}
	}
	_, ok := v.(Func)
	return ok
}

// definer reads a definition and collects its errors.
type definer struct {
	file  File
	kind  ComponentKind
	camel bool // keys are in camelCase
	def   *Definition
	errs  []error

	saysSends    bool // the key sends is present
	intervalLine int  // line of the key interval; 0 if it is missing
}

// written returns a key of a table in the spelling of the script's language.
func (d *definer) written(key string) string {
	if d.camel {
		return CamelCase(key)
	}
	return key
}

// fail records an error in a line. The caller may set the Hint of the returned
// error.
func (d *definer) fail(line int, format string, args ...any) *Error {
	e := d.file.Error(line, HookLoad, fmt.Errorf(format, args...))
	d.errs = append(d.errs, e)
	return e
}

func (d *definer) unknown(field RawField) {
	keysOf := func(k ComponentKind) []string {
		names := DefinitionKeys(k)
		for i := range names {
			names[i] = d.written(names[i])
		}
		return names
	}
	names := keysOf(d.kind)
	e := d.fail(field.Line, "cannot use %q in weir.%s: there is %s", field.Name, d.kind, strings.Join(names, ", "))
	if e.Hint = config.DidYouMean(field.Name, names); e.Hint != "" {
		return
	}
	for _, kind := range ComponentKinds {
		if slices.Contains(keysOf(kind), field.Name) {
			e.Hint = fmt.Sprintf("%s is of weir.%s", field.Name, kind)
			return
		}
	}
}

// hookKey reads a key whose value is a function.
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
	reserved := reservedArgs
	if d.kind == Sink {
		reserved = sinkArgs
	}
	d.def.Args = declared(field, "argument", reserved, func(line int, format string, args ...any) { d.fail(line, format, args...) })
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
		a := *v // one type value may be used for several arguments
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

// HookMigrate is the hook that reads the state of another version of the
// script.
const HookMigrate = "migrate"
