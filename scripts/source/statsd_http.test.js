import { component, describe, expect, test } from "weir/test";

describe("source.statsd_http", () => {
  const open = (args) => component("statsd_http.js", args);
  const post = (t, body) => t.request({ method: "POST", path: "/metrics", body });

  test("adds up what comes", () => {
    const t = open({ labels: { site: "lab" } });
    expect(post(t, "views:1|c|#path:/a:b\nviews:2|c|@0.5|#path:/a:b\nusers:7|g\nusers:-2|g\nload_ms:250|ms\nload_ms:750|ms\n").status).toBe(200);
    post(t, "who:ann|s\nwho:bob|s\nwho:ann|s");
    const out = t.advance("15s");
    expect(out.value('views_total{path="/a:b",site="lab"}')).toBe(5);
    expect(out.value('users{site="lab"}')).toBe(5);
    expect(out.value('load_seconds_count{site="lab"}')).toBe(2);
    expect(out.value('load_seconds_sum{site="lab"}')).toBe(1);
    expect(out.value('who{site="lab"}')).toBe(2);
  });

  test("has a type for each metric", () => {
    const t = open();
    post(t, "views:1|c\nusers:7|g\nusers:3|g\ntemp:-2|g\nwho:ann|s\nwait_ms:250|ms|@0.5\ntook_ms:2|h\nsize:3|d|#:x");
    expect(t.advance("15s").text().trim().split("\n").sort()).toEqual([
      "# TYPE size_count counter", "# TYPE size_sum counter", "# TYPE temp gauge", "# TYPE took_ms_count counter", "# TYPE took_ms_sum counter",
      "# TYPE users gauge", "# TYPE views_total counter", "# TYPE wait_seconds_count counter", "# TYPE wait_seconds_sum counter", "# TYPE who gauge",
      "size_count 1", "size_sum 3", "temp -2", "took_ms_count 1", "took_ms_sum 2",
      "users 3", "views_total 1", "wait_seconds_count 2", "wait_seconds_sum 0.5", "who 1",
    ]);
  });

  test("goes on counting over a reload", () => {
    const t = open();
    post(t, "views:1|c");
    t.reload();
    post(t, "views:1|c");
    expect(t.advance("15s").value("views_total")).toBe(2);
  });

  test("names the lines that are wrong, and takes the others", () => {
    const t = open();
    const answer = post(t, "a:1|c\nnonsense\nb:x|g\nc:1|c|@2\nd:1|c|@0\n");
    expect(answer.status).toBe(200);
    expect(JSON.parse(answer.body)).toEqual({ accepted: 1, wrong: ["nonsense", "b:x|g", "c:1|c|@2", "d:1|c|@0"] });
    expect(t.advance("15s").value("a_total")).toBe(1);
    expect(post(t, "nonsense").status).toBe(400);
    const { status, body } = post(t, "");
    expect([status, body]).toEqual([200, ""]);
  });

  test("shows ten wrong lines, and 80 characters of each", () => {
    const { wrong } = JSON.parse(post(open(), `${"x".repeat(81)}\n`.repeat(11)).body);
    expect(wrong).toEqual(Array(10).fill("x".repeat(80)));
  });

  test("ends series that are not heard of", () => {
    const t = open();
    post(t, "a:1|c");
    expect(t.advance("15s")).toHaveLength(1);
    t.advance("61m");
    expect(t.advance("15s").value("a_total")).toBeUndefined();
  });
});
