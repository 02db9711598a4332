import { component, describe, expect, http, test } from "weir/test";

const URL = "https://consul.internal/v1/catalog/service/node";
const NODES = `[
  { "Node": "a", "ServiceAddress": "10.0.0.1", "ServicePort": 9100, "NodeMeta": { "rack": "r1" } },
  { "Node": "b", "ServiceAddress": "10.0.0.2", "ServicePort": 9100, "NodeMeta": {} },
  { "Node": "c", "ServiceAddress": "", "ServicePort": 9100 }
]`;

function open(args: object = {}) {
  return component("http_json.ts", {
    url: URL,
    address: "{ServiceAddress}:{ServicePort}",
    labels: { instance: "{Node}", rack: "{NodeMeta.rack}", job: "node" },
    ...args,
  });
}

describe("discovery.http_json", () => {
  test("makes a target of each element that has an address", () => {
    http({ [URL]: NODES });
    const t = open();
    t.advance("1m");
    expect(t.exported("targets")).toEqual([
      { __address__: "10.0.0.1:9100", instance: "a", rack: "r1", job: "node" },
      { __address__: "10.0.0.2:9100", instance: "b", job: "node" },
    ]);
  });

  test("goes over objects and texts", () => {
    http({ [URL]: '{"data":{"hosts":{"web":["10.0.0.1","10.0.0.2"]}}}' });
    const t = open({ each: "data.hosts.web", address: "{$value}:80", labels: { n: "{$key}" } });
    t.advance("1m");
    expect(t.exported("targets")).toEqual([{ __address__: "10.0.0.1:80", n: "0" }, { __address__: "10.0.0.2:80", n: "1" }]);
  });

  test("omits labels and targets whose paths lead nowhere", () => {
    http({ [URL]: '{"x":{"ip":"10.0.0.1","n":0,"ok":false,"sub":{"a":1},"none":null},"y":{"ip":null}}' });
    const t = open({ address: "{ip}", labels: { n: "{n}", ok: "{ok}", sub: "{sub}", deep: "{ip.x}", length: "{ip.length}", none: "{none}", under: "{none.x}", k: "{$key}-{n}" } });
    t.advance("1m");
    expect(t.exported("targets")).toEqual([{ __address__: "10.0.0.1", n: "0", ok: "false", k: "x-0" }]);
  });

  test("fails when there is no list", () => {
    for (const [body, each] of [["null", ""], ['{"a":1}', "a"], ['{"a":null}', "a.b"], ['"text"', ""]]) {
      http({ [URL]: body });
      const t = open({ each });
      expect(() => t.advance("1m")).toThrow(`there is no list at ${JSON.stringify(each)} in the answer`);
    }
  });

  test("sends its headers and its token", () => {
    const mocks = http({ [URL]: "[]" });
    open({ headers: { "X-Org": "o" }, token: "s3cret" }).advance("1m");
    expect(mocks.calls()[0].headers["X-Org"]).toBe("o");
    expect(mocks.calls()[0].headers.Authorization).toBe("Bearer s3cret");
  });

  test("keeps the targets when the API fails", () => {
    http({ [URL]: [NODES, { status: 500 }, "{}"] });
    const t = open({ each: "" });
    t.advance("1m");
    expect(t.exported("targets")).toHaveLength(2);
    expect(() => t.advance("1m")).toThrow("status 500");
    expect(t.exported("targets")).toHaveLength(2);
  });
});
