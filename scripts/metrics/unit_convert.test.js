import { component, describe, expect, fixtures, test } from "weir/test";

describe("metrics.unit_convert", () => {
  const t = component("unit_convert.js", { ignore: ["left_alone_ms"] });

  test.each([
    ["a_ms", 1500, "a_seconds", 1.5],
    ["a_us_total", 2e6, "a_seconds_total", 2],
    ["a_ns", 3e9, "a_seconds", 3],
    ["a_mins", 2, "a_seconds", 120],
    ["a_days", 2, "a_seconds", 172800],
    ["mem_kb", 2, "mem_bytes", 2000],
    ["mem_gb", 2, "mem_bytes", 2e9],
    ["mem_mib", 2, "mem_bytes", 2097152],
    ["mem_gib", 2, "mem_bytes", 2147483648],
    ["temp_kelvin", 300, "temp_celsius", 26.85],
    [`${"x".repeat(300)}_ms`, 1500, `${"x".repeat(300)}_seconds`, 1.5],
    ["uptime_hours", 2, "uptime_seconds", 7200],
    ["mem_kib", 4, "mem_bytes", 4096],
    ["mem_mb", 4, "mem_bytes", 4e6],
    ["net_bits_total", 80, "net_bytes_total", 10],
    ["temp_fahrenheit", 212, "temp_celsius", 100],
    ["used_pct", 50, "used_ratio", 0.5],
    ["x_ms_sum", 10, "x_seconds_sum", 0.01],
    ["x_ms_count", 10, "x_seconds_count", 10],
  ])("%s %d is %s %d", (from, value, to, want) => {
    expect(t.metrics(`${from}{job="a"} ${value}`).value(`${to}{job="a"}`)).toBeCloseTo(want, 9);
  });

  test("moves the bounds of histograms and not of summaries", () => {
    const out = t.metrics('a_ms_bucket{le="5"} 1\na_ms_bucket{le="+Inf"} 2\nb_ms{quantile="0.5"} 9');
    expect(out.labelValues("le")).toEqual(["+Inf", "0.005"]);
    expect(out.value('b_seconds{quantile="0.5"}')).toBe(0.009);
  });

  test("leaves everything else alone", () => {
    t.unchanged("up 1\nms 5\nleft_alone_ms 3\nitems_total 4\nbytes_per_second 3\nrpm 3");
    t.unchanged(fixtures.everyMetricKind);
    t.unchanged(fixtures.nativeHistograms);
  });

  test("ends what it renamed", () => {
    expect(t.metrics("a_ms 1\na_ms stale").text()).toContain("a_seconds stale");
  });
});
