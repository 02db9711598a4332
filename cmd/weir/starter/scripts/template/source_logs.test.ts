// A test sends requests to the component and checks the responses and the lines.
// 'weir test --help' lists everything that a test can use.
import { component, describe, expect, test } from "weir/test";

describe("template.source_logs", () => {
  const t = component("source_logs.ts", { token: "s3cret" });
  const request = { method: "POST", path: "/events/shop", headers: { Authorization: "Bearer s3cret" } };

  test("sends an event as a line", () => {
    const response = t.request({ ...request, body: '{"msg":"deployed"}' });
    expect(response.status).toBe(204);
    expect(response.sent.lines()).toEqual(['{"msg":"deployed"}']);
    expect(response.sent.streams()).toEqual(['{app="shop"}']);
  });

  test("refuses a wrong token", () => {
    const response = t.request({ ...request, headers: { Authorization: "Bearer guess" }, body: '{"msg":"deployed"}' });
    expect(response.status).toBe(401);
    expect(response.sent).toHaveLength(0);
  });

  test("refuses a body that is not JSON", () => {
    const response = t.request({ ...request, body: "deployed" });
    expect(response.status).toBe(400);
    expect(response.body).toContain("cannot decode JSON");
    expect(response.sent).toHaveLength(0);
  });
});
