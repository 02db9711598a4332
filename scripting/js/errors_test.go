package js_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLoadErrors(t *testing.T) {
	const head = "import { defineTransform, defineSource, defineSink, arg, state } from \"weir\"\n"
	f := func(name, src string, want ...string) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			t.Helper()
			r := load(t, src)
			if r.Err == nil {
				t.Fatal("got no error")
			}
			if diff := cmp.Diff(want, strings.Split(strings.TrimSpace(r.Err.Error()), "\n")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	f("syntax", head+"const x = = 1",
		`embedded/test/script.ts:2:11: Unexpected "="`, `  2 | const x = = 1`, `    |           ^`)
	f("no definition", head+"const x = 1",
		`embedded/test/script.ts: cannot use a script that does not export its definition`, `  hint: write export default defineTransform({ … })`)
	f("no object", head+"export default defineTransform()",
		`embedded/test/script.ts:2:16: cannot use defineTransform(undefined): write defineTransform({ … })`, `  2 | export default defineTransform()`, `    |                ^`)
	f("unknown key", head+"interface Long {\n  a: string\n}\nexport default defineTransform({\n  metrics() {},\n  metric() {},\n})",
		`embedded/test/script.ts:7: cannot use "metric" in defineTransform: there is args, series, metrics, stream, logs, sends, onError, every, setup, teardown, migrate, version, state, outputs, needs`, `  7 | metric() {},`, `  hint: did you mean metrics?`)
	f("no hook", head+"export default defineTransform({\n})",
		`embedded/test/script.ts:2: cannot use a transform without a hook: write series or metrics, for logs stream or logs`, `  2 | export default defineTransform({`)
	f("every", head+"export default defineTransform({\n  metrics() {},\n  every: 5,\n})",
		`embedded/test/script.ts:4: cannot use 5 as every: it must be an object of functions by interval`, `  4 | every: 5,`, `  hint: write every: { "30s": (ctx) => { … } }`)
	f("outputs", head+"export default defineTransform({\n  metrics() {},\n  outputs: 5,\n})",
		`embedded/test/script.ts:4: cannot use 5 as outputs: it must be a list of names`, `  4 | outputs: 5,`, `  hint: write outputs: ["errors"]`)
	f("args", head+"export default defineTransform({\n  args: { n: 5 },\n  metrics() {},\n})",
		`embedded/test/script.ts:3: cannot use 5 as argument "n": write arg.string() or another type`, `  3 | args: { n: 5 },`)
	f("arg option", head+"const a = arg.int({ min: 1 })",
		`embedded/test/script.ts:2:15: cannot use "min" in arg.int: there is default, optional, doc`, `  2 | const a = arg.int({ min: 1 })`, `    |               ^`)
	f("arg kind", head+"const a = arg.float()",
		`embedded/test/script.ts:2:11: there is no argument type "float": there is string, int, number, bool, duration, size, list, map, enum, secret, targets, regexp, block`, `  2 | const a = arg.float()`, `    |           ^`)
	f("state", head+"const s = state.map({ max_bytes: 5 })",
		`embedded/test/script.ts:2:17: cannot use "max_bytes": names are camelCase in JavaScript, write maxBytes`, `  2 | const s = state.map({ max_bytes: 5 })`, `    |                 ^`)
	f("state value", head+"const s = state.map({ maxBytes: \"x\" })",
		`embedded/test/script.ts:2:17: cannot use "x" as "maxBytes" of state.map: it must be a size such as "8MiB"`, `  2 | const s = state.map({ maxBytes: "x" })`, `    |                 ^`)
	f("throws", head+"type A = string\nfunction f(): A { throw new TypeError(\"oops\") }\nf()",
		`embedded/test/script.ts:3:25: TypeError: oops`, `  3 | function f(): A { throw new TypeError("oops") }`, `    |                         ^`, `  stack: embedded/test/script.ts:3 < embedded/test/script.ts:4`)
	f("global", head+"count = 1",
		`embedded/test/script.ts:2:1: ReferenceError: count is not defined`, `  2 | count = 1`, `    | ^`)
	f("dynamic require", head+"const n = \"weir/json\"\nrequire(n)",
		`embedded/test/script.ts:3:1: cannot require this: require takes a constant string, so that weir knows which files a component is made of`, `  3 | require(n)`, `    | ^`)
	f("deep", head+"const x = "+strings.Repeat("[", 2000)+strings.Repeat("]", 2000),
		`embedded/test/script.ts:2: cannot use a file that nests deeper than 1000 brackets`, `  2 | const x = `+strings.Repeat("[", 147)+`…`)
}

func TestRuntimeErrors(t *testing.T) {
	f := func(body, want string, line int) {
		t.Helper()
		e := failure(t, body)
		if got := e.Err.Error(); got != want || e.Line != line || e.Hook != "metrics" {
			t.Errorf("%s: got line %d: %s\nwant line %d: %s", body, e.Line, got, line, want)
		}
	}
	f(`let x: any; x.y`, `TypeError: Cannot read property 'y' of undefined: x is undefined or null`, 3)
	f("\n\nthrow \"a string\"", "a string", 5)
	f(`throw { code: 5 }`, "the script threw an object: throw new Error(…) says more", 3)
	f(`throw undefined`, "the script threw undefined", 3)
	f(`ctx.args.nope`, `there is no argument "nope": declare it in args`, 3)
	f(`function f() { f() }; f()`, "limit exceeded: the calls nest too deep", 3)
	f(`try { null!.x } catch (e) { throw new Error("again: " + e.message) }`, "again: Cannot read property 'x' of undefined", 3)
	if e := failure(t, `ctx.logg.info("x")`); !strings.Contains(e.Error(), `ctx has no "logg": there is args, `) || !strings.Contains(e.Error(), "did you mean log?") {
		t.Errorf("got %v", e)
	}
	for name, hint := range map[string]string{"setTimeout": "there are no timers", "fetch": "ctx.http.get", "process": "ctx.env", "json": `import json from "weir/json"`} {
		if e := failure(t, name+".x"); !strings.Contains(e.Hint, hint) {
			t.Errorf("%s: got hint %q", name, e.Hint)
		}
	}
}

// TestErrorsNameImports holds that an error of the engine names what is imported
// as the script does, not as it is compiled.
func TestErrorsNameImports(t *testing.T) {
	f := func(body, want string) {
		t.Helper()
		e := failureOf(t, "import { defineTransform } from \"weir\"\nimport { tools, nothing } from \"./tools\"\nimport whole from \"./tools\"\nimport * as all from \"./tools\"\nimport odd from \"../lib/odd-name2.js\"\nexport default defineTransform({ metrics(batch: any, ctx: any) {\n"+body+"\n} })\n", "",
			"test/tools.ts", "export const tools: any = { known() { return {} } }\nexport let nothing: any\nexport default { tools }\n", "lib/odd-name2.ts", "const o: any = {}\nexport default o\n")
		if got := e.Err.Error(); got != want || e.Line != 7 {
			t.Errorf("%s: got line %d: %s\nwant line 7: %s", body, e.Line, got, want)
		}
	}
	f(`tools.gone()`, "TypeError: tools.gone is not a function")
	f(`tools.known().gone()`, "TypeError: tools.known().gone is not a function")
	f(`nothing()`, "TypeError: nothing is not a function")
	f(`nothing.x`, "TypeError: Cannot read property 'x' of undefined: nothing is undefined or null")
	f(`nothing.x()`, "TypeError: Cannot read property 'x' of undefined or null: nothing is undefined or null")
	f(`new tools.gone()`, "TypeError: Value is not an object: tools.gone is undefined or null")
	f(`whole.tools.gone()`, "TypeError: whole.tools.gone is not a function")
	f(`odd.gone()`, "TypeError: odd.gone is not a function")
	f(`all.tools.gone()`, "TypeError: all.tools.gone is not a function")
	f(`throw new Error("import_tools.x is mine")`, "import_tools.x is mine")
}
