package js_test

import (
	"strings"
	"testing"
)

// TestThrownValues holds what is reported of what a script throws, whatever that is,
// and where it was made.
func TestThrownValues(t *testing.T) {
	f := func(body, want string) {
		t.Helper()
		e := failure(t, body)
		if got := e.Err.Error(); got != want || e.Line != 3 {
			t.Errorf("%s: got line %d: %q, want %q", body, e.Line, got, want)
		}
	}
	f(`throw new Error("one")`, "one")
	f(`throw new Error()`, "the script threw an Error without a message")
	f(`throw new TypeError()`, "TypeError")
	f(`throw Object.assign(new Error("one"), { name: "" })`, ": one")
	f(`throw Object.assign(new Error("one"), { name: "Mine" })`, "Mine: one")
	f(`throw new (class Refused extends Error { name = "Refused" })("no")`, "Refused: no")
	f(`throw new Error("outer", { cause: new Error("inner") })`, "outer")
	f(`throw { message: "like an error" }`, "like an error")
	f(`throw { message: 5 }`, "the script threw an object: throw new Error(…) says more")
	f(`throw [1]`, "the script threw an array: throw new Error(…) says more")
	f(`throw null`, "the script threw null")
	f(`throw 404`, "the script threw 404")
	f(`throw 1n`, "the script threw 1")
	f(`throw new Error("x".repeat(10000))`, strings.Repeat("x", 4<<10)+"…")
	f(`throw { get message() { throw 1 } }`, "the script threw an error whose message cannot be read")
	f(`throw Object.defineProperty(new Error("x"), "name", { get() { throw 1 } })`, "the script threw an error whose message cannot be read")
	f(`throw Object.assign(new Error("x"), { stack: 5 })`, "x")
}

// TestErrorsOfCallbacks holds that what a function throws that a script gave to weir
// comes back as it was, with its own line.
func TestErrorsOfCallbacks(t *testing.T) {
	const head = "import { defineTransform, state } from \"weir\"\nimport re from \"weir/re\"\nexport default defineTransform({ state: { seen: state.map() }, metrics(batch: any, ctx: any) {\n"
	f := func(body, want string) {
		t.Helper()
		e := failureOf(t, head+body+"\n} })\n", "")
		if got := e.Err.Error(); got != want || e.Line != 5 {
			t.Errorf("%s: got line %d: %q, want %q", body, e.Line, got, want)
		}
	}
	f("batch.mapValue((v: number) => {\nthrow new RangeError(\"too much\")\n})", "RangeError: too much")
	f("batch.setLabel(\"l\", \"x\"); batch.mapLabel(\"l\", (v: string) => {\nthrow new RangeError(\"too much\")\n})", "RangeError: too much")
	f("batch.filter([\"name\"], () => {\nnone.x\n})", "ReferenceError: none is not defined")
	f("batch.each((m: any) => {\nm.nope\n})", `a record has no "nope": there is name, type, value, labels, time, stale, help, unit, histogram, exemplars, drop() and copy()`)
	f("try { batch.mapValue(() => { throw new Error(\"inner\") }) } catch (e: any) {\nthrow new Error(\"outer: \" + e.message)\n}", "outer: inner")
	f("for (const r of batch)\nctx.state.seen.update(r.name, () => { throw new Error(\"broke\") })", "cannot call update: argument fn failed: broke")
	f("for (const r of batch)\nctx.state.seen.update(r.name, () => () => 1)", "cannot call update: argument fn returned a value that state cannot store: cannot keep a function in state: it must be text, a number, a bool, or a list or map of these")
	f("for (const r of batch)\nctx.state.seen.update(r.name, () => Symbol())", "cannot call update: argument fn failed: cannot pass a symbol to a function of the host")
	f("for (const r of batch)\nre.compile(\"a\").replace(r.name, () => { throw new Error(\"broke\") })", "cannot call replace: argument with failed: broke")
}

// TestCallbacksOfState holds that the function of update gets what is there and that
// its result is kept.
func TestCallbacksOfState(t *testing.T) {
	allPass(t, runScriptTest(t, `import { defineTransform, state } from "weir";
export default defineTransform({
  state: { seen: state.map(), n: state.counter() },
  metrics(batch, ctx) {
    for (const r of batch) {
      const all: any = ctx.state.seen.update(r.name, (old: any) => ({ n: (old?.n ?? 0) + 1, values: [...(old?.values ?? []), r.value] }));
      r.labels.n = all.n;
      r.labels.values = all.values.join("+");
      r.labels.counted = ctx.state.n.update("all", (old: number) => (old ?? 0) + 1);
      if (r.value < 0) r.labels.left = String(ctx.state.seen.update(r.name, () => undefined));
    }
  },
});
`, `
it("keeps what update returns", () => {
  const t = component("a.ts");
  t.metrics("a 1");
  t.metrics("b 1");
  expect(t.metrics("a 2.5").text()).toBe('a{counted="3",n="2",values="1+2.5"} 2.5\n');
  expect(t.state("seen")).toEqual({ a: { n: 2, values: [1, 2.5] }, b: { n: 1, values: [1] } });
  t.metrics("a -1");
  expect(t.state("seen")).toEqual({ b: { n: 1, values: [1] } });
  expect(t.state("n")).toEqual({ all: 4 });
});
`), 1)
}

// TestDataAreValues holds what a record, its labels and log lines are for functions
// of weir.
func TestDataAreValues(t *testing.T) {
	var e exprs
	f := e.add
	f(`json.encode(m.labels)`, `{"instance":"h:1","job":"a"}`)
	f(`json.encode({ labels: m.labels, n: [m.value] })`, `{"labels":{"instance":"h:1","job":"a"},"n":[1]}`)
	f(`json.encode(m.copy().labels)`, `{"instance":"h:1","job":"a"}`)
	f(`json.encode({ ...m.labels, job: undefined })`, `{"instance":"h:1"}`)
	f(`json.encode([..."ab"].map((c) => ({ c })))`, `[{"c":"a"},{"c":"b"}]`)
	f(`json.encode([undefined, null, , 1])`, `[null,null,null,1]`)
	f(`json.encode(Object.create({ inherited: 1 }))`, `{}`)
	f(`json.encode(new (class { #hidden = 1; shown = 2 })())`, `{"shown":2}`)
	f(`json.encode(new Proxy({ a: 1 }, {}))`, `{"a":1}`)
	f(`json.encode([Object(1), Object("s"), Object(true)])`, `[1,"s",true]`)
	f(`json.encode(-0) + json.encode(1e300) + json.encode(0.1)`, "-01e+3000.1")
	f(`json.encode((() => { const x: any = []; x[2] = 1; return x })())`, `[null,null,1]`)
	f(`json.encode((function () { return arguments })(1, 2))`, `{"0":1,"1":2}`)
	f(`json.encode(new Error("x"))`, "{}")
	f(`json.encode(/x/)`, "{}")
	f(`json.encode(m)`, "Error")
	f(`json.encode(batch)`, "Error")
	e.run(t, "up{instance=\"h:1\",job=\"a\"} 1\n", "")
}
