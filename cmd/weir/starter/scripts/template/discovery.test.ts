// A mock answers the requests of the component: a test never uses the network.
// 'weir test --help' lists everything that a test can use.
import { component, describe, expect, http, test } from "weir/test";

const URL = "https://inventory.internal/hosts";
const HOSTS = { json: [{ address: "10.0.0.1", team: "db" }, { address: "10.0.0.2" }] };

describe("template.discovery", () => {
  test("exports a target per host", () => {
    http({ [URL]: HOSTS });
    const t = component("discovery.ts", { url: URL });
    t.poll();
    expect(t.exported("targets")).toEqual([
      { __address__: "10.0.0.1:9100", team: "db" },
      { __address__: "10.0.0.2:9100" },
    ]);
  });

  test("uses the argument port", () => {
    http({ [URL]: HOSTS });
    const t = component("discovery.ts", { url: URL, port: 8080 });
    t.poll();
    expect(t.exported("targets")).toContainEqual({ __address__: "10.0.0.2:8080" });
  });

  test("keeps the targets if the inventory fails", () => {
    // A list of responses answers one request after the other.
    http({ [URL]: [HOSTS, { status: 500 }] });
    const t = component("discovery.ts", { url: URL });
    t.poll();
    expect(() => t.poll()).toThrow("returned status 500");
    expect(t.exported("targets")).toHaveLength(2);
  });
});
