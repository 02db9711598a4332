import hash from "weir/hash";
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
    t.metrics('disk_free{host="a"} 9 5000');
    expect(t.state("known")).toEqual({});
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
    const start = 1_700_000_000_000;
    for (const minute of [0, 1, 60, 239, 240]) t.metrics(`disk_free{host="a"} 6 ${start + minute * 60_000}`);
    expect(sent()).toHaveLength(2);
  });

  test("does not call at the threshold", () => {
    for (const rule of [{ above: 5 }, { below: 5 }, { above: 6, below: 4 }]) {
      const { t, sent } = open({ status: 200 }, rule);
      t.metrics('disk_free{host="a"} 5 1000');
      expect(sent()).toEqual([]);
    }
    const { t, sent } = open({ status: 200 }, { above: 5 });
    t.metrics('disk_free{host="a"} 4 1000');
    expect(sent()).toEqual([]);
  });

  test("follows a series within a batch", () => {
    const { t, sent } = open({ status: 200 }, { above: 5, summary: "" });
    t.metrics('disk_free{host="a"} 6 1\ndisk_free{host="a"} 7 2\ndisk_free{host="a"} 4 3');
    expect(sent()).toHaveLength(1);
    expect(sent()[0].status).toBe("firing");
    expect(sent()[0].alerts.map((a: object) => Object(a).status)).toEqual(["firing", "resolved"]);
    expect(sent()[0].alerts[0].annotations).toEqual({});
    t.metrics('disk_free{host="b"} 6 1');
    t.metrics('disk_free{host="b"} 4 2');
    expect(sent()[2].status).toBe("resolved");
  });

  test("has the times that JavaScript has", () => {
    const { t, sent } = open({ status: 200 }, { above: 5 });
    t.metrics('disk_free{host="a"} 6 9000000000000000\ndisk_free{host="b"} 6 -9000000000000000');
    expect(sent()[0].alerts.map((a: object) => Object(a).startsAt)).toEqual(["+275760-09-13T00:00:00.000Z", "-271821-04-20T00:00:00.000Z"]);
  });

  test("remembers long label sets by a hash", () => {
    const key = (host: string) => JSON.stringify([["alertname", "DiskFull"], ["host", host], ["metric", "disk_free"]]);
    const fits = "x".repeat(1000 - key("").length);
    for (const [host, want] of [[fits, key(fits)], [`${fits}x`, hash.sha256(key(`${fits}x`))]] as const) {
      const { t } = open({ status: 200 }, { above: 5 });
      t.metrics(`disk_free{host="${host}"} 6 1000`);
      expect(t.state("known")).toEqual({ [want]: { since: 1000, said: 1000 } });
    }
  });

  test("tells what the other side answered", () => {
    for (const status of [300, 404, 500]) {
      const { t } = open({ status, body: `(${"x".repeat(300)}` }, { above: 5 });
      expect(t.metrics('disk_free{host="a"} 6 1000').outcome()).toMatchObject({ waiting: 1, reason: `status ${status}: (${"x".repeat(199)}` });
    }
    expect(open({ status: 299 }, { above: 5 }).t.metrics('disk_free{host="a"} 6 1000').outcome()).toMatchObject({ waiting: 0, lost: {} });
    expect(open({ status: 413 }, { above: 5 }).t.metrics('disk_free{host="a"} 6 1000').outcome().lost).toEqual({ rejected: 1 });
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
