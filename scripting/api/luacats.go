package api

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/host"
)

// Script is the information about one script for editors.
type Script struct {
	Name string // of the component: http.paths
	Def  *scripting.Definition
}

// LuaTypes returns files of LuaCATS annotations by name: the modules that
// require finds, the globals of tests, and the arguments of scripts. Editors
// read them and never run them.
//
// Format: https://luals.github.io/wiki/annotations/
func LuaTypes(modules []*scripting.Module, tests *scripting.TestAPI, scripts []Script) map[string]string {
	t := Get()
	names := map[*scripting.ObjectType]string{
		t.Batch: "weir.Batch", t.Record: "weir.Record", t.Copy: "weir.Copy", t.Series: "weir.Series", t.Labels: "weir.Labels",
		t.Context: "weir.Context", t.Remembered: "weir.SeriesContext", t.Arguments: "weir.Args", t.Log: "weir.Log",
		t.Logs: "weir.Logs", t.Line: "weir.Line", t.LineCopy: "weir.LineCopy", t.LineGroup: "weir.LineGroup",
		t.Definition: "weir.Definition", t.Argument: "weir.Argument", t.State: "weir.State",
	}
	for _, typ := range tests.Weir.Types {
		names[typ] = "weir.test." + title(typ.Name)
	}
	files := map[string]string{}
	file := func(name string, write func(*luaTypes)) {
		w := &luaTypes{names: names}
		w.line("---@meta %s", name)
		w.line("-- Made by 'weir types --lua'; it is only read by editors.")
		write(w)
		files[name+".lua"] = w.String()
	}
	file("weir", func(w *luaTypes) { w.weir(t, tests) })
	for _, m := range modules {
		file(m.Name, func(w *luaTypes) {
			for _, typ := range m.Types {
				w.class(typ, ":")
			}
			w.module(m, m.Name)
			w.line("\nreturn %s", m.Name)
		})
	}
	file("weir_tests", func(w *luaTypes) { w.tests(tests) })
	file("weir_scripts", func(w *luaTypes) { w.scripts(scripts) })
	return files
}

// luaTypes writes one file.
type luaTypes struct {
	strings.Builder
	names map[*scripting.ObjectType]string
}

func (w *luaTypes) line(format string, args ...any) { fmt.Fprintf(w, format+"\n", args...) }

// definitionClass returns the class of the argument of a function of weir.
func definitionClass(kind scripting.ComponentKind) string {
	return "weir." + strings.ToUpper(string(kind[:1])) + string(kind[1:])
}

// doc writes a doc as comment lines.
func (w *luaTypes) doc(text string) {
	if text != "" {
		for line := range strings.Lines(scripting.WrapManual(text, 0, 0)) {
			w.line("---%s", strings.TrimRight(line, "\n"))
		}
	}
}

// weir writes the module weir and all types of the table.
func (w *luaTypes) weir(t *Table, tests *scripting.TestAPI) {
	for _, typ := range t.Types() {
		if typ == t.Arguments {
			continue // its members are in weir_scripts.lua
		}
		sep := ":"
		if strings.HasPrefix(typ.Name, "ctx") {
			sep = "."
		}
		w.class(typ, sep)
	}
	for _, typ := range []*scripting.ObjectType{t.Definition, t.Argument, t.State} {
		w.class(typ, ":")
	}
	for _, kind := range scripting.ComponentKinds {
		w.line("\n---@class %s", definitionClass(kind))
		w.fields(t.Keys[kind])
	}
	w.module(t.Weir, "weir")
	w.module(tests.Weir, "weir.test")
	w.line("\nreturn weir")
}

// tests writes the globals of test files.
func (w *luaTypes) tests(tests *scripting.TestAPI) {
	for _, typ := range tests.Weir.Types {
		w.class(typ, ":")
	}
	for i := range tests.Globals {
		w.function("", &tests.Globals[i])
	}
	w.line("\n---@class weir.test.Assert\n---@overload fun(value: any, message?: any, ...: any): any\nassert = {}")
	for _, f := range tests.Assertions {
		for _, prefix := range []string{"", "is_", "is_not_", "has_", "has_no_"} {
			g := f
			if g.Name = prefix + f.Name; !luaKeywords[g.Name] {
				w.function("assert.", &g)
			}
		}
	}
	for _, m := range tests.Tables {
		w.module(m, m.Name)
	}
	w.line("\nweir = require \"weir\"")
}

// scripts writes the arguments and the state of scripts: a class for each, a
// context for hooks that name it, and a context with those of all scripts for
// hooks that do not.
func (w *luaTypes) scripts(scripts []Script) {
	all := map[string][]string{}
	docs := map[string]string{}
	for _, s := range scripts {
		if s.Def == nil {
			continue
		}
		w.line("\n---The arguments of %s.\n---@class weir.args.%s", s.Name, s.Name)
		for _, a := range s.Def.Args {
			typ := argType(a)
			w.line("---@field %s%s %s%s", a.Name, optionalMark(a), typ, space(oneLine(a.Doc)))
			for _, one := range typ.optional(optionalMark(a)) {
				if !slices.Contains(all[a.Name], one) {
					all[a.Name] = append(all[a.Name], one)
				}
			}
			docs[a.Name] = a.Doc
		}
		if len(s.Def.State) > 0 {
			w.line("\n---The state of %s.\n---@class weir.state.%s", s.Name, s.Name)
			for _, st := range s.Def.State {
				w.line("---@field %s %s%s", st.Name, w.name(host.StateType(st.Kind)), space(oneLine(st.Doc)))
			}
		}
		w.line("\n---ctx of the hooks of %s: write ---@param ctx weir.ctx.%s above one.\n---@class weir.ctx.%s : weir.Context\n---@field args weir.args.%s", s.Name, s.Name, s.Name, s.Name)
		if len(s.Def.State) > 0 {
			w.line("---@field state weir.state.%s", s.Name)
		}
	}
	w.line("\n---The arguments of the block. Of a hook that does not say which ctx it has: those of\n---all scripts.\n---@class weir.Args")
	for _, name := range sorted(all) {
		w.line("---@field %s %s%s", name, strings.Join(all[name], "|"), space(oneLine(docs[name])))
	}
}

// argTypeName is the name of a type in LuaCATS.
type argTypeName string

// optional returns the type, or if mark is set, also nil.
func (t argTypeName) optional(mark string) []string {
	if mark != "" {
		return []string{string(t), "nil"}
	}
	return []string{string(t)}
}

func optionalMark(a *scripting.Arg) string {
	if a.Optional {
		return "?"
	}
	return ""
}

// argType returns the type of an argument in ctx.args.
func argType(a *scripting.Arg) argTypeName {
	switch a.Kind {
	case scripting.ArgString:
		return "string"
	case scripting.ArgInt, scripting.ArgSize:
		return "integer"
	case scripting.ArgNumber, scripting.ArgDuration:
		return "number"
	case scripting.ArgBool:
		return "boolean"
	case scripting.ArgEnum:
		q := make([]string, len(a.Values))
		for i, v := range a.Values {
			q[i] = fmt.Sprintf("%q", v)
		}
		return argTypeName("(" + strings.Join(q, "|") + ")")
	case scripting.ArgList:
		return argType(a.Of) + "[]"
	case scripting.ArgMap:
		return "table<string, " + argType(a.Of) + ">"
	case scripting.ArgTargets:
		return "table<string, string>[]"
	case scripting.ArgBlock:
		var fields []string
		for _, f := range a.Fields {
			fields = append(fields, f.Name+optionalMark(f)+": "+string(argType(f)))
		}
		t := argTypeName("{ " + strings.Join(fields, ", ") + " }")
		if a.Repeated {
			t += "[]"
		}
		return t
	case scripting.ArgRegexp:
		return "re.Pattern"
	}
	return "userdata" // a secret
}

// class writes a type with its fields and methods.
func (w *luaTypes) class(t *scripting.ObjectType, sep string) {
	name := w.name(t)
	w.line("")
	w.doc(t.Doc)
	w.line("---@class %s", name)
	if t.Index != nil {
		element := "any"
		if t.Element != nil {
			element = w.name(t.Element)
		}
		w.line("---@field [integer] %s\n---@operator len: integer", element)
	}
	switch {
	case name == "weir.Labels" || name == "weir.Metadata":
		w.line("---@field [string] string") // without nil, which would be inconvenient
	case strings.HasPrefix(t.Name, "ctx.") && len(t.Fields)+len(t.Methods) == 0: // such as ctx.env
		w.line("---@field [string] any")
	}
	w.fields(t.Fields)
	local := strings.ReplaceAll(name, ".", "_")
	w.line("local %s = {}", local)
	for i := range t.Methods {
		w.function(local+sep, &t.Methods[i])
	}
}

func (w *luaTypes) fields(ps []scripting.Param) {
	for _, p := range ps {
		name := p.Name
		if p.Optional {
			name += "?"
		}
		w.line("---@field %s %s%s", name, w.param(p), space(oneLine(p.Doc)))
	}
}

// module writes a table of functions.
func (w *luaTypes) module(m *scripting.Module, name string) {
	local := ""
	if !strings.Contains(name, ".") {
		local = "local "
	}
	w.line("")
	w.doc(m.Doc)
	if name == "fixtures" {
		local = ""
	}
	w.line("---@class %s", "weir.lib."+name[strings.LastIndexByte(name, '.')+1:])
	for _, c := range m.Consts {
		kind := "any"
		if _, ok := c.Value.(string); ok {
			kind = "string"
		}
		w.line("---@field %s %s%s", c.Name, kind, space(oneLine(c.Doc)))
	}
	w.line("%s%s = {}", local, name)
	for i := range m.Funcs {
		w.function(name+".", &m.Funcs[i])
	}
	for _, part := range m.Tables {
		w.module(part, name+"."+part.Name)
	}
}

// function writes one function. prefix is written before its name.
func (w *luaTypes) function(prefix string, f *scripting.Function) {
	w.line("")
	w.doc(f.Doc)
	var names []string
	for _, p := range f.Params {
		name := luaName(p)
		names = append(names, name)
		typ := w.param(p)
		if kind := scripting.ComponentKind(f.Name); prefix == "weir." && slices.Contains(scripting.ComponentKinds, kind) {
			typ = definitionClass(kind)
		}
		if p.Optional {
			name += "?"
		}
		w.line("---@param %s %s%s", name, typ, space(oneLine(p.Doc)))
	}
	w.results(f.Result)
	w.line("function %s%s(%s) end", prefix, f.Name, strings.Join(names, ", "))
}

func (w *luaTypes) results(r scripting.Result) {
	if r.Kind == scripting.KindAny && r.Doc == "" && !r.Fails {
		return
	}
	mark := ""
	if (r.Optional || r.Fails) && r.Kind != scripting.KindAny {
		mark = "?"
	}
	w.line("---@return %s%s%s", w.result(r), mark, space("# "+oneLine(r.Doc)))
	if r.Fails {
		w.line("---@return string? err")
	}
}

func (w *luaTypes) result(r scripting.Result) string {
	if r.Kind != scripting.KindSequence {
		return w.param(scripting.Param{Kind: r.Kind, Type: r.Type, Of: r.Of, Fields: r.Fields})
	}
	var yields []string
	for i, y := range r.Yields {
		typ := w.param(y)
		if y.Rest { // the format has no variable number of results
			typ = strings.TrimSuffix(strings.Repeat("any, ", 8), ", ")
		}
		if i == 0 {
			typ += "?"
		}
		yields = append(yields, typ)
	}
	if len(yields) == 0 {
		return "fun(): any"
	}
	return "(fun(): " + strings.Join(yields, ", ") + ")"
}

// param returns the type of a parameter or field.
func (w *luaTypes) param(p scripting.Param) string {
	s := w.kind(p)
	for _, o := range p.Or {
		s += "|" + w.param(o)
	}
	return s
}

func (w *luaTypes) kind(p scripting.Param) string {
	switch p.Kind {
	case scripting.KindBool:
		return "boolean"
	case scripting.KindInt:
		return "integer"
	case scripting.KindNumber:
		return "number"
	case scripting.KindString:
		return "string"
	case scripting.KindObject:
		if p.Type != nil {
			return w.name(p.Type)
		}
		return "userdata"
	case scripting.KindList:
		if p.Of == nil {
			return "any[]"
		}
		return bracket(w.param(*p.Of)) + "[]"
	case scripting.KindMap:
		switch {
		case p.Fields != nil:
			var fields []string
			for _, f := range p.Fields {
				name := f.Name
				if f.Optional || f.Kind == scripting.KindAny {
					name += "?"
				}
				fields = append(fields, name+": "+w.param(f))
			}
			return "{ " + strings.Join(fields, ", ") + " }"
		case p.Of != nil:
			return "table<string, " + w.param(*p.Of) + ">"
		}
		return "table<string, any>"
	case scripting.KindFunction:
		return w.signature(p.Call)
	}
	return "any"
}

func (w *luaTypes) signature(f *scripting.Function) string {
	if f == nil {
		return "function"
	}
	var params []string
	for _, p := range f.Params {
		params = append(params, luaName(p)+": "+w.param(p))
	}
	s := "fun(" + strings.Join(params, ", ") + ")"
	if f.Result.Kind == scripting.KindAny && f.Result.Type == nil {
		return "(" + s + ")"
	}
	s += ": " + w.result(f.Result)
	if f.Result.Optional {
		s += "?"
	}
	return "(" + s + ")"
}

// name returns the class of a type.
func (w *luaTypes) name(t *scripting.ObjectType) string {
	if n, ok := w.names[t]; ok {
		return n
	}
	if owner, last, ok := strings.Cut(t.Name, "."); ok {
		if owner == "ctx" {
			return "weir.Context." + title(last)
		}
		return t.Name
	}
	return "weir." + title(t.Name)
}

func title(s string) string {
	var b strings.Builder
	for _, word := range strings.FieldsFunc(s, func(r rune) bool { return r == ' ' || r == '_' || r == '.' }) {
		b.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return b.String()
}

func bracket(s string) string {
	if strings.ContainsAny(s, "|") {
		return "(" + s + ")"
	}
	return s
}

// luaKeywords cannot be names.
var luaKeywords = map[string]bool{
	"and": true, "break": true, "do": true, "else": true, "elseif": true, "end": true, "false": true, "for": true,
	"function": true, "if": true, "in": true, "local": true, "nil": true, "not": true, "or": true, "repeat": true,
	"return": true, "then": true, "true": true, "until": true, "while": true, "goto": true,
}

func luaName(p scripting.Param) string {
	switch {
	case p.Rest:
		return "..."
	case luaKeywords[p.Name]:
		return p.Name + "_"
	}
	return p.Name
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

func space(s string) string {
	if s = strings.TrimSpace(s); s == "" || s == "#" {
		return ""
	}
	return " " + s
}

func sorted[V any](m map[string]V) []string {
	names := make([]string, 0, len(m))
	for n := range m {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}
