/**
 * Polls a JSON API and converts its responses to metrics.
 *
 * Each block `metric` selects a value by its path in the response, or, with `each`, a
 * list or an object whose elements each produce a sample. Numbers, booleans and strings
 * that contain a number are values. A missing value produces no sample.
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
 * Two metrics with the label url describe each request: json_endpoint_success (1 if
 * the response had status 200 and was valid) and json_endpoint_duration_seconds.
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
  if (typeof value === "object" || (typeof value === "string" && value.trim() === "")) return undefined;
  const n = Number(value);
  return Number.isNaN(n) ? undefined : n;
}

function textOf(value: Json | undefined): string | undefined {
  return value === null || value === undefined || typeof value === "object" ? undefined : String(value);
}

export default defineSource({
  interval: "1m",
  needs: { http: true },

  args: {
    url: arg.string({ doc: "URL of the API." }),
    headers: arg.map({ of: arg.string(), default: {}, doc: "Headers of the request." }),
    token: arg.secret({ optional: true, doc: "Bearer token, sent in the header Authorization." }),
    timeout: arg.duration({ default: "10s", doc: "Timeout of a request. It cannot exceed script.limits.wait, which is 10s by default." }),
    labels: arg.map({ of: arg.string(), default: {}, doc: "Labels to add to all metrics." }),
    metric: arg.block({
      repeated: true,
      doc: "A metric.",
      fields: {
        name: arg.string({ doc: "Name of the metric." }),
        type: arg.enum({ values: ["gauge", "counter"], default: "gauge", doc: "Type of the metric." }),
        help: arg.string({ default: "", doc: "Help text of the metric." }),
        each: arg.string({ optional: true, doc: "Path of a list or an object whose elements each produce a sample." }),
        path: arg.string({ default: "", doc: "Path of the value in the response or in the element." }),
        labels: arg.map({ of: arg.string(), default: {}, doc: "Labels, with the paths of their values in the response or in the element. $key is the key of the element." }),
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
