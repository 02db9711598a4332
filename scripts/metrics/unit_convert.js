/**
 * Converts metrics to the base units of Prometheus: seconds, bytes, ratios and
 * degrees Celsius.
 *
 * request_duration_ms becomes request_duration_seconds, with its value divided by
 * 1,000. Counters (…_ms_total), histograms (…_ms_bucket with the label le, …_ms_sum)
 * and summaries are supported. Metrics in base units, metrics without a unit in their
 * name, and native histograms are not changed.
 *
 *   metrics.unit_convert "default" {
 *   	ignore     = ["node_cpu_scaling_frequency_percent"]
 *   	forward_to = [prometheus.remote_write.default.receiver]
 *   }
 *
 * Example Input:
 *   # TYPE http_latency_ms histogram
 *   http_latency_ms_bucket{le="250"} 3
 *   http_latency_ms_bucket{le="+Inf"} 4
 *   http_latency_ms_sum 1500
 *   http_latency_ms_count 4
 *   # TYPE disk_used_percent gauge
 *   disk_used_percent 40
 * Example Output:
 *   # TYPE http_latency_ms histogram
 *   http_latency_seconds_bucket{le="0.25"} 3
 *   http_latency_seconds_bucket{le="+Inf"} 4
 *   http_latency_seconds_sum 1.5
 *   http_latency_seconds_count 4
 *   # TYPE disk_used_percent gauge
 *   disk_used_ratio 0.4
 */
// @ts-check
import { arg, defineTransform } from "weir";

/** @typedef {(value: number) => number} Convert */

/** @type {[names: RegExp, unit: string, convert: Convert][]} */
const UNITS = [
  [/^(nanoseconds|nanos|ns)$/, "seconds", (v) => v / 1e9],
  [/^(microseconds|micros|us)$/, "seconds", (v) => v / 1e6],
  [/^(milliseconds|millis|ms)$/, "seconds", (v) => v / 1000],
  [/^(minutes|mins)$/, "seconds", (v) => v * 60],
  [/^hours$/, "seconds", (v) => v * 3600],
  [/^days$/, "seconds", (v) => v * 86400],
  [/^(kilobytes|kb)$/, "bytes", (v) => v * 1e3],
  [/^(megabytes|mb)$/, "bytes", (v) => v * 1e6],
  [/^(gigabytes|gb)$/, "bytes", (v) => v * 1e9],
  [/^(kibibytes|kib)$/, "bytes", (v) => v * 1024],
  [/^(mebibytes|mib)$/, "bytes", (v) => v * 1048576],
  [/^(gibibytes|gib)$/, "bytes", (v) => v * 1073741824],
  [/^bits$/, "bytes", (v) => v / 8],
  [/^(percent|pct)$/, "ratio", (v) => v / 100],
  [/^fahrenheit$/, "celsius", (v) => ((v - 32) * 5) / 9],
  [/^kelvin$/, "celsius", (v) => v - 273.15],
];

/** @typedef {{ name: string, value?: Convert, le?: Convert }} Conversion */

/**
 * Says what becomes of the metrics of a name; undefined: nothing.
 * @param {string} name
 * @returns {Conversion | undefined}
 */
function conversion(name) {
  const parts = /^(.*?_)([a-zA-Z]+)(_total|_bucket|_sum|_count)?$/.exec(name);
  if (!parts) return undefined;
  const [, stem, word, suffix = ""] = parts;
  const unit = UNITS.find(([names]) => names.test(word));
  if (!unit) return undefined;
  const to = { name: stem + unit[1] + suffix };
  switch (suffix) {
    case "_bucket":
      return { ...to, le: unit[2] };
    case "_count":
      return to;
  }
  return { ...to, value: unit[2] };
}

/** What is known of names: a VM sees the same ones again and again. */
const known = /** @type {Map<string, Conversion | undefined>} */ (new Map());

/** @param {string} name */
function remembered(name) {
  // weir:ignore mutate the cache changes no result; it is bounded in bytes, too
  if (name.length > 256) return conversion(name);
  if (!known.has(name)) {
    if (known.size > 10000) known.clear(); // weir:ignore mutate the bound only limits memory
    known.set(name, conversion(name));
  }
  return known.get(name);
}

export default defineTransform({
  args: {
    ignore: arg.list({ of: arg.string(), default: [], doc: "Names of metrics that are not converted." }),
  },

  metrics(batch, ctx) {
    const { ignore } = ctx.args;
    for (const [i, name, value, le] of batch.rows("name", "value", "labels.le")) {
      const to = remembered(name);
      if (!to || value === undefined || ignore.includes(name)) continue;
      /** @type {Record<string, string | number>} */
      const set = { name: to.name };
      if (to.value) set.value = to.value(value);
      if (to.le && le !== undefined && le !== "+Inf") set["labels.le"] = String(to.le(Number(le)));
      batch.set(i, set);
    }
  },
});
