package api

import (
	"fmt"
	"iter"
	"strings"
	"sync"

	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/engine/expr"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/host"
)

// Table contains the API of scripts. It must not be modified.
type Table struct {
	Weir      *scripting.Module                             // the result of require "weir"
	Keys      map[scripting.ComponentKind][]scripting.Param // of a definition; hooks are functions
	Batch     *scripting.ObjectType                         // of the hook metrics
	Record    *scripting.ObjectType                         // of a batch
	Copy      *scripting.ObjectType                         // of a record: what copy() returns
	Series    *scripting.ObjectType                         // of the hook series
	Labels    *scripting.ObjectType                         // of a record or series
	Logs      *scripting.ObjectType                         // of the hook logs
	Line      *scripting.ObjectType                         // a record of it
	LineCopy  *scripting.ObjectType                         // the result of copy() of such a record
	Stream    *scripting.ObjectType                         // of the hook stream
	Metadata  *scripting.ObjectType                         // of a line
	Group     *scripting.ObjectType                         // of records of one signal
	LineGroup *scripting.ObjectType                         // of records of the other signal
	// Context is ctx in every hook except series and stream.
	Context *scripting.ObjectType
	// Remembered is ctx in hooks whose result is cached: series, stream.
	Remembered *scripting.ObjectType
	// Arguments is ctx.args; its members depend on the script.
	Arguments *scripting.ObjectType
	// Log is ctx.log.
	Log *scripting.ObjectType
	// Definition, Argument and State are the results of functions of weir.
	Definition, Argument, State *scripting.ObjectType
	// Request is the argument of the hook http.
	Request *scripting.ObjectType

	parts []*scripting.ObjectType // of ctx: ctx.http
	made  []*scripting.ObjectType // that functions of ctx return
}

// Get returns the table.
var Get = sync.OnceValue(func() *Table {
	t := &Table{
		Batch:      &scripting.ObjectType{Name: "batch"},
		Record:     &scripting.ObjectType{Name: "record"},
		Copy:       &scripting.ObjectType{Name: "copy of a record"},
		Series:     &scripting.ObjectType{Name: "series"},
		Labels:     &scripting.ObjectType{Name: "labels"},
		Logs:       &scripting.ObjectType{Name: "batch of log lines"},
		Line:       &scripting.ObjectType{Name: "log record"},
		LineCopy:   &scripting.ObjectType{Name: "copy of a log record"},
		Stream:     &scripting.ObjectType{Name: "stream"},
		Metadata:   &scripting.ObjectType{Name: "metadata"},
		Group:      &scripting.ObjectType{Name: "group"},
		LineGroup:  &scripting.ObjectType{Name: "group of log records"},
		Context:    &scripting.ObjectType{Name: "ctx"},
		Remembered: &scripting.ObjectType{Name: "ctx of series"},
		Arguments:  &scripting.ObjectType{Name: "ctx.args"},
		Log:        &scripting.ObjectType{Name: "ctx.log"},
		State:      &scripting.ObjectType{Name: "state", Doc: "A kind of state, of weir.state."},
		Definition: &scripting.ObjectType{Name: "definition", Doc: "The result of a script."},
		Argument:   &scripting.ObjectType{Name: "argument type", Doc: "A type of weir.arg."},
		Request:    host.RequestType(),
	}
	t.labels()
	t.series()
	t.record()
	t.batch()
	t.logs()
	t.context()
	t.weir()
	t.completeOperations()
	return t
})

// Types returns the types of the table, in the order of the manual.
func (t *Table) Types() []*scripting.ObjectType {
	ts := []*scripting.ObjectType{t.Batch, t.Record, t.Copy, t.Group, t.Series, t.Labels, t.Logs, t.Line, t.LineCopy, t.LineGroup, t.Metadata, t.Stream, t.Context, t.Remembered, t.Arguments, t.Log, t.Request}
	return append(append(ts, t.parts...), t.made...)
}

// Parts returns the tables of ctx that the component binds, such as ctx.http.
func (t *Table) Parts() []*scripting.ObjectType { return t.parts }

// Members returns the member names of a type: fields, then methods.
func Members(t *scripting.ObjectType) []string {
	names := scripting.Names(t.Fields)
	for i := range t.Methods {
		names = append(names, t.Methods[i].Name)
	}
	return names
}

// Settable returns the names of the fields that a script may set.
func Settable(t *scripting.ObjectType) []string {
	var names []string
	for _, f := range t.Fields {
		if f.Set {
			names = append(names, f.Name)
		}
	}
	return names
}

// Unknown returns the error for reading an unknown member of a type. It
// suggests similar names, or lists all.
func Unknown(t *scripting.ObjectType, name string) error {
	if hint := config.DidYouMean(name, Members(t)); hint != "" {
		return fmt.Errorf("%s has no %q: %s", article(t), name, hint)
	}
	return fmt.Errorf("%s has no %q: there is %s", article(t), name, list(listing(t)))
}

// CannotSet returns the error for setting a member that cannot be set.
func CannotSet(t *scripting.ObjectType, name string) error {
	can := Settable(t)
	if len(can) == 0 {
		return fmt.Errorf("cannot set %q of %s: it is read-only", name, article(t))
	}
	if hint := config.DidYouMean(name, can); hint != "" {
		return fmt.Errorf("cannot set %q of %s: %s", name, article(t), hint)
	}
	return fmt.Errorf("cannot set %q of %s: what can be set is %s", name, article(t), list(can))
}

// listing returns Members, with parentheses after methods.
func listing(t *scripting.ObjectType) []string {
	names := scripting.Names(t.Fields)
	for i := range t.Methods {
		names = append(names, t.Methods[i].Name+"()")
	}
	if t.Index != nil {
		names = append(names, "#"+t.Name, t.Name+"[i]")
	}
	return names
}

func article(t *scripting.ObjectType) string {
	if strings.HasPrefix(t.Name, "ctx") || t.Name == "labels" {
		return t.Name
	}
	return "a " + t.Name
}

func list(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

// Helpers for defining entries.

func text(name, doc string) scripting.Param {
	return scripting.Param{Name: name, Kind: scripting.KindString, Doc: doc}
}

// expression returns a parameter that is an expression over records.
func expression(name string, kind expr.Kind, doc string) scripting.Param {
	return scripting.Param{Name: name, Kind: scripting.KindString, Doc: doc, Expression: &kind}
}

func number(name, doc string) scripting.Param {
	return scripting.Param{Name: name, Kind: scripting.KindNumber, Doc: doc}
}

func integerParam(name, doc string) scripting.Param {
	return scripting.Param{Name: name, Kind: scripting.KindInt, Doc: doc}
}

func flag(name, doc string) scripting.Param {
	return scripting.Param{Name: name, Kind: scripting.KindBool, Doc: doc}
}

func object(name string, t *scripting.ObjectType, doc string) scripting.Param {
	return scripting.Param{Name: name, Kind: scripting.KindObject, Type: t, Doc: doc}
}

func callback(name, doc string, result scripting.Result, params ...scripting.Param) scripting.Param {
	return scripting.Param{Name: name, Kind: scripting.KindFunction, Doc: doc, Call: &scripting.Function{Params: params, Result: result}}
}

func optional(p scripting.Param) scripting.Param { p.Optional = true; return p }

func settable(p scripting.Param) scripting.Param { p.Set = true; return p }

// labelValue returns a parameter for the value of a label.
func labelValue(name, doc string) scripting.Param {
	p := optional(text(name, doc))
	p.Or = []scripting.Param{number("", ""), flag("", "")}
	return p
}

// newUse returns an example with one batch, in Lua and in JavaScript.
func newUse(lua, js, input, output string) scripting.Use {
	return scripting.Use{Lua: lua, JS: js, Input: input, Output: output}
}

// Modules returns weir and its parts, with their full names.
func (t *Table) Modules() []*scripting.Module {
	ms := []*scripting.Module{t.Weir}
	for _, part := range t.Weir.Tables {
		whole := *part
		whole.Name = t.Weir.Name + "." + part.Name
		ms = append(ms, &whole)
	}
	return ms
}

// Uses yields the examples of all entries, with the name of each entry.
func (t *Table) Uses() iter.Seq2[string, []scripting.Use] {
	return func(yield func(string, []scripting.Use) bool) {
		for _, m := range t.Modules() {
			for i := range m.Funcs {
				if f := &m.Funcs[i]; !yield(m.Name+"."+f.Name, f.Uses) {
					return
				}
			}
		}
		for _, typ := range t.Types() {
			for i := range typ.Methods {
				if m := &typ.Methods[i]; !yield(typ.Name+"."+m.Name, m.Uses) {
					return
				}
			}
		}
	}
}
