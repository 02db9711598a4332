// A mock answers the requests of the component: a test never uses the network.
// 'weir test --help' lists everything that a test can use.
import { component, describe, expect, http, test } from "weir/test";

const URL = "https://queues.internal/api/queues";

describe("template.source_metrics", () => {
  test("sends the depth of each queue", () => {
    http({
      [URL]: {
        json: [
          { name: "mail", depth: 3 },
          { name: "video", depth: 0 },
        ],
      },
    });
    expect(component("source_metrics.ts", { url: URL }).poll()).toEqual(`
      # TYPE queue_depth gauge
      # HELP queue_depth Messages that wait in the queue.
      queue_depth{queue="mail"} 3
      queue_depth{queue="video"} 0
    `);
  });

  test("polls once per interval", () => {
    const mock = http({ [URL]: { json: [] } });
    component("source_metrics.ts", { url: URL }).advance("90s");
    expect(mock.calls()).toHaveLength(3);
  });

  test("reports an error of the API", () => {
    http({ [URL]: { status: 503 } });
    expect(() => component("source_metrics.ts", { url: URL }).poll()).toThrow("returned status 503");
  });
});
