/**
 * Discovers targets through a JSON API, such as an inventory, a CMDB or Consul's catalog.
 *
 * The response contains a list or an object at the path `each`. Each element becomes
 * a target. `address` and `labels` are templates: {path} is replaced by the value at
 * that path in the element, {$key} by the key of the element and {$value} by the
 * element itself. A label whose path does not exist is omitted, and so is a target
 * without an address. If the API does not respond, the last targets are kept.
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
    url: arg.string({ doc: "URL of the API." }),
    headers: arg.map({ of: arg.string(), default: {}, doc: "Headers of the request." }),
    token: arg.secret({ optional: true, doc: "Bearer token, sent in the header Authorization." }),
    timeout: arg.duration({ default: "10s", doc: "Timeout of a request. It cannot exceed script.limits.wait, which is 10s by default." }),
    each: arg.string({ default: "", doc: "Path of the list in the response; the response itself by default." }),
    address: arg.string({ doc: "Template of the address of a target, such as {ip}:9100." }),
    labels: arg.map({ of: arg.string(), default: {}, doc: "Templates of the labels of a target." }),
  },

  exports: { targets: arg.targets({ doc: "The discovered targets." }) },

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
