package api

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/weir-run/weir/scripting"
)

// InJS translates a doc from the names of Lua to those of JavaScript: nil is
// undefined, methods are called with a dot and names are in camelCase.
func InJS(doc string) string {
	doc = strings.NewReplacer(
		`{ "Token ", ctx.args.token }`, `["Token ", ctx.args.token]`,
		"return weir.transform { … }", "export default defineTransform({ … })",
		"return weir.source { … }", "export default defineSource({ … })", "return weir.sink { … }", "export default defineSink({ … })",
		"weir.transform", "defineTransform", "weir.source", "defineSource", "weir.sink", "defineSink",
		"weir.arg", "arg", "weir.state", "state", "weir.test.", "",
		"for k, v in pairs(old_state.seen:entries())", "for (const [k, v] of Object.entries(oldState.seen.entries()))",
		"iterate over them with pairs", "iterate over them with Object.entries",
		"as separate results", "as an array",
		`{ status = 200, headers = …, body = "…" }, { json = … }`, `{ status: 200, headers: …, body: "…" }, { json: … }`, `{ error = "…" }`, `{ error: "…" }`,
		`{ code = 0, stdout = "…", stderr = "…" }`, `{ code: 0, stdout: "…", stderr: "…" }`,
		`{ REGION = "eu" }`, `{ REGION: "eu" }`,
		"functions that Lua's own math lacks", "functions that JavaScript's own Math lacks",
		` To use both modules in a script, name this one xmath: local xmath = require "math".`, "",
		"that Lua would round", "that would be rounded",
		"a table of ", "an object of ", "A table ", "An object ", "a table", "an object", "tables", "objects", "Tables", "Objects",
		"#group", "group.length", "#out", "out.length", "#batch", "batch.length",
	).Replace(doc)
	doc = aHook.ReplaceAllString(doc, `{ "$1"($2) { … } }`)
	doc = methodCall.ReplaceAllString(doc, "$1.$2")
	doc = aNil.ReplaceAllString(doc, "undefined")
	known := camelNames()
	return snakeWord.ReplaceAllStringFunc(doc, func(word string) string {
		if known[word] {
			return scripting.CamelCase(word)
		}
		return word
	})
}

var (
	aHook      = regexp.MustCompile(`\{ \["([^"]*)"\] = function\(([^)]*)\) … end \}`)
	methodCall = regexp.MustCompile(`\b(batch|group|t|out|s|record|req):([a-z_]+)`)
	aNil       = regexp.MustCompile(`\bnil\b`)
	snakeWord  = regexp.MustCompile(`\b[a-z]+(?:_[a-z]+)+\b`)
)

// camelNames are the names with an underscore that are in camelCase in
// JavaScript.
var camelNames = sync.OnceValue(func() map[string]bool {
	names := map[string]bool{"old_state": true, "old_version": true}
	var params func(ps []scripting.Param)
	function := func(f *scripting.Function) { names[f.Name] = true; params(f.Params); params(f.Result.Fields) }
	params = func(ps []scripting.Param) {
		for _, p := range ps {
			names[p.Name] = true
			params(p.Fields)
			if p.Of != nil {
				params(p.Of.Fields)
			}
			if p.Call != nil {
				function(p.Call)
			}
		}
	}
	t := Get()
	for _, typ := range t.Types() {
		params(typ.Fields)
		for i := range typ.Methods {
			function(&typ.Methods[i])
		}
	}
	for _, m := range t.Modules() {
		for i := range m.Funcs {
			function(&m.Funcs[i])
		}
	}
	// The attributes of a block keep their names.
	delete(names, "on_error")
	return names
})

// jsValues returns values in JavaScript syntax, separated by commas.
func jsValues(vs []scripting.Value) string {
	parts := make([]string, len(vs))
	for i, v := range vs {
		parts[i] = jsValue(v)
	}
	return strings.Join(parts, ", ")
}

// jsValue returns a value in JavaScript syntax.
func jsValue(v scripting.Value) string {
	switch v := v.(type) {
	case nil:
		return "undefined"
	case string:
		return jsQuote(v)
	case int64:
		if v > 1<<53 || v < -(1<<53) {
			return fmt.Sprintf("BigInt(%q)", strconv.FormatInt(v, 10))
		}
	case float64:
		switch {
		case math.IsNaN(v):
			return "NaN"
		case math.IsInf(v, 1):
			return "Infinity"
		case math.IsInf(v, -1):
			return "-Infinity"
		}
		return strconv.FormatFloat(v, 'g', -1, 64)
	case *scripting.List:
		return "[" + jsValues(v.Items) + "]"
	case *scripting.Map:
		var parts []string
		for _, k := range v.Keys() {
			x, _ := v.Get(k)
			if !luaWord.MatchString(k) {
				k = jsQuote(k)
			}
			parts = append(parts, k+": "+jsValue(x))
		}
		if len(parts) == 0 {
			return "{}"
		}
		return "{ " + strings.Join(parts, ", ") + " }"
	}
	if v == scripting.Null {
		return "null"
	}
	return fmt.Sprint(v)
}

// jsQuote returns a text as a JavaScript literal.
func jsQuote(s string) string {
	if strings.Contains(s, `"`) && !strings.ContainsAny(s, "'\\\n\r\t") {
		return "'" + s + "'"
	}
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string can be encoded
	return strings.TrimSuffix(b.String(), "\n")
}

// camelAll converts a doc of JavaScript only: all names are in camelCase.
func camelAll(doc string) string { return snakeWord.ReplaceAllStringFunc(doc, scripting.CamelCase) }

// jsSignature returns the parameters in parentheses. Optional parameters end in
// ?.
func jsSignature(f *scripting.Function) string {
	var names []string
	for i, p := range f.Params {
		n := strings.TrimSuffix(jsName(p, i), "_")
		switch {
		case p.Rest:
			n = "..." + n
		case p.Optional:
			n += "?"
		}
		names = append(names, n)
	}
	return "(" + strings.Join(names, ", ") + ")"
}
