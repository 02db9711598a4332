import { component, describe, expect, http, test, type Reply } from "weir/test";

const API = "https://slack.com/api/chat.postMessage";
const OK: Reply = { status: 200, body: '{"ok":true}' };

function open(answer: Reply, args: object = {}) {
  const mocks = http({ [`POST ${API}`]: answer });
  const t = component("slack.ts", { token: "xoxb", channel: "#ops", ...args });
  const sent = () => mocks.calls().map((c) => JSON.parse(c.body).text as string);
  return { t, mocks, sent };
}

describe("sink.slack", () => {
  test("posts what came together, by stream", () => {
    const { t, mocks, sent } = open(OK);
    t.logs('{job="a"} one <b>\n{job="b"} two\n{job="a"} three');
    expect(sent()).toEqual(["*a*\n```one &lt;b&gt;\nthree```\n*b*\n```two```"]);
    expect(JSON.parse(mocks.calls()[0].body)).toEqual({ channel: "#ops", text: sent()[0], unfurl_links: false });
    expect(t.state("left")).toEqual({});
  });

  test("shows a few of many lines", () => {
    const { t, sent } = open(OK, { lines: 2, title: "" });
    t.logs("{} 1\n{} 2\n{} 3\n{} 4");
    t.logs(`{} ${"x".repeat(501)}\n{} ${"x".repeat(500)}`);
    expect(sent()).toEqual(["```1\n2``` and 2 more", `\`\`\`${"x".repeat(500)}…\n${"x".repeat(500)}\`\`\``]);
  });

  test("stops at a number of messages a minute, and says what is missing", () => {
    const { t, sent } = open(OK, { per_minute: 1, title: "" });
    t.logs("{} 1");
    t.advance("20s");
    expect(t.logs("{} 2\n{} 3").outcome().waiting).toBe(0);
    expect(sent()).toHaveLength(1);
    t.advance("1m");
    t.logs("{} 4");
    expect(sent()[1]).toBe("_2 lines before were not posted_\n```4```");
    t.logs("{} 5");
    t.advance("1m");
    t.logs("{} 6");
    expect(sent()[2]).toBe("_1 lines before were not posted_\n```6```");
    t.advance("1m");
    t.logs("{} 7");
    expect(sent()[3]).toBe("```7```");
  });

  test("posts 20 messages a minute with 20 lines each", () => {
    const { t, sent } = open(OK, { title: "" });
    const lines = "{} x\n".repeat(21);
    for (let i = 0; i < 21; i++) t.logs(lines);
    expect(sent()).toEqual(Array(20).fill(`\`\`\`${Array(20).fill("x").join("\n")}\`\`\` and 1 more`));
  });

  test("cuts long titles", () => {
    const { t, sent } = open(OK, { title: "x".repeat(201) });
    t.logs("{} 1");
    expect(sent()).toEqual([`*${"x".repeat(200)}*\n\`\`\`1\`\`\``]);
  });

  const again: [string, Reply][] = [
    ["asks to wait", { status: 429, headers: { "Retry-After": "30" } }],
    ["knows no such channel", { status: 200, body: '{"ok":false,"error":"channel_not_found"}' }],
  ];
  for (const [what, refused] of again) {
    test(`posts again when Slack ${what}`, () => {
      const { t, sent } = open([refused, OK]);
      expect(t.logs("{} 1").outcome().waiting).toBe(1);
      t.advance("1m");
      expect(sent()).toHaveLength(2);
    });
  }

  test("gives up what is wrong for good", () => {
    const { t, sent } = open({ status: 200, body: '{"ok":false,"error":"msg_too_long"}' });
    expect(t.logs("{} 1").outcome().lost).toEqual({ rejected: 1 });
    t.advance("1m");
    expect(sent()).toHaveLength(1);
  });

  test("gives up a message that the server refuses", () => {
    for (const status of [400, 413]) {
      const { t } = open({ status, body: "x".repeat(300) });
      const { lost, reason } = t.logs("{} 1").outcome();
      expect(lost).toEqual({ rejected: 1 });
      expect(reason).toContain(`status ${status}: ${"x".repeat(200)}`);
      expect(reason).not.toContain("x".repeat(201));
    }
    for (const status of [300, 404, 500]) expect(open({ status }).t.logs("{} 1").outcome().waiting).toBe(1);
  });

  test("waits as long as Slack asks, up to ten minutes", () => {
    for (const [asked, want] of [["30", 30], ["599", 599], ["9000", 600], ["2", 2], ["soon", 1]] as const) {
      expect(open({ status: 429, headers: { "Retry-After": asked } }).t.logs("{} 1").outcome().after).toBe(want);
    }
  });

  for (const [asked, want] of [["1", 3], ["0", 2]] as const) {
    test(`posts ${want} times in two seconds when Slack asks to wait for ${asked} s`, () => {
      const { t, sent } = open([{ status: 429 }, { status: 429, headers: { "Retry-After": asked } }, OK]);
      t.logs("{} 1");
      t.advance("1s");
      t.advance("1s");
      expect(sent()).toHaveLength(want);
    });
  }

  test("ends a message where Slack would", () => {
    const { t, sent } = open(OK, { title: "" });
    t.logs(Array.from({ length: 9 }, () => `{} ${"x".repeat(500)}`).join("\n"));
    expect(sent()[0].match(/x{500}/g)).toHaveLength(6);
    expect(sent()[0]).toContain(" and 3 more");
  });

  test("shows what still fits", () => {
    const { t, sent } = open(OK);
    const six = `{job="a"} ${"x".repeat(500)}\n`.repeat(6);
    t.logs(`${six}{job="a"} ${"y".repeat(494)}\n{job="b"} z`);
    expect(sent()[0]).toContain("y".repeat(494) + "```\n*b*\n and 1 more");
  });

  test("escapes titles, and quotes that would end the block", () => {
    const { t, sent } = open(OK, { title: "{job} & {none}" });
    t.logs('{job="<a>"} a ``` b > c');
    expect(sent()).toEqual(["*&lt;a&gt; &amp; *\n```a ''' b &gt; c```"]);
  });

  test("needs a token and a channel for the API", () => {
    for (const args of [{}, { token: "x" }, { channel: "#ops" }]) {
      expect(() => component("slack.ts", args)).toThrow("token and channel are missing");
    }
  });

  test("posts to a webhook", () => {
    const url = "https://chat.internal/hooks/x";
    const mocks = http({ [`POST ${url}`]: "ok" });
    component("slack.ts", { url }).logs('{job="a"} one');
    expect(JSON.parse(mocks.calls()[0].body)).toEqual({ text: "*a*\n```one```" });
  });
});
