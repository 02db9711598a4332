// Each test sends lines to the component and checks the output.
// 'weir test --help' lists everything that a test can use.
import { component, describe, expect, test } from "weir/test";

describe("template.transform_logs", () => {
  const t = component("transform_logs.ts", { drop: ["debug", "trace"] });

  test("sets the label level", () => {
    const out = t.logs(`
      {app="shop"} {"level":"info","msg":"order placed"}
      {app="shop"} {"level":"error","msg":"card refused"}
    `);
    expect(out.streams()).toEqual(['{app="shop",level="error"}', '{app="shop",level="info"}']);
  });

  test("drops lines with the levels in the argument drop", () => {
    const out = t.logs(`
      {app="shop"} {"level":"trace","msg":"enter"}
      {app="shop",level="debug"} a line of a stream that has a level
      {app="shop"} {"level":"warn","msg":"slow"}
    `);
    expect(out.lines()).toEqual(['{"level":"warn","msg":"slow"}']);
  });

  test("does not change lines that are not JSON", () => {
    t.unchanged('{app="shop"} {"level":\n{app="shop"} plain text');
  });
});
