import { component, describe, expect, http, test } from "weir/test";

const URL = "https://queue.internal/api/overview";
const OVERVIEW = `{
  "totals": { "messages": 9007199254740993, "paused": false, "rate": "2.5" },
  "queues": [{ "name": "in", "depth": 3 }, { "name": "out", "depth": null }, { "name": 7, "depth": 0 }],
  "nodes": { "a": { "up": true }, "b": { "up": false } }
}`;

function open(metric: object[], args: object = {}) {
  return component("json_endpoint.ts", { url: URL, metric, ...args });
}

describe("source.json_endpoint", () => {
  test("makes samples of values", () => {
    http({ [URL]: OVERVIEW });
    const out = open([
      { name: "messages_total", type: "counter", path: "totals.messages" },
      { name: "paused", path: "totals.paused" },
      { name: "rate", path: "totals.rate" },
      { name: "first", path: "queues.0.depth" },
      { name: "gone", path: "totals.gone" },
    ]).advance("1m");
    expect(out.value("messages_total")).toBe(9007199254740992);
    expect(out.value("paused")).toBe(0);
    expect(out.value("rate")).toBe(2.5);
    expect(out.value("first")).toBe(3);
    expect(out.value(`json_endpoint_success{url="${URL}"}`)).toBe(1);
    expect(out).toHaveLength(6);
  });

  test("omits values and labels that are no numbers or texts", () => {
    http({ [URL]: '{"blank":" ","word":"many","list":[1],"none":null,"n":1,"deep":{"x":null},"text":"abc"}' });
    const paths = ["blank", "word", "list", "none", "deep.x.y", "n.x", "text.length", ".n."];
    const labels = { list: "list", none: "none", gone: "gone", text: "text" };
    const out = open(paths.map((path, i) => ({ name: `m${i}`, path, labels }))).advance("1m");
    expect(out.series().filter((s) => s.startsWith("m"))).toEqual(['m7{text="abc"}']);
  });

  test("makes a sample of each element", () => {
    http({ [URL]: OVERVIEW });
    const out = open([
      { name: "depth", each: "queues", path: "depth", labels: { queue: "name" } },
      { name: "node_up", each: "nodes", path: "up", labels: { node: "$key" } },
      { name: "nothing", each: "none" },
    ], { labels: { site: "lab" } }).advance("1m");
    expect(out.value('depth{queue="in",site="lab"}')).toBe(3);
    expect(out.value('depth{queue="7",site="lab"}')).toBe(0);
    expect(out.value('node_up{node="a",site="lab"}')).toBe(1);
    expect(out.value('node_up{node="b",site="lab"}')).toBe(0);
    expect(out).toHaveLength(6);
  });

  test("sends headers and token", () => {
    const mocks = http({ [URL]: "{}" });
    open([{ name: "x" }], { headers: { Accept: "application/json" }, token: "s3cret" }).advance("1m");
    expect(mocks.calls()[0].headers).toMatchObject({ Accept: "application/json", Authorization: "Bearer s3cret" });
  });

  test.each([
    ["a status", { status: 503 }, "status 503"],
    ["what is no JSON", "<html>", "cannot decode JSON"],
    ["no answer", { error: "refused" }, "refused"],
  ])("tells of %s", (_, answer, why) => {
    http({ [URL]: answer });
    const t = open([{ name: "x", path: "totals.messages" }]);
    const out = t.advance("1m");
    expect(out.value(`json_endpoint_success{url="${URL}"}`)).toBe(0);
    expect(t.logged()[0]).toContain(why);
  });
});
