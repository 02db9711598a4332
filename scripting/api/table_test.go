package api_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/api"
)

// luaKeywords cannot be the names of methods.
var luaKeywords = map[string]bool{
	"and": true, "break": true, "do": true, "else": true, "elseif": true, "end": true, "false": true, "for": true,
	"function": true, "goto": true, "if": true, "in": true, "local": true, "nil": true, "not": true, "or": true,
	"repeat": true, "return": true, "then": true, "true": true, "until": true, "while": true,
}

// clashes reports whether a method of a batch has the name of m and an
// expression where m has a different argument. Lua's linter knows the methods
// of a batch by their names alone.
func clashes(table *api.Table, m scripting.Function) bool {
	of, ok := table.OfBatch(m.Name)
	if !ok {
		return false
	}
	for i, p := range of.Params {
		if p.Expression != nil && i < len(m.Params) && m.Params[i].Expression == nil {
			return true
		}
	}
	return false
}

// TestTable holds that everything is documented and has an example.
func TestTable(t *testing.T) {
	table := api.Get()
	for _, kind := range scripting.ComponentKinds {
		if got, want := scripting.Names(table.Keys[kind]), scripting.DefinitionKeys(kind); !slices.Equal(got, want) {
			t.Errorf("the keys of a %s are %v, there are docs of %v", kind, want, got)
		}
		for _, k := range table.Keys[kind] {
			if k.Doc == "" {
				t.Errorf("key %s of a %s has no doc", k.Name, kind)
			}
		}
	}
	for _, m := range table.Modules() {
		for _, f := range m.Funcs {
			if f.Doc == "" || len(f.Uses) == 0 {
				t.Errorf("%s.%s lacks a doc or an example", m.Name, f.Name)
			}
			for _, o := range f.Params[0].Fields {
				if o.Name == "" || o.Doc == "" {
					t.Errorf("%s.%s: option %q lacks a name or a doc", m.Name, f.Name, o.Name)
				}
			}
		}
	}
	for _, typ := range table.Types() {
		if typ.Doc == "" {
			t.Errorf("%s has no doc", typ.Name)
		}
		for _, f := range typ.Fields {
			if f.Name == "" || f.Doc == "" {
				t.Errorf("%s.%s lacks a name or a doc", typ.Name, f.Name)
			}
		}
		for _, m := range typ.Methods {
			where := typ.Name + ":" + m.Name
			if m.Doc == "" || len(m.Uses) == 0 && len(m.Examples) == 0 {
				t.Errorf("%s lacks a doc or an example", where)
			}
			for i, p := range m.Params {
				if p.Doc == "" {
					t.Errorf("%s: parameter %s has no doc", where, p.Name)
				}
				if p.Rest && i != len(m.Params)-1 {
					t.Errorf("%s: parameter %s takes what is left and is not the last", where, p.Name)
				}
			}
			if luaKeywords[m.Name] {
				t.Errorf("%s: Lua scripts cannot call it, because %s is a keyword of Lua: use another name", where, m.Name)
			}
			if clashes(table, m) {
				t.Errorf("%s: a batch has a method %s whose argument is an expression, and Lua's linter would take the argument of this method for one: rename the method of the batch", where, m.Name)
			}
			if m.Result.Kind != scripting.KindAny && m.Result.Doc == "" {
				t.Errorf("%s: the result has no doc", where)
			}
		}
		names := api.Members(typ)
		slices.Sort(names)
		if len(slices.Compact(slices.Clone(names))) != len(names) {
			t.Errorf("%s has a name twice: %v", typ.Name, names)
		}
	}
}

func TestUnknown(t *testing.T) {
	f := func(err error, want string) {
		t.Helper()
		if err.Error() != want {
			t.Errorf("got  %s\nwant %s", err, want)
		}
	}
	table := api.Get()
	f(api.Unknown(table.Batch, "drop_wher"), `a batch has no "drop_wher": did you mean drop_where?`)
	f(api.Unknown(table.Series, "nonsense"), `a series has no "nonsense": there is name, labels, type, help, unit and drop()`)
	f(api.CannotSet(table.Series, "help"), `cannot set "help" of a series: what can be set is name and labels`)
	f(api.CannotSet(table.Record, "lables"), `cannot set "lables" of a record: did you mean labels?`)
	f(api.CannotSet(table.Context, "args"), `cannot set "args" of ctx: it is read-only`)
	if got := api.Unknown(table.Batch, "nonsense").Error(); !strings.Contains(got, "there is drop_where(), keep_where(), ") {
		t.Errorf("got %s", got)
	}
}
