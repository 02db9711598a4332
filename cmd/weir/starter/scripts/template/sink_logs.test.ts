// A mock answers the requests of the component: a test never uses the network.
// 'weir test --help' lists everything that a test can use.
import { component, describe, expect, http, test } from "weir/test";

const URL = "https://archive.internal/lines";

describe("template.sink_logs", () => {
  test("sends one JSON object per line", () => {
    const mock = http({ [`POST ${URL}`]: { status: 200 } });
    const t = component("sink_logs.ts", { url: URL });
    t.logs('{app="shop"} @2025-01-01T00:00:00Z order placed\n{app="shop"} @2025-01-01T00:00:01Z card refused');
    const sent = [];
    for (const line of mock.calls()[0].body.trimEnd().split("\n")) sent.push(JSON.parse(line));
    expect(sent).toEqual([
      { time: "1735689600000000000", labels: { app: "shop" }, line: "order placed" },
      { time: "1735689601000000000", labels: { app: "shop" }, line: "card refused" },
    ]);
  });

  test.each([300, 429, 503])("sends lines again after status %d", (status) => {
    // A list of responses answers one request after the other.
    const mock = http({ [`POST ${URL}`]: [{ status }, { status: 200 }] });
    const t = component("sink_logs.ts", { url: URL });
    expect(t.logs('{app="shop"} order placed').outcome()).toMatchObject({ waiting: 1, reason: `status ${status}` });
    t.advance("5m");
    expect(mock.calls()).toHaveLength(2);
    expect(mock.calls()[1].body).toBe(mock.calls()[0].body);
  });

  test("gives lines up if the API refuses them", () => {
    const mock = http({ [`POST ${URL}`]: { status: 400, body: "no such archive" } });
    const outcome = component("sink_logs.ts", { url: URL }).logs('{app="shop"} order placed').outcome();
    expect(outcome.lost).toEqual({ rejected: 1 });
    expect(outcome.reason).toContain("no such archive");
    expect(mock.calls()).toHaveLength(1);
  });
});
