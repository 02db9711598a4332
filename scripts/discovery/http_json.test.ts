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

  test("keeps the targets when the API fails", () => {
    http({ [URL]: [NODES, { status: 500 }, "{}"] });
    const t = open({ each: "" });
    t.advance("1m");
    expect(t.exported("targets")).toHaveLength(2);
    expect(() => t.advance("1m")).toThrow("status 500");
    expect(t.exported("targets")).toHaveLength(2);
  });
});
