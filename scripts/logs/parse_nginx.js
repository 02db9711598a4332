/**
 * Parses access logs of nginx and Apache (the combined format, with or without the
 * fields that are often appended) into JSON, labels and structured metadata.
 *
 * A matching line becomes JSON, or stays as it is with `json = false`; its timestamp
 * becomes the time of the request. Other lines, such as those of the error log, pass
 * unchanged with the label `parsed="no"`; weir_script_custom_unparsed_total counts
 * them. For other formats, set `pattern` to a pattern with named groups.
 *
 *   logs.parse_nginx "default" {
 *   	labels     = {method = "method", status = "class"}
 *   	metadata   = {client = "remote_addr"}
 *   	forward_to = [loki.write.default.receiver]
 *   }
 *
 * Example Input:
 *   {job="nginx"} 10.0.0.7 - - [14/Nov/2023:22:13:20 +0000] "GET /cart?id=7 HTTP/1.1" 200 512 "-" "curl/8.1" 0.120
 *   {job="nginx"} 2023/11/14 22:13:20 [error] 31#31: connect() failed
 * Example Output:
 *   {class="2xx",job="nginx",method="GET"} @2023-11-14T22:13:20Z {"remote_addr":"10.0.0.7","method":"GET","path":"/cart?id=7","protocol":"HTTP/1.1","status":200,"bytes":512,"user_agent":"curl/8.1","request_time":0.12}
 *   {job="nginx",parsed="no"} 2023/11/14 22:13:20 [error] 31#31: connect() failed
 * Example Args:
 *   labels   = {}
 *   metadata = { status = "status" }
 *   json     = false
 * Example Input:
 *   {job="nginx"} ::1 - jane [14/Nov/2023:23:13:20 +0100] "-" 408 0 "-" "-"
 * Example Output:
 *   {job="nginx"} @2023-11-14T22:13:20Z {status="408"} ::1 - jane [14/Nov/2023:23:13:20 +0100] "-" 408 0 "-" "-"
 */
import { arg, defineTransform } from "weir";
import re from "weir/re";
import time from "weir/time";

const COMBINED = re.compile(
  '^(\\S+) (\\S+) (.+?) \\[([^\\]]+)\\] "((?:[^"\\\\]|\\\\.)*)" (\\d{3}) (\\d+|-)(?: "((?:[^"\\\\]|\\\\.)*)" "((?:[^"\\\\]|\\\\.)*)")?(?: "?(\\d+\\.\\d+)"?)?',
);
/** Length of the longest line that is parsed: servers accept requests of some 8 KiB. */
const MAX_LINE = 65536;
const REQUEST = re.compile("^(\\S+) (.*?)(?: (HTTP/[0-9.]+))?$");
const NAMES = ["remote_addr", "ident", "user", "time", "request", "status", "bytes", "referer", "user_agent", "request_time"];
const NUMBERS = new Set(["status", "bytes", "request_time"]);

/** What the groups of a match say, without what is empty or "-". */
function fieldsOf(names, groups) {
  const f = {};
  names.forEach((name, i) => {
    const v = groups[i];
    if (name && v !== undefined && v !== "" && v !== "-") f[name] = NUMBERS.has(name) ? Number(v) : v;
  });
  if (f.request !== undefined) {
    const parts = REQUEST.find(f.request);
    if (parts) {
      [, f.method, f.path] = parts;
      if (parts[3]) f.protocol = parts[3];
      delete f.request;
    }
  }
  if (f.status !== undefined) f.class = `${Math.floor(f.status / 100)}xx`;
  return f;
}

/** The order of the keys in a line. */
const ORDER = ["remote_addr", "user", "method", "path", "protocol", "request", "status", "bytes", "referer", "user_agent", "request_time"];

export default defineTransform({
  args: {
    labels: arg.map({ of: arg.string(), default: { method: "method", class: "class" }, doc: "Labels to set, with their fields. The field class is the class of the status, such as 2xx." }),
    metadata: arg.map({ of: arg.string(), default: {}, doc: "Structured metadata to set, with the fields." }),
    json: arg.bool({ default: true, doc: "Whether to convert lines to JSON." }),
    time: arg.bool({ default: true, doc: "Whether the timestamp of a line becomes the time of its request." }),
    time_format: arg.string({ default: "%d/%b/%Y:%H:%M:%S %z", doc: "Layout of the field time, as for strftime." }),
    pattern: arg.regexp({ optional: true, doc: "Pattern for another format. Its named groups are the fields; request, status, bytes, time and request_time have the same meaning as in the combined format." }),
  },

  logs(batch, ctx) {
    const { labels, metadata, json: asJSON, time: asTime, time_format: layout, pattern } = ctx.args;
    // weir:ignore slow-pattern it runs once for each batch, on a short text
    const names = pattern ? Array.from(String(pattern).matchAll(/\(\?P?<(\w+)>|\((?!\?)/g), (m) => m[1]) : NAMES;
    let unparsed = 0;

    for (const [i, line] of batch.rows("line")) {
      const found = line.length <= MAX_LINE ? (pattern ?? COMBINED).find(line) : null;
      if (!found) {
        unparsed++;
        batch.set(i, "parsed", "no");
        continue;
      }
      const fields = fieldsOf(names, found.slice(1));
      const edits = {};
      for (const [label, field] of Object.entries(labels)) if (fields[field] !== undefined) edits[`labels.${label}`] = String(fields[field]);
      for (const [name, field] of Object.entries(metadata)) if (fields[field] !== undefined) edits[`meta.${name}`] = String(fields[field]);
      if (asTime && fields.time !== undefined) {
        try {
          edits.time = time.parse(fields.time, layout);
        } catch {
          unparsed++; // it keeps the time at which it was read
        }
      }
      if (asJSON) {
        const { time: _, class: __, ident: ___, ...rest } = fields;
        const out = {};
        for (const k of ORDER) if (rest[k] !== undefined) out[k] = rest[k];
        edits.line = JSON.stringify({ ...out, ...rest });
      }
      batch.set(i, edits);
    }
    if (unparsed > 0) ctx.metrics.counter("unparsed", {}, "Lines that did not fit, or whose time did not.").add(unparsed);
  },
});
