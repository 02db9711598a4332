/**
 * Finds targets in what a JSON API answers: an inventory, a CMDB, Consul's catalog.
 *
 * The answer has a list (or an object) at the path `each`. Every element becomes a
 * target: `address` and `labels` are texts in which {path} stands for what the path
 * leads to in the element, {$key} for its key and {$value} for the element itself.
 * A label that has a path leading nowhere is left out, a target without an address
 * too. When the API does not answer, the last targets stay.
 *
 *   discovery.http_json "default" {
 *   	url     = "https://consul.internal/v1/catalog/service/node-exporter"
 *   	address = "{ServiceAddress}:{ServicePort}"
 *   	labels  = {instance = "{Node}", dc = "{Datacenter}", rack = "{NodeMeta.rack}"}
 *
 *   	script {
 *   		allow {
 *   			http = ["https://consul.internal/*"]
 *   		}
 *   	}
 *   }
 *
 *   prometheus.scrape "nodes" {
 *     targets    = discovery.http_json.default.targets
 *     forward_to = [prometheus.remote_write.default.receiver]
 *   }
 */
import { arg, defineSource } from "weir";

type Json = null | boolean | number | bigint | string | Json[] | { [key: string]: Json };

/** Finds what a path such as Meta.rack leads to, as text. */
function pick(element: Json, path: string): string | undefined {
  let value: Json | undefined = element;
  for (const key of path.split(".")) {
    if (value === null || typeof value !== "object") return undefined;
    value = (value as { [key: string]: Json })[key];
  }
  return value === null || value === undefined || typeof value === "object" ? undefined : String(value);
}

/** Fills in a text such as {ip}:{port}; undefined when something of it is missing. */
function fill(template: string, key: string, element: Json): string | undefined {
  let whole = true;
  const text = template.replace(/\{([^{}]*)\}/g, (_, path: string) => {
    const part = path === "$key" ? key : path === "$value" ? pick([element], "0") : pick(element, path);
    if (part === undefined || part === "") whole = false;
    return part ?? "";
  });
  return whole ? text : undefined;
}

export default defineSource({
  interval: "1m",
  needs: { http: true },

  args: {
    url: arg.string({ doc: "What to ask." }),
    headers: arg.map({ of: arg.string(), default: {}, doc: "Headers of the request." }),
    token: arg.secret({ optional: true, doc: "Sent as Authorization: Bearer." }),
    timeout: arg.duration({ default: "10s", doc: "How long to wait for an answer. script.limits.wait, 10s by default, bounds it as well." }),
    each: arg.string({ default: "", doc: "Path of the list in the answer; the answer itself by default." }),
    address: arg.string({ doc: "The address of a target, such as {ip}:9100." }),
    labels: arg.map({ of: arg.string(), default: {}, doc: "Labels of a target." }),
  },

  exports: { targets: arg.targets({ doc: "The targets that were found." }) },

  async poll(ctx) {
    const { url, headers, token, timeout, each, address, labels } = ctx.args;
    const answer = await ctx.http.get(url, { headers, bearer: token, timeout });
    if (answer.status !== 200) throw new Error(`${url} answers with status ${answer.status}`);

    let list: Json | undefined = answer.json() as Json;
    for (const key of each.split(".").filter((k) => k !== "")) {
      list = (list as { [key: string]: Json } | null | undefined)?.[key];
    }
    if (list === null || typeof list !== "object") throw new Error(`there is no list at ${JSON.stringify(each)} in the answer`);

    const targets = [];
    for (const [key, element] of Object.entries(list as { [key: string]: Json })) {
      const at = fill(address, key, element);
      if (at === undefined) continue;
      const target: Record<string, string> = { __address__: at };
      for (const [label, template] of Object.entries(labels)) {
        const text = fill(template, key, element);
        if (text !== undefined) target[label] = text;
      }
      targets.push(target);
    }
    ctx.export({ targets });
  },
});
