/**
 * Calls a webhook when a metric crosses a bound, and again when it is back: small
 * alerts where there is no Alertmanager.
 *
 * Each block `rule` names metrics and a bound. For every series there is one call
 * when it has been beyond the bound for as long as `for` says, one every `repeat`
 * while it stays there, and one when it is back or ends. Calls have the form of
 * Alertmanager's webhook; those that fail are made again, in order.
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
    url: arg.string({ doc: "What to call, by POST." }),
    headers: arg.map({ of: arg.string(), default: {}, doc: "Headers of the call." }),
    token: arg.secret({ optional: true, doc: "Sent as Authorization: Bearer." }),
    timeout: arg.duration({ default: "10s", doc: "How long to wait for an answer." }),
    repeat: arg.duration({ default: "4h", doc: "How often to call for what goes on." }),
    rule: arg.block({
      repeated: true,
      doc: "A bound.",
      fields: {
        name: arg.string({ doc: "Its name: the label alertname." }),
        metric: arg.regexp({ doc: "The metrics it is about." }),
        above: arg.number({ optional: true, doc: "Values above this are beyond." }),
        below: arg.number({ optional: true, doc: "Values below this are beyond." }),
        for: arg.duration({ default: "0s", doc: "How long they must be." }),
        labels: arg.map({ of: arg.string(), default: {}, doc: "Further labels of the call." }),
        summary: arg.string({ default: "", doc: "What to say. {name} stands for a label, {value} for the value." }),
      },
    }),
  },

  state: {
    known: state.map({ max: 50000, scope: "persistent", doc: "Series that are beyond a bound: since when, and when that was said last." }),
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
        if (!beyond && !before) continue;

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
