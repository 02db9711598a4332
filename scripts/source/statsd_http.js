/**
 * Receives StatsD metrics over HTTP, for browsers, functions and jobs that cannot be
 * scraped.
 *
 * POST /metrics accepts lines such as page_views:1|c|#path:/home with the types c
 * (counter), g (gauge; +1 and -1 change it), ms, h and d (summary: count and sum) and
 * s (set: number of distinct values), a sample rate (|@0.1) and tags (|#a:b,c:d).
 * Values are aggregated, survive restarts, and are sent every interval. A series ends
 * after an hour without a value.
 *
 *   source.statsd_http "default" {
 *   	interval   = "15s"
 *   	forward_to = [prometheus.remote_write.default.receiver]
 *
 *   	listen {
 *   		address = "0.0.0.0"
 *   		port    = 9125
 *   	}
 *   }
 *
 * Without `listen`, the route is below /api/v0/component/source.statsd_http.default/
 * at weir's own address.
 *
 * https://github.com/statsd/statsd/blob/master/docs/metric_types.md
 */
// @ts-check
import { arg, defineSource, state } from "weir";
import text from "weir/text";

const LINE = /^([^:|@#]+):([+-]?)([^|]+)\|(c|g|ms|h|d|s)(?:\|@([\d.]+))?(?:\|#(.*))?$/;
const SECONDS = { ms: 1000, h: 1, d: 1 };

/**
 * A series as state keeps it.
 * @param {string} name
 * @param {Record<string, string>} labels
 */
function keyOf(name, labels) {
  return JSON.stringify([name, labels]);
}

/** @param {string | undefined} tags */
function labelsOf(tags) {
  /** @type {Record<string, string>} */
  const labels = {};
  for (const tag of (tags ?? "").split(",")) {
    const [name, ...value] = tag.split(":");
    if (name !== "") labels[text.labelName(name)] = value.join(":");
  }
  return labels;
}

export default defineSource({
  interval: "15s",

  args: {
    labels: arg.map({ of: arg.string(), default: {}, doc: "Labels to add to all metrics; a tag of the same name has precedence." }),
  },

  state: {
    counters: state.counter({ max: 20000, ttl: "1h", scope: "persistent", doc: "Counters, and counts and sums of summaries." }),
    gauges: state.map({ max: 20000, ttl: "1h", scope: "persistent", doc: "Gauges." }),
    sets: state.set({ max: 100000, ttl: "1h", doc: "Values of sets, each after its series." }),
  },

  http: {
    "POST /metrics"(req, ctx) {
      const { counters, gauges, sets } = ctx.state;
      const lines = req.body.split("\n").filter((l) => l.trim() !== "");
      const wrong = [];
      for (const line of lines) {
        const m = LINE.exec(line.trim());
        const value = m ? Number(m[2] + m[3]) : NaN;
        const rate = m && m[5] !== undefined ? Number(m[5]) : 1;
        if (!m || (m[4] !== "s" && Number.isNaN(value)) || !(rate > 0 && rate <= 1)) {
          wrong.push(line.slice(0, 80));
          continue;
        }
        const [, name, sign, raw, type, , tags] = m;
        const metric = text.metricName(name);
        const labels = { ...ctx.args.labels, ...labelsOf(tags) };
        switch (type) {
          case "c":
            counters.add(keyOf(metric.replace(/(_total)?$/, "_total"), labels), value / rate);
            break;
          case "g":
            if (sign === "") gauges.set(keyOf(metric, labels), value);
            else gauges.update(keyOf(metric, labels), (old) => Number(old ?? 0) + value);
            break;
          case "s":
            sets.add(keyOf(metric, labels) + "\n" + raw); // no JSON has a line feed in it
            break;
          default: {
            const base = type === "ms" ? metric.replace(/(_ms|_milliseconds)?$/, "_seconds") : metric;
            counters.add(keyOf(base + "_count", labels), 1 / rate);
            counters.add(keyOf(base + "_sum", labels), value / SECONDS[/** @type {"ms" | "h" | "d"} */ (type)] / rate);
          }
        }
      }
      // Who gets an error sends all of it again: it is for those of whom nothing was taken.
      const accepted = lines.length - wrong.length;
      if (wrong.length > 0) return { status: accepted > 0 ? 200 : 400, json: { accepted, wrong: wrong.slice(0, 10) } };
    },
  },

  poll(ctx) {
    const { counters, gauges, sets } = ctx.state;
    /**
     * @param {string} key
     * @param {number} value
     * @param {"counter" | "gauge"} type
     */
    function emit(key, value, type) {
      const [name, labels] = JSON.parse(key);
      ctx.emit({ name, labels, value, type });
    }
    for (const [key, value] of Object.entries(counters.entries(20000))) emit(key, value, "counter");
    for (const [key, value] of Object.entries(gauges.entries(20000))) emit(key, Number(value), "gauge");

    const sizes = new Map();
    for (const member of sets.entries(100000)) {
      const key = member.slice(0, member.indexOf("\n"));
      sizes.set(key, (sizes.get(key) ?? 0) + 1);
    }
    for (const [key, n] of sizes) emit(key, n, "gauge");
  },
});
