import hash from "weir/hash";
import { component, describe, expect, test } from "weir/test";

describe("logs.sample_by_level", () => {
  test("keeps about the part that it is told, and the same again", () => {
    const lines = Array.from({ length: 300 }, (_, i) => `{level="debug"} line ${i}`).join("\n");
    const kept = () => component("sample_by_level.ts", { keep: { debug: 0.25 } }).logs(lines).lines();
    const first = kept();
    expect(first.length).toBeGreaterThan(45);
    expect(first.length).toBeLessThan(105);
    expect(kept()).toEqual(first);
  });

  test("finds the level wherever it is", () => {
    const t = component("sample_by_level.ts", { keep: { debug: 0, warn: 0 } });
    expect(t.logs('{level="DEBUG"} a\n{} {level="debug"} b\n{} {"level":"debug"}\n{} level=debug c\n{} level=warning d\n{} debug e').lines()).toEqual(["debug e"]);
  });

  test("keeps a tenth of the debug lines and no trace lines by default", () => {
    const t = component("sample_by_level.ts", {});
    const lines = (level: string) => t.logs(Array.from({ length: 200 }, (_, i) => `{level="${level}"} line ${i}`).join("\n"));
    expect(lines("trace")).toHaveLength(0);
    const debug = lines("debug");
    expect(debug.length).toBeGreaterThan(5);
    expect(debug.length).toBeLessThan(50);
    expect(debug[0].metadata).toEqual({ sample_rate: "0.1" });
  });

  test("decides for a line at each time", () => {
    const lines = Array.from({ length: 100 }, (_, i) => `{level="debug"} @2025-01-01T00:00:${String(i % 60).padStart(2, "0")}.${i}Z same`).join("\n");
    const kept = component("sample_by_level.ts", { keep: { debug: 0.5 } }).logs(lines);
    expect(kept.length).toBeGreaterThan(20);
    expect(kept.length).toBeLessThan(80);
  });

  test("drops a line whose number is the share to keep", () => {
    const share = parseInt(hash.xxhash("t1").slice(0, 13), 16) / 2 ** 52;
    const t = component("sample_by_level.ts", { keep: { debug: share }, by: "meta.trace" });
    expect(t.logs('{level="debug"} {trace="t1"} a')).toHaveLength(0);
  });

  test("skips an empty level, and counts a line without a level as undefined", () => {
    const t = component("sample_by_level.ts", { level: ["json.a", "json.b"], keep: { debug: 0, undefined: 0 } });
    expect(t.logs('{} {"a":"","b":"debug"}\n{} no level').lines()).toEqual(["no level"]);
  });

  test("leaves what it has no part for, or all of", () => {
    component("sample_by_level.ts", { keep: { debug: 1 } }).unchanged('{level="debug"} a\n{level="odd"} b\n{} c');
  });
});
