package js_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
)

// TestPollWaits holds that an async poll sends what it has emitted when its promise
// is settled, and that its errors have the line of the source.
func TestPollWaits(t *testing.T) {
	allPass(t, runScriptTest(t, `import { arg, defineSource } from "weir";
interface Row { n: number; name?: string }
export default defineSource({
  args: { url: arg.string() },
  needs: { http: ["https://api.example/*"] },
  interval: "1m",
  async poll(ctx) {
    const answer = await ctx.http.get(ctx.args.url, { query: { page: 1 }, headers: { Accept: "application/json" } });
    if (answer.status !== 200)
      throw new Error("status " + answer.status);
    const rows: Row[] = answer.json();
    await Promise.all(rows.map(async (row) => {
      await ctx.sleep(0);
      ctx.emit({ name: "n", labels: { name: row.name ?? "none" }, value: row.n, time: ctx.now() });
    }));
  },
});
`, `
import { http } from "weir/test";
const url = "https://api.example/rows";
it("sends what it got", () => {
  http({ "https://api.example/rows?page=1": '[{"n":1,"name":"a"},{"n":2.5}]' });
  const out = component("a.ts", { url }).advance("1m");
  expect(out.text()).toBe('n{name="a"} 1\nn{name="none"} 2.5\n');
});
it("names the line of what it throws", () => {
  http({ "https://api.example/rows?page=1": { status: 503, body: "later" } });
  expect(() => component("a.ts", { url }).advance("1m")).toThrow("a.ts:10:");
  expect(() => component("a.ts", { url }).advance("1m")).toThrow("in poll: status 503");
});
it("names the line of what cannot be read", () => {
  http({ "https://api.example/rows?page=1": "<html>" });
  expect(() => component("a.ts", { url }).advance("1m")).toThrow("a.ts:11:");
});
it("may ask granted hosts alone", () => {
  expect(() => component("a.ts", { url: "https://other.example/" }).advance("1m")).toThrow("a.ts:8:");
});
it("goes on after an error", () => {
  let calls = 0;
  http({ "https://api.example/rows?page=1": () => (calls++ ? '[{"n":7}]' : { status: 500 }) });
  const t = component("a.ts", { url });
  expect(() => t.poll()).toThrow("status 500");
  expect(t.poll().text()).toBe('n{name="none"} 7\n');
});
`), 5)
}

// TestPollRefuses checks mistakes in what a source emits and exports, with their
// lines: poll makes the next one each time.
func TestPollRefuses(t *testing.T) {
	var polls, checks strings.Builder
	n := 0
	f := func(body, want string) {
		fmt.Fprintf(&polls, "  async () => { %s },\n", body)
		fmt.Fprintf(&checks, "it(%q, () => {\n  const t = component(\"a.ts\", { n: %d });\n  expect(() => t.poll()).toThrow(\"a.ts:%d:\");\n  expect(() => t.poll()).toThrow(%q);\n});\n", body, n, 4+n, "in poll: "+want)
		n++
	}
	f(`ctx.emit({ line: "x" })`, `cannot emit log records: the script does not send logs`)
	f(`ctx.export({ target: [] })`, `cannot call export: argument values is wrong: cannot export "target": the definition's exports have targets; did you mean targets?`)
	f(`ctx.export({ targets: [{ a: {} }] })`, `cannot call export: argument values is wrong: cannot export "targets": element 1: "a": a map is not a string`)
	f(`ctx.export()`, `cannot call export: argument values is missing; it is a map`)
	f(`ctx.flush()`, `cannot use ctx.flush: only the hook run`)
	f(`ctx.batchId()`, `cannot call ctx.batchId: only the hook send of a weir.sink can use it`)
	f(`ctx.emit({ name: "x", value: ctx.sleep(0).status })`, `cannot emit a record without a value`)
	f(`await (async () => { throw new Error("deep") })()`, `deep`)
	allPass(t, runScriptTest(t, `import { arg, defineSource } from "weir";
let ctx: any;
const polls = [
`+polls.String()+`];
export default defineSource({
  args: { n: arg.int() }, sends: ["metrics"], interval: "10s", exports: { targets: arg.targets() },
  async poll(c) { ctx = c; await polls[c.args.n](); },
});
`, checks.String()), n)
}

// TestRunWaits holds that the hook run of a source sends at ctx.flush and wherever
// it waits, and that finally runs when the component stops.
func TestRunWaits(t *testing.T) {
	allPass(t, runScriptTest(t, `import { defineSource } from "weir";
export default defineSource({
  async run(ctx) {
    try {
      for (let i = 1; ; i++) {
        ctx.emit({ name: "i", value: i });
        if (i % 2 === 1) await ctx.flush();
        else await ctx.sleep(5);
      }
    } finally {
      ctx.log.info("ended");
    }
  },
});
`, `
it("sends wherever it waits", () => {
  const t = component("a.ts");
  expect(t.advance(0).text()).toBe("i 1\ni 2\n");
  expect(t.advance("4s").length).toBe(0);
  expect(t.advance("1s").text()).toBe("i 3\ni 4\n");
});
`), 1)
}

// TestAnswers holds what a hook http may return, in JavaScript's own types, and what
// it may not.
func TestAnswers(t *testing.T) {
	var routes, checks strings.Builder
	n := 0
	f := func(body, check string) {
		n++
		fmt.Fprintf(&routes, "    \"POST /%d/{id}\"(req, ctx) { %s },\n", n, body)
		fmt.Fprintf(&checks, "it(%q, () => {\n  const ask = () => { const a = component(\"a.ts\").request({ method: \"POST\", path: \"/%d/7?n=1&n=2\", headers: { \"X-Kind\": \"disk\" }, body: '{\"a\":[1]}' }); return a.status + \" \" + a.body; };\n  %s\n});\n", body, n, check)
	}
	is := func(body, want string) { t.Helper(); f(body, "expect(ask()).toBe("+strconv.Quote(want)+");") }
	is(`return`, "200 ")
	is(`return 204`, "204 ")
	is(`return "text"`, "200 text")
	is(`return new Answer()`, `202 {"ok":true}`)
	is(`return { status: 201, body: req.params.id + req.method + req.path }`, "201 7POST/5/7")
	is(`return { json: { n: req.queryAll("n"), first: req.query.n, kind: req.header("x-kind"), none: req.header("y") ?? null } }`, `200 {"n":["1","2"],"first":"1","kind":"disk","none":null}`)
	is(`return { json: req.json().a }`, "200 [1]")
	is(`return Promise.resolve(418)`, "418 ")
	is(`return ctx.sleep(0).then(() => "late")`, "200 late")
	is(`return { json: 9007199254740993n }`, "200 9007199254740993")
	is(`return { json: undefined, body: "b" }`, "200 b")
	throws := func(body, want string) { t.Helper(); f(body, "expect(ask).toThrow("+strconv.Quote(want)+");") }
	throws(`return new Map([["status", 200]])`, "Object.fromEntries")
	throws(`return { json: Symbol("s") }`, "cannot pass a symbol")
	throws(`return { status: new Date(0) }`, "pass its getTime()")
	throws(`return req.nope`, `http.Request has no `)
	throws(`req.body = "x"`, "TypeError")
	throws(`throw new RangeError("boom")`, "in http: RangeError: boom")
	throws(`return Promise.reject(new Error("late"))`, "in http: late")
	allPass(t, runScriptTest(t, "import { defineSource } from \"weir\";\nclass Answer { status = 202; json = { ok: true } }\nexport default defineSource({\n  http: {\n"+routes.String()+"  },\n});\n", checks.String()), n)
}
