/**
 * Polls a JSON API and makes metrics of what is in its answers.
 *
 * Each block `metric` names a value by its path in the answer, or with `each` a list
 * (or an object) of which every element gives a sample. Numbers, booleans and texts
 * with a number in them are values; what is missing gives no sample.
 *
 *   source.json_endpoint "default" {
 *   	url        = "https://queue.internal/api/overview"
 *   	interval   = "30s"
 *   	forward_to = [prometheus.remote_write.default.receiver]
 *
 *   	metric {
 *   		name = "queue_messages_total"
 *   		type = "counter"
 *   		path = "totals.messages"
 *   	}
 *
 *   	metric {
 *   		name   = "queue_depth"
 *   		each   = "queues"
 *   		path   = "depth"
 *   		labels = {queue = "name"}
 *   	}
 *
 *   	script {
 *   		allow {
 *   			http = ["https://queue.internal/*"]
 *   		}
 *   	}
 *   }
 *
 * How it went is told with the label url: json_endpoint_success (1 when the answer
 * had status 200 and was understood) and json_endpoint_duration_seconds.
 */
import { arg, defineSource } from "weir";

type Json = null | boolean | number | bigint | string | Json[] | { [key: string]: Json };

/** Finds what a path such as queues.0.name leads to. */
function pick(value: Json | undefined, path: string): Json | undefined {
  for (const key of path.split(".")) {
    if (key === "") continue;
    if (value === null || typeof value !== "object") return undefined;
    value = (value as { [key: string]: Json })[key];
  }
  return value;
}

function numberOf(value: Json | undefined): number | undefined {
  switch (typeof value) {
    case "number":
      return value;
    case "bigint":
    case "boolean":
      return Number(value);
    case "string":
      return value.trim() === "" || Number.isNaN(Number(value)) ? undefined : Number(value);
  }
  return undefined;
}

function textOf(value: Json | undefined): string | undefined {
  return value === null || value === undefined || typeof value === "object" ? undefined : String(value);
}

export default defineSource({
  interval: "1m",
  needs: { http: true },

  args: {
    url: arg.string({ doc: "What to ask." }),
    headers: arg.map({ of: arg.string(), default: {}, doc: "Headers of the request." }),
    token: arg.secret({ optional: true, doc: "Sent as Authorization: Bearer." }),
    timeout: arg.duration({ default: "10s", doc: "How long to wait for an answer. script.limits.wait, 10s by default, bounds it as well." }),
    labels: arg.map({ of: arg.string(), default: {}, doc: "Further labels of all metrics." }),
    metric: arg.block({
      repeated: true,
      doc: "A metric.",
      fields: {
        name: arg.string({ doc: "Its name." }),
        type: arg.enum({ values: ["gauge", "counter"], default: "gauge", doc: "Its type." }),
        help: arg.string({ default: "", doc: "Its help text." }),
        each: arg.string({ optional: true, doc: "Path of a list or object, of which every element gives a sample." }),
        path: arg.string({ default: "", doc: "Path of the value, in the answer or in the element." }),
        labels: arg.map({ of: arg.string(), default: {}, doc: "Labels, by the paths of their values in the answer or in the element. $key is the key of the element." }),
      },
    }),
  },

  async poll(ctx) {
    const { url, headers, token, timeout, labels, metric } = ctx.args;
    let success = 0;
    try {
      const answer = await ctx.http.get(url, { headers, bearer: token, timeout });
      ctx.emit({ name: "json_endpoint_duration_seconds", type: "gauge", labels: { ...labels, url }, value: answer.seconds });
      if (answer.status !== 200) throw new Error(`status ${answer.status}`);
      const body = answer.json() as Json;

      for (const m of metric) {
        const elements = m.each === undefined ? [["", body] as const] : Object.entries((pick(body, m.each) ?? {}) as { [key: string]: Json });
        for (const [key, element] of elements) {
          const value = numberOf(pick(element, m.path));
          if (value === undefined) continue;
          const own: Record<string, string> = { ...labels };
          for (const [label, path] of Object.entries(m.labels)) {
            const text = path === "$key" ? key : textOf(pick(element, path));
            if (text !== undefined) own[label] = text;
          }
          ctx.emit({ name: m.name, type: m.type, help: m.help, labels: own, value });
        }
      }
      success = 1;
    } catch (err) {
      ctx.log.warn("no metrics", { url, err: String(err) });
    }
    ctx.emit({ name: "json_endpoint_success", type: "gauge", labels: { ...labels, url }, value: success });
  },
});
