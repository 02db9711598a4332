package api

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weir-run/weir/scripting"
)

// TSTypes returns the file of types for TypeScript and editors of JavaScript,
// by name: the module weir and its submodules, and the globals of tests. The
// types of a script's arguments and state are inferred from its definition.
//
// Format:
// https://www.typescriptlang.org/docs/handbook/declaration-files/introduction.html
func TSTypes(modules []*scripting.Module, tests *scripting.TestAPI) map[string]string {
	t := Get()
	w := &tsTypes{table: t, homes: map[*scripting.ObjectType]string{}, names: map[*scripting.ObjectType]string{}}
	home := func(module string, types []*scripting.ObjectType) {
		for _, typ := range types {
			if _, ok := w.homes[typ]; !ok {
				w.homes[typ], w.names[typ] = module, t.tsName(typ)
			}
		}
	}
	home("weir", append(t.Types(), t.Definition, t.Argument, t.State))
	for _, m := range modules {
		home("weir/"+m.Name, m.Types)
	}
	if tests != nil {
		home("weir/test", tests.Weir.Types)
	}
	w.line("// Made by 'weir types --ts'; it is only read by editors and by tsc.")
	w.weir()
	for _, m := range modules {
		w.inModule("weir/"+m.Name, func() {
			w.objects(m.Types)
			w.exports(m)
		})
	}
	if tests != nil {
		w.tests(tests)
	}
	w.line("\n" + strings.TrimSpace(tsData))
	return map[string]string{TSFile: w.String()}
}

// TSFile is the name of the file of types.
const TSFile = "weir.d.ts"

// TSConfig returns the settings of tsc and editors, to be written as JSON into
// a tsconfig.json next to the scripts folder. Both paths are relative to it,
// with forward slashes.
//
// Format: https://www.typescriptlang.org/tsconfig/
func TSConfig(scripts, types string) any {
	return struct {
		Options any      `json:"compilerOptions"`
		Include []string `json:"include"`
	}{
		struct {
			Strict    bool                `json:"strict"`
			NoEmit    bool                `json:"noEmit"`
			Target    string              `json:"target"` // a version without BigInt literals
			Lib       []string            `json:"lib"`
			Module    string              `json:"module"`
			Resolve   string              `json:"moduleResolution"`
			TSNames   bool                `json:"allowImportingTsExtensions"`
			JSON      bool                `json:"resolveJsonModule"`
			AllowJS   bool                `json:"allowJs"`
			Isolated  bool                `json:"isolatedModules"` // each file is compiled separately
			Types     []string            `json:"types"`
			Libraries map[string][]string `json:"paths"`
		}{true, true, "es2019", []string{"es2023"}, "esnext", "bundler", true, true, true, true, []string{}, map[string][]string{"*": {"./" + scripts + "/lib/*"}}},
		[]string{scripts, types},
	}
}

// tsName returns the name of the interface of a type.
func (t *Table) tsName(typ *scripting.ObjectType) string {
	switch typ {
	case t.Record: // Record is a predefined type of TypeScript
		return "MetricRecord"
	case t.Copy:
		return "MetricCopy"
	case t.Logs:
		return "LogBatch"
	case t.Line:
		return "LogRecord"
	case t.LineCopy:
		return "LogCopy"
	case t.LineGroup:
		return "LogGroup"
	case t.Context:
		return "ContextBase"
	case t.Remembered:
		return "SeriesContext"
	case t.Argument:
		return "Argument"
	}
	name := typ.Name
	switch owner, last, _ := strings.Cut(name, "."); owner {
	case "re":
		name = last
	case "ctx":
		name = "context." + last
	}
	return title(name)
}

// tsTypes writes declarations.
type tsTypes struct {
	strings.Builder
	table *Table
	homes map[*scripting.ObjectType]string // the modules of types
	names map[*scripting.ObjectType]string
	here  string // the current module
	by    string // the indentation
}

func (w *tsTypes) line(format string, args ...any) {
	if len(args) > 0 {
		format = fmt.Sprintf(format, args...)
	}
	for _, l := range strings.Split(format, "\n") {
		if l != "" {
			l = w.by + l
		}
		w.WriteString(l + "\n")
	}
}

func (w *tsTypes) indented(write func()) {
	before := w.by
	w.by += "  "
	write()
	w.by = before
}

// inModule writes the declaration of a module.
func (w *tsTypes) inModule(name string, write func()) {
	w.line("\ndeclare module %q {", name)
	w.here = name
	w.indented(write)
	w.line("}")
}

// weir writes the module weir.
func (w *tsTypes) weir() {
	t := w.table
	w.inModule("weir", func() {
		w.line(strings.TrimSpace(tsPrelude))
		w.shapes()
		for _, typ := range append(t.Types(), t.State, t.Definition) {
			if typ != t.Arguments && typ.Name != "ctx.state" {
				w.object(typ)
			}
		}
		for i := range t.Weir.Funcs {
			w.define(&t.Weir.Funcs[i])
		}
		for _, part := range t.Weir.Tables {
			w.part(part)
		}
	})
}

// doc writes a comment with a doc and tags.
func (w *tsTypes) doc(text string, tags ...string) {
	var lines []string
	add := func(s string) {
		at := len(w.by) + 3
		for l := range strings.Lines(scripting.WrapManual(s, at, at)) {
			lines = append(lines, strings.TrimSpace(l))
		}
	}
	add(InJS(text))
	for _, tag := range tags {
		if strings.Contains(tag, "\n") { // an example
			lines = append(lines, strings.Split(tag, "\n")...)
			continue
		}
		add(tag)
	}
	for i, l := range lines {
		lines[i] = strings.TrimRight(strings.ReplaceAll(l, "*/", "*\u200b/"), " ")
	}
	switch len(lines) {
	case 0:
	case 1:
		w.line("/** " + lines[0] + " */")
	default:
		w.line("/**\n" + strings.ReplaceAll(" * "+strings.Join(lines, "\n * "), " * \n", " *\n") + "\n */")
	}
}

func (w *tsTypes) objects(types []*scripting.ObjectType) {
	for _, typ := range types {
		w.object(typ)
	}
}

// object writes a type with its fields and methods.
func (w *tsTypes) object(t *scripting.ObjectType) {
	name := w.names[t]
	if name == "" {
		name = w.table.tsName(t)
	}
	w.line("")
	w.doc(t.Doc)
	w.line("export interface %s%s {", name, tsGenerics[name])
	if w.here == "weir/test" { // it has its own Batch
		name = "test." + name
	}
	w.indented(func() {
		if extra := tsMembers[name]; extra != "" {
			w.line(extra)
		}
		if t.Index != nil {
			element := "any"
			if t.Element != nil {
				element = w.name(t.Element)
			}
			w.line("readonly length: number;\nreadonly [index: number]: %s;\n[Symbol.iterator](): IterableIterator<%s>;", element, element)
		}
		for _, f := range t.Fields {
			if special, ok := tsSpecial[name+"."+f.Name]; ok {
				if special != "" {
					w.doc(f.Doc)
					w.line(special)
				}
				continue
			}
			w.field(f)
		}
		for i := range t.Methods {
			if t != w.table.Context || !tsOutside[t.Methods[i].Name] {
				w.function(name, "", &t.Methods[i])
			}
		}
	})
	w.line("}")
}

// field writes a field. A field that is an object may also be set to a plain
// object.
func (w *tsTypes) field(p scripting.Param) {
	name, typ := scripting.CamelCase(p.Name), w.param(p)
	w.doc(p.Doc)
	switch {
	case p.Set && p.Kind == scripting.KindObject:
		w.line("get %s(): %s;", name, typ)
		w.line("set %s(value: %s | LabelValues);", name, typ)
	case p.Set:
		w.line("%s: %s;", name, typ)
	default:
		w.line("readonly %s: %s;", name, typ)
	}
}

// options writes the keys of a table as members.
func (w *tsTypes) options(ps []scripting.Param) {
	for _, p := range ps {
		w.doc(p.Doc)
		w.line("%s%s: %s;", scripting.CamelCase(p.Name), mark(p), w.param(p))
	}
}

// exports writes the members of a module, as named exports and as its default
// export.
func (w *tsTypes) exports(m *scripting.Module) {
	var names []string
	for _, c := range m.Consts {
		name := scripting.CamelCase(c.Name)
		w.line("")
		w.doc(c.Doc)
		if c.Value == scripting.Null {
			w.line("const _%s: null;\nexport { _%s as %s };", name, name, name)
			names = append(names, name+": null")
			continue
		}
		w.line("export const %s: %s;", name, tsConst(c.Value))
		names = append(names, fmt.Sprintf("%s: typeof %s", name, name))
	}
	for i := range m.Funcs {
		f := &m.Funcs[i]
		name := scripting.CamelCase(f.Name)
		w.line("")
		if jsKeywords[name] {
			w.function("", "function _", f)
			w.line("export { _%s as %s };", name, name)
			names = append(names, fmt.Sprintf("%s: typeof _%s", name, name))
			continue
		}
		w.function(m.Name, "export function ", f)
		names = append(names, fmt.Sprintf("%s: typeof %s", name, name))
	}
	w.line("\nconst all: { " + strings.Join(names, "; ") + " };\nexport default all;")
}

func tsConst(v scripting.Value) string {
	switch v.(type) {
	case string:
		return "string"
	case float64, int64:
		return "number"
	}
	return "any"
}

// part writes weir.arg or weir.state, whose functions are generic.
func (w *tsTypes) part(m *scripting.Module) {
	w.line("")
	w.doc(m.Doc)
	w.line("export const %s: {", m.Name)
	w.indented(func() {
		for i := range m.Funcs {
			f := &m.Funcs[i]
			w.doc(f.Doc, w.tags(f)...)
			of, ok := tsParts[m.Name+"."+f.Name]
			if !ok {
				panic("BUG: there is no type of weir." + m.Name + "." + f.Name)
			}
			for _, sig := range of.signatures {
				more := sig.more
				taken := map[string]bool{}
				for _, field := range strings.Split(more, "; ") {
					taken[strings.TrimRight(strings.SplitN(field, ":", 2)[0], "?")] = true
				}
				var fields []string
				for _, p := range f.Params[0].Fields {
					if name := scripting.CamelCase(p.Name); !taken[name] {
						fields = append(fields, fmt.Sprintf("%s%s: %s", name, mark(p), w.param(p)))
					}
				}
				if more != "" {
					fields = append([]string{more}, fields...)
				}
				q := mark(f.Params[0])
				if sig.required {
					q = ""
				}
				w.line("%s%s(options%s: { %s }): %s;", scripting.CamelCase(f.Name), sig.generics, q, strings.Join(fields, "; "), sig.result)
			}
		}
	})
	w.line("};")
}

// function writes a function or method. before is written before its name.
func (w *tsTypes) function(owner, before string, f *scripting.Function) {
	name := scripting.CamelCase(f.Name)
	w.doc(f.Doc, w.tags(f)...)
	if special, ok := tsSpecial[owner+"."+f.Name]; ok {
		for _, sig := range strings.Split(special, "\n") {
			w.line(before + name + sig)
		}
		return
	}
	w.line("%s%s%s: %s;", before, name, w.params(f), w.result(f))
}

// params returns the parameters of a declaration, in parentheses.
func (w *tsTypes) params(f *scripting.Function) string {
	var ps []string
	for i, p := range f.Params {
		if p.Rest {
			ps = append(ps, fmt.Sprintf("...%s: %s[]", jsName(p, i), bracket(w.param(p))))
			continue
		}
		q := ""
		if p.Optional {
			q = "?"
		}
		// A parameter before a required one cannot be omitted.
		if q != "" && slices.ContainsFunc(f.Params[i+1:], func(p scripting.Param) bool { return !p.Optional && !p.Rest }) {
			ps = append(ps, jsName(p, i)+": "+w.param(p)+" | null | undefined")
			continue
		}
		ps = append(ps, jsName(p, i)+q+": "+w.param(p))
	}
	return "(" + strings.Join(ps, ", ") + ")"
}

// result returns the result type of a function.
func (w *tsTypes) result(f *scripting.Function) string {
	r := f.Result
	typ := "void"
	switch {
	case r.Kind == scripting.KindAny && (r.Doc == "" || strings.HasPrefix(r.Doc, "Nothing")):
	case r.Kind == scripting.KindSequence:
		typ = "IterableIterator<" + w.yields(r.Yields) + ">"
	default:
		typ = w.kind(scripting.Param{Kind: r.Kind, Type: r.Type, Of: r.Of, Fields: r.Fields})
		if r.Optional && typ != "any" {
			typ += " | undefined"
		}
	}
	if f.Waits {
		return "Promise<" + typ + ">"
	}
	return typ
}

func (w *tsTypes) yields(ps []scripting.Param) string {
	if len(ps) == 0 {
		return "any"
	}
	if len(ps) == 1 {
		return w.param(ps[0])
	}
	var parts []string
	for i, p := range ps {
		if p.Rest {
			parts = append(parts, "..."+jsName(p, i)+": any[]")
		} else {
			parts = append(parts, jsName(p, i)+": "+w.param(p))
		}
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// tags returns the tags of a comment: parameters, the result and errors, and
// the examples.
func (w *tsTypes) tags(f *scripting.Function) []string {
	var tags []string
	for i, p := range f.Params {
		if p.Doc != "" {
			tags = append(tags, "@param "+jsName(p, i)+" - "+InJS(p.Doc))
		}
	}
	if r := f.Result; r.Doc != "" && !strings.HasPrefix(r.Doc, "Nothing") {
		tags = append(tags, "@returns "+InJS(r.Doc))
	}
	if f.Result.Fails {
		tags = append(tags, "@throws when it cannot.")
	}
	for _, u := range f.Uses {
		if u.JS != "" {
			tags = append(tags, "@example\n```js\n"+u.JS+"\n```")
			break
		}
	}
	return tags
}

// mark returns the ? of an optional key.
func mark(p scripting.Param) string {
	if p.Optional || p.Kind == scripting.KindAny && !p.Rest {
		return "?"
	}
	return ""
}

// param returns the type of a parameter or field.
func (w *tsTypes) param(p scripting.Param) string {
	s := w.kind(p)
	for _, o := range p.Or {
		if one := w.param(o); !slices.Contains(strings.Split(s, " | "), one) {
			s += " | " + one
		}
	}
	return s
}

func (w *tsTypes) kind(p scripting.Param) string {
	switch p.Kind {
	case scripting.KindBool:
		return "boolean"
	case scripting.KindInt, scripting.KindNumber:
		return "number"
	case scripting.KindString:
		return "string"
	case scripting.KindObject:
		if p.Type == nil { // a pattern
			return w.reference("weir/re", "Pattern")
		}
		return w.name(p.Type)
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
				fields = append(fields, scripting.CamelCase(f.Name)+mark(f)+": "+w.param(f))
			}
			return "{ " + strings.Join(fields, "; ") + " }"
		case p.Of != nil:
			return "{ [key: string]: " + w.param(*p.Of) + " }"
		}
		return "{ [key: string]: any }"
	case scripting.KindFunction:
		return w.callback(p.Call)
	case scripting.KindSequence:
		return "Iterable<any>"
	}
	return "any"
}

// callback returns the type of a function that a script passes.
func (w *tsTypes) callback(f *scripting.Function) string {
	if f == nil {
		return "((...args: any[]) => any)"
	}
	result := "void"
	if f.Result.Kind != scripting.KindAny || f.Result.Type != nil {
		result = w.kind(scripting.Param{Kind: f.Result.Kind, Type: f.Result.Type, Of: f.Result.Of, Fields: f.Result.Fields})
		if f.Result.Optional {
			result += " | null | undefined | void"
		}
	} else if f.Result.Optional {
		result = "any"
	}
	return "(" + w.params(f) + " => " + result + ")"
}

// name returns the name of a type's interface, as seen from the current module.
func (w *tsTypes) name(t *scripting.ObjectType) string {
	if t == w.table.Context {
		return "Context"
	}
	if w.names[t] == "" {
		return w.table.tsName(t)
	}
	return w.reference(w.homes[t], w.names[t])
}

func (w *tsTypes) reference(module, name string) string {
	if module == w.here {
		return name
	}
	return fmt.Sprintf("import(%q).%s", module, name)
}

// jsName returns the name of a parameter.
func jsName(p scripting.Param, i int) string {
	name := strings.TrimSuffix(p.Name, "…")
	switch {
	case name == "" && p.Rest:
		return "values"
	case name == "":
		return fmt.Sprintf("arg%d", i)
	}
	if name = scripting.CamelCase(name); jsKeywords[name] {
		name += "_"
	}
	return name
}

// jsKeywords cannot be names.
var jsKeywords = map[string]bool{
	"break": true, "case": true, "catch": true, "class": true, "const": true, "continue": true, "default": true, "delete": true, "do": true,
	"else": true, "enum": true, "export": true, "extends": true, "false": true, "finally": true, "for": true, "function": true, "if": true,
	"import": true, "in": true, "instanceof": true, "new": true, "null": true, "return": true, "super": true, "switch": true, "this": true,
	"throw": true, "true": true, "try": true, "typeof": true, "var": true, "void": true, "while": true, "with": true, "yield": true, "let": true,
	"static": true, "await": true,
}
