import { component, http } from "weir/test";

const t = component("plain.js", { region: "us" });

describe("good.plain", () => {
  beforeEach(() => http({ "GET https://x/y": { status: 204 } }));

  test("adds labels", async () => {
    const out = t.metrics('up{job="api"} 1');
    expect(out.labelValues("team")).toEqual(["nobody"]);
    expect(out).toEqual('up{job="api",region="us",team="nobody"} 1');
    expect(out.value("up")).not.toBeUndefined();
  });

  test.each([[1, "a"], [2, "b"]])("case %d", (n, text) => expect(t.metrics(`${text} ${n}`)).toHaveLength(1));

  it("calls", () => {
    const fn = vi.fn((x: number) => x + 1);
    fn(1);
    expect(fn).toHaveBeenCalledWith(1);
    expect(() => { throw new Error("no"); }).toThrow(/no/);
  });

  it.skip("leaves the rest alone", () => t.unchanged(fixtures.everyMetricKind));
});
