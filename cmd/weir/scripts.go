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

// scriptsTopic is the help topic that `weir help scripts` prints: how to write a
// script, with descriptions from the API table.
// testdata/script/help_scripts.txtar runs its examples.
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
	b.WriteString(`A file scripts/<namespace>/<name>.lua, .js or .ts next to the config is the block
<namespace>.<name>. Files whose name begins with _, tests (<name>_test.lua,
<name>.test.js, <name>.test.ts) and files below lib are not blocks. lib/x.lua is
required as "x", and lib/x.ts is imported as "x"; a script in JavaScript or TypeScript
can also import files in its own folder ("./x"). Data files (.json, .yaml) are required
and imported with their extension. The first comment of the file is its manual, and
'weir test' runs the examples in it. 'weir new component' creates a script and its test.

The script ends with the definition of a transform, a source or a sink. In Lua

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

The following text uses the names of Lua. JavaScript uses camelCase (drop_where is
dropWhere), calls everything with a dot, counts from 0, throws where Lua returns nil
and an error, uses undefined for nil, and awaits functions that wait, such as ctx.http
and ctx.sleep. Names that you define, such as arguments and labels, stay the same.

'weir doc NAME' prints parameters, results and examples in both languages, such as
'weir doc batch.filter' or 'weir doc --lang=js dropWhere'. 'weir check' finds
misspelt names, and 'weir types' writes types for editors and tsc.

The members of a definition:
`)
	for _, k := range api.Get().Keys[scripting.Transform] {
		scripting.WriteManual(&b, k.Name, k.Doc)
	}
	b.WriteString(`
weir.source { … } fetches data and sends it or exports values. It does not have series,
metrics, stream and logs, but additionally has
`)
	for _, k := range api.Get().Keys[scripting.Source] {
		if !slices.Contains(scripting.DefinitionKeys(scripting.Transform), k.Name) || k.Name == "sends" {
			scripting.WriteManual(&b, k.Name, k.Doc)
		}
	}
	b.WriteString(`
weir.sink { … } delivers data to an external system, from a journal on disk that
survives a killed process. It does not have series, metrics, stream, logs, sends and
outputs, but additionally has
`)
	for _, k := range api.Get().Keys[scripting.Sink] {
		if !slices.Contains(scripting.DefinitionKeys(scripting.Transform), k.Name) {
			scripting.WriteManual(&b, k.Name, k.Doc)
		}
	}
	b.WriteString(`
There are several VMs, and each has its own locals outside of functions; globals are
read-only. Batches and records are only valid during their hook; a copy may be kept. A
label that does not exist is nil, and setting a label to nil removes it.

Types of arguments. Each takes { default =, optional =, doc = } and the members that
'weir doc' describes. An argument without default and optional is required.
`)
	b.WriteString(book.Summary("weir.arg"))
	b.WriteString(`
The block of every script may contain script { … } with settings for the host:
concurrency, on_error, on_reload, limits, quarantine and allow, which grants the
permissions that the script needs. 'weir components http.paths' lists all of them.
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

Modules are loaded with require; their functions return value, error. Lua's own math,
string and table exist, as do pcall, error, select and pairs; io, os and load do not
('weir help lua'). In JavaScript, modules are imported, for example from "weir/json",
and their functions throw ('weir help js').
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
