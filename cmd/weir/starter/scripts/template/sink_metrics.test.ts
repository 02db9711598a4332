// A mock answers the requests of the component: a test never uses the network.
// 'weir test --help' lists everything that a test can use.
import { component, describe, expect, fixtures, http, test } from "weir/test";

const URL = "https://warehouse.internal/samples";

describe("template.sink_metrics", () => {
  test("sends samples as JSON", () => {
    const mock = http({ [`POST ${URL}`]: { status: 200 } });
    const t = component("sink_metrics.ts", { url: URL });
    expect(t.metrics('up{job="api"} 1 1000\nup{job="web"} 0 1000').outcome().delivered).toBe(2);
    expect(JSON.parse(mock.calls()[0].body)).toEqual([
      { name: "up", labels: { job: "api" }, value: 1, time: 1000 },
      { name: "up", labels: { job: "web" }, value: 0, time: 1000 },
    ]);
  });

  test.each([300, 429, 503])("sends samples again after status %d", (status) => {
    // A list of responses answers one request after the other.
    const mock = http({ [`POST ${URL}`]: [{ status }, { status: 200 }] });
    const t = component("sink_metrics.ts", { url: URL });
    expect(t.metrics("up 1").outcome()).toMatchObject({ waiting: 1, reason: `status ${status}` });
    t.advance("5m");
    expect(mock.calls()).toHaveLength(2);
    expect(mock.calls()[1].body).toBe(mock.calls()[0].body);
  });

  test("gives samples up if the API refuses them", () => {
    const mock = http({ [`POST ${URL}`]: { status: 400, body: "no such table" } });
    const outcome = component("sink_metrics.ts", { url: URL }).metrics("up 1").outcome();
    expect(outcome.lost).toEqual({ rejected: 1 });
    expect(outcome.reason).toContain("no such table");
    expect(mock.calls()).toHaveLength(1);
  });

  test("leaves out records that JSON cannot express", () => {
    const mock = http({ [`POST ${URL}`]: { status: 200 } });
    const t = component("sink_metrics.ts", { url: URL });
    t.metrics("a NaN\nb +Inf\nc stale\nd 1");
    t.metrics(fixtures.nativeHistograms);
    expect(mock.calls()).toHaveLength(1);
    expect(JSON.parse(mock.calls()[0].body)).toHaveLength(1);
  });
});
