package js_test

import "testing"

// TestExportedValues: values that a script exports arrive by their kind, all at
// once, and wrong ones change nothing.
func TestExportedValues(t *testing.T) {
	allPass(t, runScriptTest(t, `import { arg, defineSource } from "weir";
let n = 0;
export default defineSource({
  interval: "1m",
  sends: ["metrics"],
  exports: { name: arg.string(), count: arg.int(), ratio: arg.number(), on: arg.bool(), every: arg.duration(), tags: arg.list({ of: arg.string() }), by: arg.map({ of: arg.int() }), targets: arg.targets() },
  poll(ctx) {
    n++;
    const good = { name: "a", count: n, ratio: 0.5, on: true, every: "90s", tags: ["x", "y"], by: { k: 1 }, targets: [{ __address__: "h:1", n }] };
    if (n === 2) ctx.export({ ...good, count: "two" });
    else if (n === 3) ctx.export({ ...good, nope: 1 });
    else ctx.export(good);
  },
});
`, `
const all = (t) => ["name", "count", "ratio", "on", "every", "tags", "by"].map((k) => t.exported(k));
it("gives each value by its kind", () => {
  const t = component("a.ts");
  expect(t.exported("name") ?? null).toBe(null);
  t.poll();
  expect(t.exported("name")).toBe("a");
  expect(t.exported("count")).toBe(1);
  expect(t.exported("ratio")).toBe(0.5);
  expect(t.exported("on")).toBe(true);
  expect(t.exported("every")).toBe(90);
  expect([...t.exported("tags")]).toEqual(["x", "y"]);
  expect({ ...t.exported("by") }).toEqual({ k: 1 });
  expect({ ...t.exported("targets")[0] }).toEqual({ __address__: "h:1", n: "1" });
});
it("keeps the last values when the next ones are wrong", () => {
  const t = component("a.ts");
  t.poll();
  expect(() => t.poll()).toThrow("count");
  expect(t.exported("count")).toBe(1);
  expect(() => t.poll()).toThrow("nope");
  expect(t.exported("count")).toBe(1);
  t.poll();
  expect(t.exported("count")).toBe(4);
});
it("knows its exports", () => {
  expect(() => component("a.ts").exported("nope")).toThrow("has no export \"nope\"");
});
`), 3)
}

// TestArgumentValues: arguments of the block are values of their kinds, and
// read-only.
func TestArgumentValues(t *testing.T) {
	allPass(t, runScriptTest(t, `import { arg, defineTransform } from "weir";
export default defineTransform({
  args: {
    text: arg.string({ default: "t" }), count: arg.int({ default: 3 }), ratio: arg.number({ default: 0.5 }), on: arg.bool({ default: false }),
    wait: arg.duration({ default: "90s" }), pattern: arg.regexp({ default: "^a" }), list: arg.list({ of: arg.string(), default: ["x"] }),
    map: arg.map({ of: arg.int(), default: {} }), maybe: arg.string({ optional: true }), password: arg.secret({ optional: true }),
    kind: arg.string({ default: "one" }),
  },
  metrics(batch, ctx) {
    const a = ctx.args;
    batch.setLabel("got", [typeof a.text, typeof a.count, typeof a.ratio, typeof a.on, a.wait, a.pattern.match("ab"), a.list.join("+"), JSON.stringify(a.map), String(a.maybe), String(a.password), a.kind].join(" "));
    for (const change of [() => { a.text = "x"; }, () => { a.list.push("y"); }, () => { a.map.k = 2; }, () => { delete a.count; }]) {
      let failed = false;
      try { change(); } catch { failed = true; }
      if (!failed) throw new Error("an argument was changed: " + change);
    }
  },
});
`, `
const got = (args) => component("a.ts", args).metrics("a 1")[0].labels.got;
it("has defaults", () => {
  expect(got({})).toBe("string number number boolean 90 true x {} undefined undefined one");
});
it("has what the block gives", () => {
  expect(got({ text: "u", count: 4, on: true, wait: "1m30.5s", pattern: "b", list: [], map: { k: 1 }, maybe: "m", kind: "two" }))
    .toBe("string number number boolean 90.5 true  {\"k\":1} m undefined two");
});
it("refuses what the block cannot give", () => {
  expect(() => component("a.ts", { count: "x" })).toThrow("count");
  expect(() => component("a.ts", { pattern: "(" })).toThrow("pattern");
  expect(() => component("a.ts", { wait: "soon" })).toThrow("wait");
  expect(() => component("a.ts", { nope: 1 })).toThrow("nope");
});
`), 3)
}
