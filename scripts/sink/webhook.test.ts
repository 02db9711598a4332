import { component, describe, expect, http, test, type Reply } from "weir/test";

const URL = "https://chat.internal/hook";

function open(answer: Reply, rule: object) {
  const mocks = http({ [`POST ${URL}`]: answer });
  const t = component("webhook.ts", {
    url: URL,
    rule: [{ name: "DiskFull", metric: "^disk_free$", summary: "{host} has {value}", ...rule }],
  });
  const sent = () => mocks.calls().map((c) => JSON.parse(c.body));
  return { t, sent };
}

describe("sink.webhook", () => {
  test("calls when a bound is crossed and when it is back", () => {
    const { t, sent } = open({ status: 200 }, { below: 5, labels: { severity: "page" } });
    t.metrics('disk_free{host="a"} 7 1000\nother 1 1000');
    expect(sent()).toEqual([]);
    t.metrics('disk_free{host="a"} 3 2000');
    t.metrics('disk_free{host="a"} 2 3000'); // it was said
    t.metrics('disk_free{host="a"} 9 4000');
    expect(sent()).toEqual([
      {
        version: "4", status: "firing", receiver: "weir",
        alerts: [{
          status: "firing",
          labels: { alertname: "DiskFull", host: "a", metric: "disk_free", severity: "page" },
          annotations: { summary: "a has 3" },
          startsAt: "1970-01-01T00:00:02.000Z",
          endsAt: "0001-01-01T00:00:00Z",
        }],
      },
      expect.objectContaining({
        status: "resolved",
        alerts: [expect.objectContaining({ status: "resolved", startsAt: "1970-01-01T00:00:02.000Z", endsAt: "1970-01-01T00:00:04.000Z" })],
      }),
    ]);
  });

  test("waits as long as the rule says", () => {
    const { t, sent } = open({ status: 200 }, { above: 5, for: "10s" });
    t.metrics('disk_free{host="a"} 6 1000');
    t.metrics('disk_free{host="a"} 6 9000');
    expect(sent()).toHaveLength(0);
    t.metrics('disk_free{host="a"} 6 11000');
    expect(sent()).toHaveLength(1);
    // Another one that is back in time is never told.
    t.metrics('disk_free{host="b"} 6 12000');
    t.metrics('disk_free{host="b"} 4 13000');
    expect(sent()).toHaveLength(1);
  });

  test("tells again of what goes on", () => {
    const { t, sent } = open({ status: 200 }, { above: 5 });
    t.metrics('disk_free{host="a"} 6 1000');
    t.metrics('disk_free{host="a"} 6 2000');
    t.metrics(`disk_free{host="a"} 6 ${1000 + 4 * 3600 * 1000}`);
    expect(sent()).toHaveLength(2);
  });

  test("tells that a series ended", () => {
    const { t, sent } = open({ status: 200 }, { above: 5 });
    t.metrics('disk_free{host="a"} 6 1000');
    t.metrics('disk_free{host="a"} stale 2000');
    expect(sent()[1].alerts[0]).toMatchObject({ status: "resolved", annotations: { summary: "a has gone" } });
  });

  test("calls again when the call failed", () => {
    const { t, sent } = open([{ status: 503 }, { status: 200 }], { above: 5 });
    expect(t.metrics('disk_free{host="a"} 6 1000').outcome()).toMatchObject({ waiting: 1, reason: "status 503: " });
    t.advance("1m");
    expect(sent()).toHaveLength(2);
    expect(sent()[1]).toEqual(sent()[0]);
  });

  test("gives up what the other side does not understand", () => {
    const { t, sent } = open([{ status: 400, body: "no such room" }, { status: 200 }], { above: 5 });
    expect(t.metrics('disk_free{host="a"} 6 1000').outcome().lost).toEqual({ rejected: 1 });
    t.advance("1m");
    expect(sent()).toHaveLength(1);
  });
});
