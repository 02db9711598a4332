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

  test("leaves what it has no part for, or all of", () => {
    component("sample_by_level.ts", { keep: { debug: 1 } }).unchanged('{level="debug"} a\n{level="odd"} b\n{} c');
  });
});
