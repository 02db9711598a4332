package js_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/js"
	"github.com/weir-run/weir/scripting/scripttest"
	"github.com/weir-run/weir/stdlib"
)

func lint(t *testing.T, src string) string {
	t.Helper()
	p, err := js.New().Compile(scripting.File{Name: "x.ts", Text: src}, scripting.Env{Modules: stdlib.Modules()})
	if err != nil {
		t.Fatalf("cannot compile: %v", err)
	}
	return findings(p.(scripting.Linted).Lint())
}

// findings are lines of position, message and hint.
func findings(fs []scripting.Finding) string {
	var b strings.Builder
	for _, f := range fs {
		if f.Warning {
			b.WriteString("warning: ")
		}
		fmt.Fprintf(&b, "%s: %v", strings.TrimPrefix(f.Err.Pos(), "x.ts:"), f.Err.Err)
		if f.Err.Hint != "" {
			b.WriteString(" | " + f.Err.Hint)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

const lintHead = `import { defineTransform, arg, state } from "weir"; import json, { decode } from "weir/json"; import * as re from "weir/re";
interface Untyped { a: string }
`

func TestLint(t *testing.T) {
	f := func(body string, want ...string) {
		t.Helper()
		src := lintHead + `export default defineTransform({ outputs: ["errors"], state: { seen: state.set() }, args: { region: arg.string({ default: "eu" }), match: arg.regexp({ default: "x" }), auth: arg.block({ fields: { user: arg.string() }, optional: true }) }, async metrics(batch, ctx) {` + "\n" + body + "\n} })"
		text := strings.Join(want, "\n")
		if text != "" {
			text += "\n"
		}
		if diff := cmp.Diff(text, lint(t, src)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", body, diff)
		}
	}
	// Operations and fields.
	f("batch.dropWher(`value > 1`)", `4:7: a batch has no "dropWher": did you mean dropWhere?`)
	f("batch?.dropWher(`value > 1`)", `4:8: a batch has no "dropWher": did you mean dropWhere?`)
	f("batch.drop_where(`value > 1`)", `4:7: a batch has no "drop_where": did you mean dropWhere?`)
	f(`batch.each((m) => { m.valeu = 1 })`, `4:23: cannot set "valeu" of a record: did you mean value?`)
	f(`batch.each(({ name, labls }) => { name })`, `4:21: a record has no "labls": did you mean labels?`)
	f(`for (const m of batch) m.type = "x"`, `4:26: cannot set "type" of a record: what can be set is name, value, labels, time and stale`)
	f(`for (const m of batch.records()) { const { x } = m.labels; m.labels.any = x; m.nam }`, `4:80: a record has no "nam": did you mean name?`)
	f(`for (const [i, job, v] of batch.rows("job", "value")) batch.set(i, "value", v.x + job.y)`)
	f(`const m = batch[0].copy(); m.help = "x"; m.hlep = "y"`, `4:44: cannot set "hlep" of a copy of a record: did you mean help?`)
	f(`ctx.args = {}`, `4:5: cannot set "args" of ctx: it is read-only`)
	f("const b = batch as Untyped\nb.txet()", `5:3: a batch has no "txet": did you mean text?`)
	f(`batch.length + batch.toString() + batch.hasOwnProperty("x")`)
	// ctx.
	f(`ctx.log.inof("x")`, `4:9: ctx.log has no "inof": did you mean info?`)
	f(`ctx.batch_id`, `4:5: ctx has no "batch_id": did you mean batchId?`)
	f(`ctx.args.regoin`, `4:10: there is no argument "regoin": declare it in args | did you mean region?`)
	f(`const { args, state: { sene } } = ctx; args.auth.usre`,
		`4:24: there is no state "sene": declare it in state | did you mean seen?`,
		`4:50: there is no argument "usre": declare it in args | did you mean user?`)
	f(`ctx.args.auth.user + ctx.args.region`)
	f(`ctx.args.match.mtach("x")`, `4:16: a re.Pattern has no "mtach": did you mean match?`)
	f(`ctx.args.region = "x"`, `4:10: cannot assign to ctx.args.region: it is read-only`)
	f(`ctx.state.seen.hass("x")`, `4:16: a state.set has no "hass": did you mean has?`)
	f(`ctx.emit({ name: "a", vlaue: 1 })`, `4:23: there is no key "vlaue" here | did you mean value?`)
	f(`await ctx.http.get("https://x")`, `4:11: cannot use ctx.http: the script does not say that it needs it | write needs: { http: … } in the definition; 'weir doc weir.transform' tells more`)
	f(`ctx.route("erors", batch[0])`, `4:11: cannot route to "erors": there is errors; did you mean errors?`)
	// Modules and constants.
	f(`json.decod("1")`, `4:6: module json has no "decod" | did you mean decode?`)
	f(`json.decode()`, `4:6: cannot call json.decode: argument s is missing; it is a string`)
	f(`decode(1, 2)`, `4:1: cannot call json.decode: it takes 1 arguments, not 2`, `4:8: cannot call json.decode: argument s must be a string, not a number`)
	f(`json.decode(json.encode({}), ...[1])`)
	f(`re.compile("(")`, "4:12: cannot call re.compile: argument pattern is wrong: cannot compile pattern \"(\": missing closing ): `(`")
	f("re.match(`a)`, `b`)", "4:10: cannot call re.match: argument pattern is wrong: cannot compile pattern \"a)\": unexpected ): `a)`")
	f(`re.compile("a").fnid("b")`, `4:17: a re.Pattern has no "fnid": did you mean find?`)
	f(`batch.dropLabel()`, `4:7: cannot call batch.dropLabel: argument name is missing; it is a string`)
	f(`json.decode = null`, `4:6: cannot assign to json.decode: it is read-only`)
	// Functions that exist in browsers and Node only.
	f(`await fetch("https://x")`, `4:7: fetch is not defined | use await ctx.http.get(url), with needs: { http: true } in the definition`)
	f(`setTimeout(() => {}, 1)`, `4:1: setTimeout is not defined | there are no timers: use every in the definition, or await ctx.sleep(seconds)`)
	f(`structuredClone(1)`, `4:1: structuredClone is not defined | use JSON.parse(JSON.stringify(x)), or copy() of a record`)
	f(`new Intl.DateTimeFormat()`, `4:5: Intl is not defined | there is no Intl: use import time from "weir/time" to format times`)
	f(`process.env.HOME`, `4:1: process is not defined | there is no process: the environment is ctx.env, with needs: { env: ["NAME"] } in the definition`)
	f(`Buffer.from("x")`, `4:1: Buffer is not defined | use import base64 from "weir/base64", or strings`)
	f(`time.now()`, `4:1: time is not defined | write import time from "weir/time" above`)
	f(`new Mapp()`, `4:5: Mapp is not defined | did you mean Map?`)
	f(`Object.groupBy([], (x) => x)`, `4:8: there is no Object.groupBy`)
	f(`Math.flor(1.5)`, `4:6: there is no Math.flor | did you mean floor?`)
	f(`if (typeof process !== "undefined") process.exit()`)
	// Unknown objects are not checked.
	f("{ const batch = { dropWher() {} }; batch.dropWher() }")
	f("let b = batch; b = {}; b.dropWher()")
	f("const f = (batch) => batch.dropWher(); f({})")
	f("outer: for (let i = 0; i < 1; i++) { try { f(i) } catch (e) { e.x; break outer } }\nfunction f(...xs) { return arguments.length + xs.y }\nclass A extends Error { #p = 1; static q = A; m() { return this.#p + super.x } }\nnew A()")
	f("switch (batch.length) { case 1: let x = 2; x.y; break; default: for (const k in batch[0].labels) k.z }\nfor (var v = 0; v < 1; v++) {} v;\nconst o = { ...ctx.args, [v]: 1, get g() { return new.target } }; o.nope; globalThis.nope")
	f("const [a, , ...b] = [1, 2]; const { c = a, ...d } = { c: b }; Array.from(new Map().keys()).map((x) => x.nope + c + d); let q; ({ q } = d); q.nope")
}

func TestLintTests(t *testing.T) {
	f := func(src, want string) {
		t.Helper()
		found, err := js.New().LintTest(scripting.File{Name: "x.ts", Text: src}, scripting.Env{Modules: stdlib.Modules()}, scripttest.API(scripting.Vitest))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, findings(found)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", src, diff)
		}
	}
	f(`import { component } from "weir/test"; const t = component("a.ts")
it("x", () => {
  const out = t.metrics("a 1")
  expect(out.lableValues("x")).toEqual([])
  t.metricss("a 1")
  t.advance("30s")
})`, `4:14: a batch has no "lableValues": did you mean labelValues?
5:5: a component has no "metricss": did you mean metrics?
`)
	f("import { describe, expcet } from \"weir/test\"\ndescribe(\"x\", () => { component(\"a.ts\") })\nexpcet(1)",
		"2:23: component is not defined | write import { component } from \"weir/test\" above\n3:1: module weir/test has no \"expcet\" | did you mean expect?\n")
	f("const s = vi.fn(); it.skip(\"x\", () => {}); it.each([1])(\"%d\", (n) => { n.x }); s.mock", "")
}

// A constant expression is one of a batch, wherever it is passed; what is no
// batch may have operations of the same names.
func TestExprs(t *testing.T) {
	src := lintHead + "export default defineTransform({ metrics(batch) {\n" +
		"  batch.dropWhere(`value > 1`)\n  batch.setValue('name == \"a\"', \"value + 1\")\n" +
		"  const other = { dropWhere(x: string) {} }; other.dropWhere(\"(\")\n" +
		"}, logs(batch) { help(batch); batch.keepWhere(\"level == 1\") } })\nfunction help(batch) { batch.dropWhere(\"(\") }"
	p, err := js.New().Compile(scripting.File{Name: "x.ts", Text: src}, scripting.Env{Modules: stdlib.Modules()})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, e := range p.Exprs() {
		fmt.Fprintf(&b, "%d:%d %s: %v, %v\n", e.Line, e.Col, e.Src, e.Kind, e.Over)
	}
	want := `4:19 value > 1: true or false, metrics
5:18 name == "a": true or false, metrics
5:33 value + 1: a number, metrics
7:47 level == 1: true or false, logs
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
