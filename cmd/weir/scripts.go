package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir/engine/expr"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/api"
	"github.com/weir-run/weir/scripting/js"
	"github.com/weir-run/weir/scripting/lua"
	"github.com/weir-run/weir/stdlib"
)

// scriptsTopic is what `weir help scripts` prints: how a script is written, with
// what the table of the API says of the names in it.
// testdata/script/help_scripts.txtar runs what it says.
func scriptsTopic() *cobra.Command {
	return &cobra.Command{
		Use:   "scripts",
		Short: "How a script is written, and what it may use",
		Long:  guide(),
	}
}

// guide is the text of the topic.
func guide() string {
	book := book()
	var b strings.Builder
	b.WriteString(`A file scripts/<namespace>/<name>.lua, .js or .ts beside the config is the block
<namespace>.<name>. Files whose name begins with _, tests (<name>_test.lua,
<name>.test.js, <name>.test.ts) and what is below lib are none; lib/x.lua is required
as "x", and so is lib/x.ts imported; a script in JavaScript or TypeScript may import
files beside it as well ("./x"). Files of data (.json, .yaml) are required and imported
with their endings. The file's first comment is its manual, and examples in it are run
by 'weir test'.

It ends with a definition: of a transform, a source or a sink. In Lua

  return weir.transform {
    args    = { … },
    series  = function(s, ctx) … end,
    metrics = function(batch, ctx) … end,
  }

and in TypeScript or JavaScript

  import { defineTransform, arg } from "weir";
  import json from "weir/json";

  export default defineTransform({
    args: { … },
    series(s, ctx) { … },
    async metrics(batch, ctx) { … },
  });

What follows is in the names of Lua. JavaScript has them in camelCase (drop_where is
dropWhere), calls everything with a dot, counts from 0, throws where Lua returns nil
and an error, has undefined for nil and awaits what waits, such as ctx.http and
ctx.sleep. What you name yourself, such as arguments and labels, stays as it is.

'weir doc NAME' has parameters, results and examples of it in both languages, such as
'weir doc batch.filter' or 'weir doc --lang=js dropWhere'; 'weir check' finds names
that are misspelt, and 'weir types' tells editors and tsc.

What a definition may have:
`)
	for _, k := range api.Get().Keys[scripting.Transform] {
		scripting.WriteManual(&b, k.Name, k.Doc)
	}
	b.WriteString(`
weir.source { … } makes data, or exports, of what it asks for. Of these it has no
series, metrics, stream and logs, and
`)
	for _, k := range api.Get().Keys[scripting.Source] {
		if !slices.Contains(scripting.DefinitionKeys(scripting.Transform), k.Name) || k.Name == "sends" {
			scripting.WriteManual(&b, k.Name, k.Doc)
		}
	}
	b.WriteString(`
weir.sink { … } delivers what it is sent to something that is not weir, out of a
journal on disk that outlives a killed process. Of these it has no series, metrics,
stream, logs, sends and outputs, and
`)
	for _, k := range api.Get().Keys[scripting.Sink] {
		if !slices.Contains(scripting.DefinitionKeys(scripting.Transform), k.Name) {
			scripting.WriteManual(&b, k.Name, k.Doc)
		}
	}
	b.WriteString(`
Locals outside of functions are a VM's own, there are several; globals are
read-only. Batches and records end with their hook; a copy may be kept. A label
that is not there is nil, and nil removes one.

Types of arguments, each with { default =, optional =, doc = } and what 'weir doc'
says. One without default and optional is required.
`)
	b.WriteString(book.Summary("weir.arg"))
	b.WriteString(`
The block of every script may have script { … }, with what is the host's affair:
concurrency, on_error, on_reload, limits, quarantine and allow, which grants what the
script needs. 'weir components http.paths' has them all.
`)
	for _, area := range []struct{ name, title string }{
		{"weir.state", "Kinds of state, which is ctx.state.NAME in the hooks:"},
		{"batch", "A batch has, cheapest first, where an expression of nil stands for all records:"},
		{"record", "A record has:"},
		{"series", "A series has:"},
		{"logs", "A batch of log lines has:"},
		{"line", "A log record has:"},
		{"stream", "A stream has:"},
		{"ctx", "The context has:"},
	} {
		b.WriteString("\n" + area.title + "\n" + book.Summary(area.name))
	}
	b.WriteString(`
An expression is a string in the language of the components expr.*, which
'weir help expr' describes:
  [[ name startsWith "go_" && labels.job in args.keep || value > 10 ]]
It can use name, labels (a missing one is ""), value, type, time and args; for a log
line, line, labels, meta, time and args. Parts that use labels only are evaluated
once for each series or stream.

Modules, by require; their functions return value, error. Lua's own math, string and
table are there, as are pcall, error, select, pairs and the like; io, os and load are
not ('weir help lua'). In JavaScript they are imported, from "weir/json" and its like,
and throw ('weir help js').
`)
	for _, m := range stdlib.Modules() {
		scripting.WriteManual(&b, m.Name, m.Doc)
	}
	return strings.TrimRight(b.String(), "\n")
}

// exprInScripts is the last section of 'weir help expr'.
const exprInScripts = `
IN SCRIPTS

  Lua               batch:drop_where, keep_where   true or false
                    batch:scale, set_value         which samples: true or false
                    batch:set_value                the value: a number
  JavaScript        batch.dropWhere, keepWhere, scale, setValue

In Lua, write an expression between double brackets, in JavaScript between backquotes:

  batch:drop_where [[ name startsWith "go_" && !(labels.job in args.keep) ]]
  batch.dropWhere(` + "`name startsWith \"go_\" && !(labels.job in args.keep)`" + `)
`

// exprTopic is what 'weir help expr' prints.
func exprTopic() *cobra.Command {
	return &cobra.Command{
		Use:   "expr",
		Short: "The language of expressions: operators, functions, precedence",
		Long:  expr.Manual() + "\n" + strings.TrimSpace(exprInScripts),
	}
}

// configTopic is what 'weir help config' prints.
func configTopic() *cobra.Command {
	return &cobra.Command{
		Use:   "config",
		Short: "The config language: blocks, references, functions, modules",
		Long:  strings.TrimRight(configManual(), "\n"),
	}
}

// luaTopic is what `weir help lua` prints.
func luaTopic() *cobra.Command {
	return &cobra.Command{
		Use:   "lua",
		Short: "How the Lua of scripts differs from Lua 5.1",
		Long:  strings.TrimRight(lua.Manual(), "\n"),
	}
}

// jsTopic is what `weir help js` prints.
func jsTopic() *cobra.Command {
	return &cobra.Command{
		Use:   "js",
		Short: "How the JavaScript of scripts differs from a browser's and Node's",
		Long:  strings.TrimRight(js.Manual(), "\n"),
	}
}
