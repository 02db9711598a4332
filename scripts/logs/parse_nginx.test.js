import { component, describe, expect, test } from "weir/test";

const LINE = '10.0.0.7 - - [14/Nov/2023:22:13:20 +0000] "GET /cart HTTP/1.1" 304 - "https://shop.example/" "Mozilla/5.0 (X11; \\"quoted\\")"';

describe("logs.parse_nginx", () => {
  test("makes JSON of what is there", () => {
    const out = component("parse_nginx.js", {}).logs(`{} ${LINE}`);
    expect(JSON.parse(out.lines()[0])).toEqual({
      remote_addr: "10.0.0.7", method: "GET", path: "/cart", protocol: "HTTP/1.1", status: 304,
      referer: "https://shop.example/", user_agent: 'Mozilla/5.0 (X11; \\"quoted\\")',
    });
    expect(out.streams()).toEqual(['{class="3xx",method="GET"}']);
  });

  test("reads the common format, and requests that are none", () => {
    const out = component("parse_nginx.js", { labels: { class: "class" } }).logs(
      '{} h - frank [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.0" 200 2326\n{} h - - [10/Oct/2000:13:55:36 -0700] "\\x16\\x03" 400 166',
    );
    expect(out.lines().map((l) => JSON.parse(l))).toEqual([
      { remote_addr: "h", user: "frank", method: "GET", path: "/", protocol: "HTTP/1.0", status: 200, bytes: 2326 },
      { remote_addr: "h", request: "\\x16\\x03", status: 400, bytes: 166 },
    ]);
  });

  test("reads another format", () => {
    const t = component("parse_nginx.js", {
      pattern: "^(?P<time>\\S+) (?P<host>\\S+) (?P<status>\\d+) (GET|POST) (?P<request_time>\\S+)$",
      time_format: "rfc3339", labels: { host: "host" },
    });
    expect(t.logs("{} 2024-01-01T00:00:00Z www 200 GET 0.5").text()).toBe(
      '{host="www"} @2024-01-01T00:00:00Z {"status":200,"request_time":0.5,"host":"www"}\n',
    );
  });

  test("counts lines that do not fit, or whose time does not", () => {
    const t = component("parse_nginx.js", {});
    t.logs(`{} ${LINE}`);
    expect(t.ownMetrics()).toEqual([]);
    t.logs("{} nonsense");
    expect(t.ownMetrics()).toEqual(["weir_script_custom_unparsed_total 1"]);
    const long = LINE.replace("/cart", "/" + "x".repeat(65536));
    const out = t.logs(`{} nonsense\n{} ${LINE.replace("14/Nov/2023", "yesterday")}\n{} ${long}`);
    expect(out.labelValues("parsed")).toEqual(["no"]);
    expect(t.ownMetrics()).toEqual(["weir_script_custom_unparsed_total 4"]);
  });

  test("parses lines of up to 65,536 characters", () => {
    const t = component("parse_nginx.js", { pattern: "^(?P<first>.)" });
    expect(t.logs(`{} ${"x".repeat(65536)}\n{} ${"x".repeat(65537)}`).lines()).toEqual(['{"first":"x"}', "x".repeat(65537)]);
  });

  test("sets metadata that a line has", () => {
    const out = component("parse_nginx.js", { labels: {}, metadata: { from: "remote_addr", size: "bytes" }, json: false }).logs(`{} ${LINE}`);
    expect(out[0].metadata).toEqual({ from: "10.0.0.7" });
  });

  test("takes a pattern without a time", () => {
    const t = component("parse_nginx.js", { pattern: "^(?P<host>\\S+) (?P<status>\\d+)$", labels: { host: "host" } });
    expect(t.logs("{} www 200").text()).toContain('{host="www"}');
    expect(t.ownMetrics()).toEqual([]);
  });

  test("keeps the time when told to, or when there is none", () => {
    expect(component("parse_nginx.js", { time: false, json: false, labels: {} }).logs(`{} ${LINE}`).lines()).toEqual([LINE]);
    const odd = LINE.replace("14/Nov/2023", "yesterday");
    component("parse_nginx.js", { json: false, labels: {} }).unchanged(`{} ${odd}`);
  });
});
