package js_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/js"
	"github.com/weir-run/weir/scripting/scripttest"
	"github.com/weir-run/weir/stdlib"
)

// runScriptTest runs a test file next to a script a.ts.
func runScriptTest(t *testing.T, script, test string) scripttest.File {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "scripts", "x")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "a.test.ts")
	for name, text := range map[string]string{filepath.Join(dir, "a.ts"): script, path: "import { component, expect, it, vi } from \"weir/test\";\n" + test} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	r, err := scripttest.Run(t.Context(), scripttest.Options{Languages: []scripting.Language{js.New()}, Modules: stdlib.Modules(), Paths: []string{path}})
	if err != nil {
		t.Fatal(err)
	}
	return r.Files[0]
}

// allPass checks that all tests of a file pass.
func allPass(t *testing.T, f scripttest.File, tests int) {
	t.Helper()
	if f.Problem != nil || len(f.Tests) != tests {
		t.Fatalf("got %d tests, want %d: %+v", len(f.Tests), tests, f.Problem)
	}
	for _, test := range f.Tests {
		if test.Status != scripttest.Passed {
			t.Errorf("%s: %+v", test.Name, test.Problem)
		}
	}
}

// TestTimers: hooks of every run at their interval, on the clock of the test, with
// the state of the script.
func TestTimers(t *testing.T) {
	allPass(t, runScriptTest(t, `import { defineTransform } from "weir";
let seen = 0;
export default defineTransform({
  metrics(batch) { seen += batch.length; },
  every: {
    "10s": (ctx) => { ctx.emit({ name: "seen_total", value: seen, time: ctx.now() }); },
    "1m": async (ctx) => {
      await ctx.sleep(0);
      ctx.emit({ name: "minutely", value: 1 });
    },
  },
});
`, `
it("rings at each interval", () => {
  const t = component("a.ts");
  expect(t.advance("9s").length).toBe(0);
  expect(t.advance("1s").value("seen_total")).toBe(0);
  t.metrics("a 1\nb 2");
  expect(t.advance("10s").value("seen_total")).toBe(2);
  expect(t.advance("5s").length).toBe(0);
});
it("rings as often as time has passed", () => {
  const t = component("a.ts");
  const out = t.advance("1m");
  expect(out.text().split("\n").filter((l) => l.startsWith("seen_total")).length).toBe(6);
  expect(out.value("minutely")).toBe(1);
});
it("has the time of the test", () => {
  const t = component("a.ts");
  const start = t.now();
  const out = t.advance("10s");
  expect(out[0].time).toBe(start + 10000);
});
`), 3)
}

// TestTimersFail: an error of a timer is reported, and the timer rings again.
func TestTimersFail(t *testing.T) {
	allPass(t, runScriptTest(t, `import { defineTransform } from "weir";
let n = 0;
export default defineTransform({
  sends: ["metrics"],
  metrics() {},
  every: {
    "10s": (ctx) => {
      n++;
      if (n === 2) throw new Error("the second");
      if (n === 3) return Promise.reject(new Error("late"));
      ctx.emit({ name: "n", value: n });
    },
  },
});
`, `
it("goes on", () => {
  const t = component("a.ts");
  expect(t.advance("10s").value("n")).toBe(1);
  expect(() => t.advance("10s")).toThrow("in every: the second");
  expect(() => t.advance("10s")).toThrow("in every: late");
  expect(t.advance("10s").value("n")).toBe(4);
});
`), 1)
}

// TestState: collections that a script declares keep their values between calls.
func TestState(t *testing.T) {
	allPass(t, runScriptTest(t, `import { defineTransform, state } from "weir";
export default defineTransform({
  state: { seen: state.set(), last: state.lru({ max: 2 }), counts: state.map() },
  metrics(batch, ctx) {
    const { seen, last, counts } = ctx.state;
    for (const r of batch) {
      r.labels.first = seen.add(r.name) ? "yes" : "no";
      r.labels.before = last.get(r.name) ?? "none";
      last.set(r.name, String(r.value));
      counts.set(r.name, (counts.get(r.name) ?? 0) + 1);
      r.labels.count = counts.get(r.name);
    }
  },
});
`, `
it("remembers", () => {
  const t = component("a.ts");
  const at = (out, i) => ({ ...out[i].labels });
  expect(at(t.metrics("a 1"), 0)).toEqual({ first: "yes", before: "none", count: "1" });
  expect(at(t.metrics("a 2"), 0)).toEqual({ first: "no", before: "1", count: "2" });
  t.metrics("b 1\nc 1");
  expect(at(t.metrics("a 3"), 0)).toEqual({ first: "no", before: "none", count: "3" });
});
it("is another component's", () => {
  expect(component("a.ts").metrics("a 1")[0].labels.count).toBe("1");
});
`), 2)
}

// TestSpiesOfPromises: spies answer by promises as they were told.
func TestSpiesOfPromises(t *testing.T) {
	var e expectations
	f := e.add
	f(`const s = vi.fn().mockResolvedValue(3); expect(await s()).toBe(3); expect(await s()).toBe(3); expect(s()).toBeInstanceOf(Promise)`, "")
	f(`const s = vi.fn().mockRejectedValue(new Error("no")); await expect(s()).rejects.toThrow("no"); await expect(s()).rejects.toThrow("no")`, "")
	f(`const s = vi.fn(() => "own").mockResolvedValueOnce(1).mockRejectedValueOnce(new Error("two")); expect(await s()).toBe(1); await expect(s()).rejects.toThrow("two"); expect(s()).toBe("own")`, "")
	f(`const s = vi.fn(async (x: number) => x * 2); expect(await s(4)).toBe(8); expect(s.mock.calls).toEqual([[4]])`, "")
	f(`const s = vi.fn().mockResolvedValue(1); s(); expect(s.mock.results[0].type).toBe("return")`, "")
	f(`const s = vi.fn(() => { throw new Error("x") }); try { s() } catch { } expect(s.mock.results[0].type).toBe("throw"); expect(s).toHaveBeenCalledTimes(1)`, "")
	f(`const s = vi.fn().mockResolvedValue(1); await expect(s()).resolves.toBe(2)`, "expected 1 to be 2")
	e.run(t, "")
}
