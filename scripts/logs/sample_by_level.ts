/**
 * Samples lines by their level, such as all errors and one debug line in a hundred.
 *
 * The level is a label, structured metadata, or a field of JSON or logfmt. Lines with
 * a level that `keep` does not list are all kept. The decision depends on a hash of
 * the line, not on chance, so a line that is sent again gets the same decision. With
 * `by`, all lines of a trace are kept or dropped together, even on different hosts.
 * Kept lines have the structured metadata sample_rate, so that counts can be corrected.
 *
 *   logs.sample_by_level "default" {
 *   	keep       = {debug = 0.01, info = 0.2}
 *   	by         = "json.trace_id"
 *   	forward_to = [loki.write.default.receiver]
 *   }
 *
 * Example Args:
 *   keep = { debug = 0, info = 0.5 }
 *   by   = "json.trace"
 * Example Input:
 *   {app="a"} {"level":"debug","trace":"t1"}
 *   {app="a"} {"level":"INFO","trace":"t1"}
 *   {app="a"} {"level":"info","trace":"t2"}
 *   {app="a"} {"level":"error","trace":"t2"}
 *   {app="a"} no level
 * Example Output:
 *   {app="a"} {sample_rate="0.5"} {"level":"INFO","trace":"t1"}
 *   {app="a"} {"level":"error","trace":"t2"}
 *   {app="a"} no level
 */
import { arg, defineTransform } from "weir";
import hash from "weir/hash";

const ALIASES = new Map(Object.entries({ warning: "warn", err: "error", information: "info", dbg: "debug", fatal: "critical", crit: "critical" }));

export default defineTransform({
  args: {
    level: arg.list({ of: arg.string(), default: ["labels.level", "labels.detected_level", "meta.level", "json.level", "logfmt.level"], doc: "Fields that may contain the level; the first one that a line has is used." }),
    keep: arg.map({ of: arg.number(), default: { trace: 0, debug: 0.1 }, doc: "Share of the lines to keep per level, from 0 to 1." }),
    by: arg.string({ default: "", doc: "Lines with the same value of this field, such as json.trace_id, are kept or dropped together." }),
  },

  logs(batch, ctx) {
    const { level: places, keep, by } = ctx.args;
    const rates = new Map(Object.entries(keep)); // of an object, a level called "constructor" would have a value
    const fields = by === "" ? ["line", "ts"] : [by, "line", "ts"];

    for (const [i, ...values] of batch.rows(...places, ...fields)) {
      const said = values.slice(0, places.length).find((v) => v !== undefined && v !== "");
      if (said === undefined) continue;
      const name = String(said).toLowerCase();
      const rate = rates.get(name) ?? rates.get(ALIASES.get(name) ?? "");
      if (rate === undefined || rate >= 1) continue;
      const together = by === "" ? undefined : values[places.length];
      const key = together === undefined ? `${values.at(-1)} ${values.at(-2)}` : String(together);
      // 52 bits of the hash are a number from 0 to 1.
      const part = parseInt(hash.xxhash(key).slice(0, 13), 16) / 2 ** 52;
      if (part >= rate) batch.drop(i);
      else batch.set(i, "meta.sample_rate", String(rate));
    }
  },
});
