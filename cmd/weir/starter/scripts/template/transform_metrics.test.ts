// Each test sends records to the component and checks the output.
// 'weir test --help' lists everything that a test can use.
import { component, describe, expect, fixtures, test } from "weir/test";

describe("template.transform_metrics", () => {
  const t = component("transform_metrics.ts", { region: "eu", drop: "_debug$" });

  test("adds the region to all series", () => {
    const out = t.metrics(`
      up{job="api"} 1
      up{job="web"} 0
    `);
    expect(out).toHaveLength(2);
    expect(out.labelValues("region")).toEqual(["eu"]);
  });

  test("drops the metrics that the argument drop matches", () => {
    const out = t.metrics(`
      go_goroutines 12
      cache_debug 3
    `);
    expect(out.names()).toEqual(["go_goroutines"]);
    expect(out.dropped()).toBe(1);
  });

  // A fixture contains cases that are easily forgotten, such as staleness markers.
  test("does not change anything else", () => {
    t.unchanged(fixtures.everyMetricKind);
  });
});
