package js_test

import (
	"strings"
	"testing"

	"github.com/weir-run/weir/scripting/js"
)

// TestDefinitionsThatCannotBe checks values in a definition that weir cannot use, with
// their place.
func TestDefinitionsThatCannotBe(t *testing.T) {
	f := func(src, want string, line int) {
		t.Helper()
		r := load(t, "import { arg, defineTransform, state } from \"weir\"\nimport * as weir from \"weir\"\n"+src)
		if r.Err == nil {
			t.Fatalf("%s: got no error", src)
		}
		if e := scriptErr(t, r.Err); !strings.Contains(e.Err.Error(), want) || e.Line != line {
			t.Errorf("%s: got line %d: %v, want line %d: %s", src, e.Line, e.Err, line, want)
		}
	}
	f("export default 5", "cannot use a script that does not export its definition", 0)
	f("export default { metrics() {} }", "cannot use a script that does not export its definition", 0)
	f("export const other = defineTransform({ metrics() {} })", "cannot use a script that does not export its definition", 0)
	f("export default defineTransform()", "cannot use defineTransform(undefined): write defineTransform({ … })", 3)
	f("export default defineTransform([])", "cannot use defineTransform(an array): write defineTransform({ … })", 3)
	f("export default defineTransform(() => ({}))", "cannot use defineTransform(a function): write defineTransform({ … })", 3)
	f("export default (weir as any).defineFilter({})", `weir has no "defineFilter": there is defineTransform, defineSource, defineSink, arg, state`, 3)
	f("weir.arg = 5", "TypeError: Cannot assign to read only property 'arg'", 3)
	f("export default defineTransform({\n  metrics() {},\n  every: new Map([[\"1m\", () => {}]]),\n})", "cannot use a Map in a definition: use a plain object or an array", 3)
	f("export default defineTransform({\n  metrics() {},\n  needs: new Set([\"http\"]),\n})", "cannot use a Set in a definition: use a plain object or an array", 3)
	f("export default defineTransform({ metrics() {}, args: { at: arg.string({ default: new Date(0) }) } })", "cannot use a Date in a definition", 3)
	f("export default defineTransform({ metrics() {}, args: { at: arg.string({ default: /x/ }) } })", "in a definition", 3)
	f("export default defineTransform({ metrics() {}, args: { at: arg.string({ default: Symbol() }) } })", "cannot pass a symbol", 3)
	f("const o: any = {}\no.o = o\nexport default defineTransform({ metrics() {}, args: { a: arg.map({ default: o }) } })", "cannot use a definition that nests deeper than 100", 5)
	f("export default defineTransform({ metrics() {}, outputs: Array(2 ** 21) })", "cannot use a list of 2097152 items in a definition: the limit is 1048576", 3)
	f("export default defineTransform({ metrics() {}, setup: undefined })", "cannot use undefined as hook setup: it must be a function", 3)
	f("const metrics = 5\nexport default defineTransform({\n  metrics,\n})", "metrics", 5)
	f("export default defineTransform({\n  metrics() {},\n  on_error: \"drop\",\n})", `cannot use "on_error": names are camelCase in JavaScript, write onError`, 3)
	f("export default defineTransform({ metrics() {}, args: { a: arg.int(arg.string()) } })", "cannot use arg.int(an object): write arg.int({ … })", 3)
	f("export default defineTransform({ metrics() {}, state: { s: state.mpa() } })", `there is no state of the kind "mpa": there is counter, map, set, lru, queue (did you mean map?)`, 3)
	f("export default defineTransform({ metrics() {}, state: { s: state.map({ maxBytes: \"8MiB\", mxa: 5 }) } })", "mxa", 3)
	f("import \"weir/test\"\nexport default defineTransform({ metrics() {} })", `cannot import "weir/test" here: it is for test files, which are called x.test.ts, x_test.ts or .js`, 3)
}

// TestDefinitionsInOtherForms holds that a definition may be made in the ways in which
// objects are made in JavaScript.
func TestDefinitionsInOtherForms(t *testing.T) {
	f := func(src string) {
		t.Helper()
		fx := build(t, "import { arg, defineTransform } from \"weir\"\n"+src, "")
		if got, want := fx.send(t, "a 1\n"), "a{l=\"v\"} 1\n"; got != want {
			t.Errorf("%s: got %s, want %s: %s", src, got, want, fx.Health().Message)
		}
	}
	f(`export default defineTransform({ metrics(batch: any) { batch.setLabel("l", "v") } })`)
	f(`export default defineTransform({ metrics: (batch: any) => batch.setLabel("l", "v") })`)
	f(`export default defineTransform({ metrics: function (batch: any) { batch.setLabel("l", "v") } })`)
	f(`async function metrics(batch: any) { batch.setLabel("l", "v") }` + "\nexport default defineTransform({ metrics })")
	f(`const base = { metrics(batch: any) { batch.setLabel("l", "v") } }` + "\nexport default defineTransform({ ...base })")
	f(`class D { metrics = (batch: any) => batch.setLabel("l", "v") }` + "\nexport default defineTransform(new D())")
	f(`const d = defineTransform({ metrics(batch: any) { batch.setLabel("l", "v") } })` + "\nexport { d as default }")
	f(`export default defineTransform({ version: Object(1), args: { l: arg.string({ default: "v" }) }, metrics(batch: any, { args: { l } }: any) { batch.setLabel("l", l) } })`)
	f(`export default defineTransform({ args: Object.fromEntries(["l"].map((n) => [n, arg.string({ default: "v" })])), metrics(batch: any, ctx: any) { batch.setLabel("l", ctx.args.l) } })`)
	f("module.exports = defineTransform({ metrics(batch: any) { batch.setLabel(\"l\", \"v\") } })")
}

// TestPatternsInFiles checks the limits of regular expressions that a file has, which
// hold before it runs.
func TestPatternsInFiles(t *testing.T) {
	f := func(body, want string, line int) {
		t.Helper()
		r := load(t, metrics(body))
		if r.Err == nil {
			t.Fatalf("%.60s: got no error", body)
		}
		if e := scriptErr(t, r.Err); !strings.Contains(e.Err.Error(), want) || e.Line != line {
			t.Errorf("%.60s: got line %d: %v, want line %d: %s", body, e.Line, e.Err, line, want)
		}
	}
	f("\n/"+strings.Repeat("a", 9000)+"/.test(\"a\")", "cannot compile a pattern of 9000 characters: the limit is 8192", 4)
	f("/(/.test(\"a\")", "Unterminated group", 3)
	f("/a/xx.test(\"a\")", `Syntax error "x"`, 3)
}

// TestHeader reads the comment that a file begins with, in each of its forms; line i
// of it is line i of the file.
func TestHeader(t *testing.T) {
	f := func(text string, want ...string) {
		t.Helper()
		got := js.New().Comment(text)
		if strings.Join(got, "\n") != strings.Join(want, "\n") || len(got) != len(want) {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	f("")
	f("export default 1\n// no header\n")
	f("// One line.\nimport x", "One line.")
	f("\ufeff// After a mark.\n", "After a mark.")
	f("//  Two\n//\n//\tthree\n", " Two", "", "\tthree")
	f("  // indented\n\t//too\n\n// not this", "indented", "too")
	f("// CRLF\r\n// too\r\n", "CRLF", "too")
	f("/* One line. */\nimport x", "One line.")
	f("/** One line. */", "One line.")
	f("/**\n * Masks a label.\n *\n *   indented\n */\ncode", "", "Masks a label.", "", "  indented")
	f("/*\nplain\n  text\n*/", "", "plain", "text")
	f("/* not closed\n * goes on", "not closed", "goes on")
	f("/***/ code")
}
