package api

import (
	"strings"

	"github.com/weir-run/weir/scripting"
)

// tsShape contains the types of a definition that its hooks use.
const tsShape = "{ args: NoInfer<A>; state: NoInfer<S>; outputs: NoInfer<O>; needs: NoInfer<N>; exports: NoInfer<X> }"

// tsKeys are the keys of definitions from which types are inferred, and keys
// with special types.
var tsKeys = map[string]string{
	"args":    "args?: A;",
	"state":   "state?: S;",
	"outputs": "outputs?: O;",
	"needs":   "needs?: N;",
	"exports": "exports?: X;",
	"http":    `http?: { [route: string]: { hook(req: HttpRequest, ctx: Context<` + tsShape + `>): Answer | Promise<Answer> }["hook"] };`,
	"sends":   `sends?: readonly ("metrics" | "logs")[];`,
	"accepts": "accepts?: C;",
	"send":    "send?(batch: Accepted<C>, ctx: Context<" + tsShape + ">): Waiting;",
}

// define writes a kind of component: its definition, and the function that
// creates it.
func (w *tsTypes) define(f *scripting.Function) {
	name := title(f.Name)
	params, given := "A extends Arguments = {}, S extends States = {}, const O extends readonly string[] = [], const N extends Needs = {}, X extends Arguments = {}", "A, S, O, N, X"
	if f.Name == string(scripting.Sink) {
		params, given = params+`, const C extends readonly ("metrics" | "logs")[] = ["metrics"]`, given+", C"
	}
	keys := f.Params[0].Fields
	w.line("")
	w.doc(f.Params[0].Doc)
	w.line("export interface %sDefinition<%s> {", name, strings.ReplaceAll(params, "const ", ""))
	w.indented(func() {
		for _, k := range keys {
			w.doc(k.Doc)
			w.line(w.key(k))
		}
	})
	w.line("}\n")
	w.doc(f.Doc, w.tags(f)...)
	w.line("export function define%s<%s>(definition: %sDefinition<%s>): Definition;", name, params, name, given)
}

// key returns a key of a definition. Hooks are methods, so that functions that
// accept any ctx are valid.
func (w *tsTypes) key(k scripting.Param) string {
	if special, ok := tsKeys[k.Name]; ok {
		return special
	}
	name := scripting.CamelCase(k.Name)
	switch {
	case k.Kind == scripting.KindFunction:
		return name + mark(k) + w.hook(k.Call) + ";"
	case k.Kind == scripting.KindMap && k.Of != nil && k.Of.Kind == scripting.KindFunction:
		return name + mark(k) + ": { [key: string]: { hook" + w.hook(k.Of.Call) + ` }["hook"] };`
	case k.Kind == scripting.KindList && k.Of != nil:
		return name + mark(k) + ": readonly " + bracket(w.param(*k.Of)) + "[];"
	}
	return name + mark(k) + ": " + w.param(k) + ";"
}

// hook returns the type of a hook, without its name.
func (w *tsTypes) hook(f *scripting.Function) string {
	var ps []string
	waits := true
	for i, p := range f.Params {
		typ := w.param(p)
		switch p.Type {
		case w.table.Context:
			typ = "Context<" + tsShape + ">"
		case w.table.Remembered:
			typ, waits = "SeriesContext<"+tsShape+">", false
		}
		if p.Kind == scripting.KindMap && p.Fields == nil && p.Of == nil {
			typ = "any" // the old state
		}
		ps = append(ps, jsName(p, i)+": "+typ)
	}
	result := "void"
	if f.Result.Kind != scripting.KindAny || f.Result.Doc != "" {
		result = w.result(&scripting.Function{Result: f.Result})
		if f.Result.Optional {
			result += " | void"
		}
		result += " | Promise<" + result + ">"
	} else if waits {
		result = "Waiting"
	}
	return "(" + strings.Join(ps, ", ") + "): " + result
}

// shapes writes the interfaces of tables that have no type of their own.
func (w *tsTypes) shapes() {
	t := w.table
	w.interfaceOf("EmittedMetric", "A metric record for ctx.emit.", t.Emitted())
	w.interfaceOf("EmittedLine", "A log record for ctx.emit.", t.EmittedLine())
	for _, f := range t.Record.Fields {
		switch f.Name {
		case "histogram":
			w.interfaceOf("Histogram", f.Doc, f.Fields)
		case "exemplars":
			w.interfaceOf("Exemplar", f.Doc, f.Of.Fields)
		}
	}
	for _, k := range t.Weir.Funcs[0].Params[0].Fields {
		if k.Name == "needs" {
			w.line("")
			w.doc(k.Doc)
			w.line("export interface Needs {")
			w.indented(func() {
				for _, n := range k.Fields {
					w.doc(n.Doc)
					or := ""
					if len(n.Or) > 0 {
						or = " | true"
					}
					w.line("%s?: readonly string[]%s;", n.Name, or)
				}
			})
			w.line("}")
		}
	}
	w.line("\n/** Members of ctx that require an entry in needs. */\nexport interface Outside {")
	w.indented(func() {
		for i := range t.Context.Methods {
			if f := &t.Context.Methods[i]; tsOutside[f.Name] {
				w.function("Outside", "", f)
			}
		}
	})
	w.line("}")
}

// tsOutside are the functions of ctx that exist only if needs contains them.
var tsOutside = map[string]bool{"read": true, "exec": true}

func (w *tsTypes) interfaceOf(name, doc string, fields []scripting.Param) {
	w.line("")
	w.doc(doc)
	w.line("export interface %s {", name)
	w.indented(func() { w.options(fields) })
	w.line("}")
}
