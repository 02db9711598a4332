package api

import "github.com/weir-run/weir/scripting"

// weir defines the module weir, and the keys of a definition.
func (t *Table) weir() {
	t.keys()
	t.Weir = &scripting.Module{
		Name:   "weir",
		Doc:    "Kinds of components, and the types of their arguments.",
		Consts: []scripting.Const{{Name: "null", Doc: "The null of JSON. It is not the same as a missing value.", Value: scripting.Null}},
		Funcs:  t.kinds(),
		Tables: []*scripting.Module{t.arg(), t.state()},
		Types:  []*scripting.ObjectType{t.Definition, t.Argument, t.State},
	}
}

func hook(name, doc string, params ...scripting.Param) scripting.Param {
	return optional(callback(name, doc, scripting.Result{}, params...))
}

func value(name, doc string) scripting.Param {
	return scripting.Param{Name: name, Kind: scripting.KindAny, Doc: doc}
}

func entries(name, doc string, of scripting.Param) scripting.Param {
	return scripting.Param{Name: name, Kind: scripting.KindMap, Of: &of, Doc: doc, Optional: true}
}

func listOf(name, doc string, of scripting.Param) scripting.Param {
	return scripting.Param{Name: name, Kind: scripting.KindList, Of: &of, Doc: doc, Optional: true}
}

func need(name, doc string, whole bool) scripting.Param {
	p := listOf(name, doc, text("", ""))
	if whole {
		p.Or = []scripting.Param{flag("", "")}
	}
	return p
}

// argDocs describe the types of arguments.
var argDocs = map[scripting.ArgKind]string{
	scripting.ArgString:   "A string.",
	scripting.ArgInt:      "An integer.",
	scripting.ArgNumber:   "A number.",
	scripting.ArgBool:     "true or false.",
	scripting.ArgDuration: `A duration: "30s" in the block, a number of seconds in the script.`,
	scripting.ArgSize:     `A size: "8MiB" in the block, a number of bytes in the script.`,
	scripting.ArgList:     "A list of elements of one type.",
	scripting.ArgMap:      "A map of strings to values of one type.",
	scripting.ArgEnum:     "One of several strings.",
	scripting.ArgSecret:   "A secret: it prints as <secret>, and only host calls can use it.",
	scripting.ArgTargets:  "Targets in the format of discovery components: a list of maps of labels.",
	scripting.ArgRegexp:   "A regular expression (RE2), compiled when the config is read.",
	scripting.ArgBlock:    "A block inside the block, with its own arguments.",
}

// arg defines weir.arg.
func (t *Table) arg() *scripting.Module {
	option := map[string]scripting.Param{
		"default":  value("default", "The value if the block does not set the argument."),
		"optional": optional(flag("optional", "Whether the argument may be omitted; it is nil then.")),
		"doc":      optional(text("doc", "A description for the manual.")),
		"of":       optional(object("of", t.Argument, "The type of the elements; string by default.")),
		"values":   {Name: "values", Kind: scripting.KindList, Of: &scripting.Param{Kind: scripting.KindString}, Doc: "The allowed strings."},
		"fields":   {Name: "fields", Kind: scripting.KindMap, Of: &scripting.Param{Kind: scripting.KindObject, Type: t.Argument}, Doc: "The arguments of the block, by name."},
		"repeated": optional(flag("repeated", "Whether the block may occur several times; the script receives a list.")),
	}
	m := &scripting.Module{Name: "arg", Doc: "Types of arguments. An argument without default or optional is required."}
	for _, kind := range scripting.ArgKinds {
		options := scripting.Param{Name: "options", Kind: scripting.KindMap, Doc: "Options.", Optional: kind != scripting.ArgEnum && kind != scripting.ArgBlock}
		for _, name := range scripting.ArgOptions(kind) {
			options.Fields = append(options.Fields, option[name])
		}
		m.Funcs = append(m.Funcs, scripting.Function{
			Name: string(kind), Doc: argDocs[kind], Params: []scripting.Param{options},
			Result: scripting.Result{Kind: scripting.KindObject, Type: t.Argument, Doc: "The type."},
			Uses:   []scripting.Use{argUse(kind)},
		})
	}
	return m
}

// argUse returns an example of a type of argument: the script converts the
// argument to a label.
func argUse(kind scripting.ArgKind) scripting.Use {
	of := map[scripting.ArgKind]struct{ options, jsOptions, arg, read, jsRead, label string }{
		scripting.ArgString:   {`{ default = "eu" }`, `{ default: "eu" }`, ``, `ctx.args.x`, `ctx.args.x`, `eu`},
		scripting.ArgInt:      {`{ default = 8080 }`, `{ default: 8080 }`, `x = 9090`, `ctx.args.x + 1`, `String(ctx.args.x + 1)`, `9091`},
		scripting.ArgNumber:   {`{ default = 0.5 }`, `{ default: 0.5 }`, ``, `ctx.args.x * 2`, `String(ctx.args.x * 2)`, `1`},
		scripting.ArgBool:     {`{ optional = true }`, `{ optional: true }`, ``, `ctx.args.x == nil`, `String(ctx.args.x === undefined)`, `true`},
		scripting.ArgDuration: {`{ default = "1m30s" }`, `{ default: "1m30s" }`, ``, `ctx.args.x`, `String(ctx.args.x)`, `90`},
		scripting.ArgSize:     {`{ default = "1KiB" }`, `{ default: "1KiB" }`, ``, `ctx.args.x`, `String(ctx.args.x)`, `1024`},
		scripting.ArgList:     {`{ of = weir.arg.int {}, default = {} }`, `{ of: arg.int(), default: [] }`, `x = [1, 2]`, `ctx.args.x[2]`, `String(ctx.args.x[1])`, `2`},
		scripting.ArgMap:      {`{ of = weir.arg.string {}, default = {} }`, `{ of: arg.string(), default: {} }`, `x = { a = "b" }`, `ctx.args.x.a`, `ctx.args.x.a`, `b`},
		scripting.ArgEnum:     {`{ values = { "low", "high" }, doc = "How much." }`, `{ values: ["low", "high"], doc: "How much." }`, `x = "high"`, `ctx.args.x`, `ctx.args.x`, `high`},
		scripting.ArgSecret:   {`{}`, ``, `x = "s3cret"`, `tostring(ctx.args.x)`, `String(ctx.args.x)`, `<secret>`},
		scripting.ArgTargets:  {`{ default = {} }`, `{ default: [] }`, `x = [{ __address__ = "h:1" }]`, `ctx.args.x[1].__address__`, `ctx.args.x[0].__address__`, `h:1`},
		scripting.ArgRegexp:   {`{ default = "^a" }`, `{ default: "^a" }`, ``, `ctx.args.x:match("abc")`, `String(ctx.args.x.match("abc"))`, `true`},
		scripting.ArgBlock:    {`{ fields = { name = weir.arg.string {} }, repeated = true }`, `{ fields: { name: arg.string() }, repeated: true }`, "x {\n  name = \"n\"\n}", `ctx.args.x[1].name`, `ctx.args.x[0].name`, `n`},
	}[kind]
	return scripting.Use{
		Lua: "local weir = require \"weir\"\n\nreturn weir.transform {\n  args = { x = weir.arg." + string(kind) + " " + of.options + " },\n" +
			"  series = function(s, ctx) s.labels.x = " + of.read + " end,\n}",
		JS: "import { defineTransform, arg } from \"weir\";\n\nexport default defineTransform({\n  args: { x: arg." + string(kind) + "(" + of.jsOptions + ") },\n" +
			"  series(s, ctx) { s.labels.x = " + of.jsRead + "; },\n});",
		Args: of.arg, Input: "up 1\n", Output: "up{x=\"" + of.label + "\"} 1\n",
	}
}
