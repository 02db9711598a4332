/**
 * Calls a webhook when a metric crosses a threshold and when it returns: simple alerts
 * without an Alertmanager.
 *
 * Each block `rule` selects metrics and sets a threshold. For each series, the webhook
 * is called when the series has been beyond the threshold for the time in `for`, then
 * every `repeat`, and once more when the series returns or ends. Calls have the format
 * of Alertmanager's webhook; failed calls are repeated in order.
 *
 *   sink.webhook "default" {
 *   	url = "https://chat.internal/hooks/ops"
 *
 *   	rule {
 *   		name    = "DiskFull"
 *   		metric  = "^node_filesystem_avail_ratio$"
 *   		below   = 0.05
 *   		for     = "5m"
 *   		summary = "{mountpoint} of {instance} is almost full: {value}"
 *   	}
 *
 *   	script {
 *   		allow {
 *   			http = ["https://chat.internal/*"]
 *   		}
 *   	}
 *   }
 *
 * https://prometheus.io/docs/alerting/latest/configuration/#webhook_config
 */
import { arg, defineSink, state } from "weir";
import hash from "weir/hash";

/** What is known of a series that is beyond a bound: times in Unix ms, said 0 for not yet. */
type Known = { since: number; said: number };

type Alert = {
  status: "firing" | "resolved";
  labels: Record<string, string>;
  annotations: Record<string, string>;
  startsAt: string;
  endsAt: string;
};

const NEVER = "0001-01-01T00:00:00Z";

/** A time in Unix ms as text; JavaScript has none beyond the year 275760. */
function iso(ms: number): string {
  return new Date(Math.min(Math.max(ms, -8.64e15), 8.64e15)).toISOString();
}

function fill(template: string, labels: Record<string, string>, value: number | undefined): string {
  return template.replace(/\{([^{}]*)\}/g, (_, name: string) => (name === "value" ? String(value ?? "gone") : labels[name] ?? ""));
}

export default defineSink({
  needs: { http: true },
  batch: { maxRecords: 5000, maxWait: "1s" },

  args: {
    url: arg.string({ doc: "URL to send a POST request to." }),
    headers: arg.map({ of: arg.string(), default: {}, doc: "Headers of the request." }),
    token: arg.secret({ optional: true, doc: "Bearer token, sent in the header Authorization." }),
    timeout: arg.duration({ default: "10s", doc: "Timeout of a request." }),
    repeat: arg.duration({ default: "4h", doc: "Interval between two calls for a series that stays beyond the threshold." }),
    rule: arg.block({
      repeated: true,
      doc: "A threshold.",
      fields: {
        name: arg.string({ doc: "Name of the rule, sent as the label alertname." }),
        metric: arg.regexp({ doc: "Pattern of the names of the metrics." }),
        above: arg.number({ optional: true, doc: "Upper threshold." }),
        below: arg.number({ optional: true, doc: "Lower threshold." }),
        for: arg.duration({ default: "0s", doc: "How long a series must be beyond the threshold." }),
        labels: arg.map({ of: arg.string(), default: {}, doc: "Labels to add to the alert." }),
        summary: arg.string({ default: "", doc: "Summary of the alert. {name} is replaced by a label, {value} by the value." }),
      },
    }),
  },

  state: {
    known: state.map({ max: 50000, scope: "persistent", doc: "Series beyond a threshold: since when, and the time of the last call." }),
  },

  async send(batch, ctx) {
    const { url, headers, token, timeout, repeat, rule: rules } = ctx.args;
    const known = ctx.state.known;
    const alerts: Alert[] = [];
    const changes = new Map<string, Known | undefined>();

    for (const m of batch) {
      const time = Number(m.time); // of a time beyond 2^53 ms a BigInt
      for (const rule of rules) {
        if (!rule.metric.match(m.name)) continue;
        const value = m.stale ? undefined : m.value;
        const beyond = value !== undefined && ((rule.above !== undefined && value > rule.above) || (rule.below !== undefined && value < rule.below));
        const labels: Record<string, string> = { ...m.labels, ...rule.labels, alertname: rule.name, metric: m.name };
        const text = JSON.stringify(Object.entries(labels).sort());
        const key = text.length <= 1000 ? text : hash.sha256(text); // a key of the state is limited
        const before = changes.has(key) ? changes.get(key) : (known.get(key) as Known | undefined);
        if (!beyond && !before) continue; // weir:ignore mutate saves time only: nothing is due, and there is no entry to delete

        const since = before?.since ?? time;
        const said = before?.said ?? 0;
        const due = beyond ? time - since >= rule.for * 1000 && (said === 0 || time - said >= repeat * 1000) : said > 0;
        changes.set(key, beyond ? { since, said: due ? time : said } : undefined);
        if (!due) continue;
        alerts.push({
          status: beyond ? "firing" : "resolved",
          labels,
          annotations: rule.summary === "" ? {} : { summary: fill(rule.summary, labels, value) },
          startsAt: iso(since),
          endsAt: beyond ? NEVER : iso(time),
        });
      }
    }

    if (alerts.length > 0) {
      const status = alerts.some((a) => a.status === "firing") ? "firing" : "resolved";
      const answer = await ctx.http.post(url, undefined, { json: { version: "4", status, receiver: "weir", alerts }, headers, bearer: token, timeout });
      if (answer.status >= 300) {
        const reason = `status ${answer.status}: ${answer.body.slice(0, 200)}`;
        if (answer.status === 400 || answer.status === 413) ctx.reject(reason); // as bad the next time
        else return ctx.retry({ reason });
      }
    }
    // Only now: a call that failed is made again for the same reasons.
    for (const [key, value] of changes) {
      if (value) known.set(key, value);
      else known.delete(key);
    }
  },
});
