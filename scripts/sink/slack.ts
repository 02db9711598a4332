/**
 * Posts log lines to a Slack channel, for the few lines that somebody should read now.
 *
 * The lines of a batch become one message, grouped by stream under the title. At most
 * `per_minute` messages are posted. Further lines are counted instead, and the next
 * message contains their number. Messages that Slack does not accept are posted again,
 * at the pace that Slack asks for.
 *
 * With a `token` (scope chat:write), messages go to `channel` through Slack's API.
 * Without a token, `url` is an incoming webhook of Slack, Mattermost or Rocket.Chat.
 * Anyone who knows this URL can post, and weir's page shows it.
 *
 *   sink.slack "default" {
 *   	token   = sys.env("SLACK_TOKEN")
 *   	channel = "#ops"
 *   	title   = "{job} on {instance}"
 *
 *   	script {
 *   		allow {
 *   			http = ["https://slack.com/api/*"]
 *   		}
 *   	}
 *   }
 *
 * https://docs.slack.dev/reference/methods/chat.postMessage
 */
import { arg, defineSink, state } from "weir";

const API = "https://slack.com/api/chat.postMessage";

/** What Slack shows of a message, less the title. */
const ROOM = 3500;

/** Errors of the API that are the same the next time. */
const LASTING = new Set(["msg_too_long", "no_text", "invalid_blocks", "restricted_action"]);

function escape(s: string): string {
  return s.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
}

export default defineSink({
  accepts: ["logs"],
  needs: { http: true },
  batch: { maxRecords: 500, maxWait: "5s", inFlight: 1 }, // weir:ignore mutate a test sends one batch at a time

  args: {
    token: arg.secret({ optional: true, doc: "Token of the API." }),
    channel: arg.string({ default: "", doc: "Channel to post to with a token: #name or ID." }),
    url: arg.string({ default: API, doc: "URL of the API or of an incoming webhook." }),
    title: arg.string({ default: "{job}", doc: "Title above the lines of a stream; {name} is replaced by a label." }),
    lines: arg.int({ default: 20, doc: "Maximum number of lines per stream in a message." }),
    per_minute: arg.int({ default: 20, doc: "Maximum number of messages per minute." }),
    timeout: arg.duration({ default: "10s", doc: "Timeout of a request." }),
  },

  state: {
    posted: state.counter({ max: 10, ttl: "2m", doc: "Messages per minute." }),
    left: state.counter({ max: 1, scope: "persistent", doc: "Number of lines that were not posted." }),
  },

  setup(ctx) {
    if (ctx.args.url === API && (!ctx.args.token || ctx.args.channel === "")) {
      throw new Error("token and channel are missing: the API wants both; or set url to an incoming webhook");
    }
  },

  async send(batch, ctx) {
    const { token, channel, url, title, lines: most, per_minute: limit, timeout } = ctx.args;
    const { posted, left } = ctx.state;
    const minute = String(Math.floor(ctx.now() / 60000));
    if (posted.get(minute) >= limit) {
      left.add("lines", batch.length);
      return;
    }

    const streams = new Map<string, string[]>();
    for (const r of batch) {
      const name = title.replace(/\{([^{}]*)\}/g, (_, n: string) => r.labels[n] ?? "").slice(0, 200);
      const lines = streams.get(name);
      if (lines) lines.push(r.line);
      else streams.set(name, [r.line]);
    }

    const parts: string[] = [];
    const before = left.get("lines");
    if (before > 0) parts.push(`_${before} lines before were not posted_`);
    let room = ROOM;
    for (const [name, lines] of streams) {
      const shown: string[] = [];
      for (const line of lines.slice(0, most)) {
        const text = escape(line.length > 500 ? `${line.slice(0, 500)}…` : line);
        if (text.length > room) break;
        room -= text.length + 1;
        shown.push(text.replace(/```/g, "'''"));
      }
      const more = lines.length - shown.length;
      let part = name === "" ? "" : `*${escape(name)}*\n`;
      if (shown.length > 0) part += "```" + shown.join("\n") + "```";
      parts.push(part + (more > 0 ? ` and ${more} more` : ""));
    }
    const text = parts.join("\n");

    const body = url === API ? { channel, text, unfurl_links: false } : { text };
    const answer = await ctx.http.post(url, undefined, { json: body, bearer: token, timeout });
    const asked = Number(answer.headers["retry-after"]) || 0;
    const after = Math.min(Math.max(asked, 0), 600); // for ctx.retry, 0 is no wait
    if (answer.status >= 300) {
      const reason = `status ${answer.status}: ${answer.body.slice(0, 200)}`;
      if (answer.status === 400 || answer.status === 413) ctx.reject(reason);
      else return ctx.retry({ reason, after });
    } else if (url === API) {
      const said = answer.json() as { ok: boolean; error?: string };
      if (!said.ok) {
        const reason = `Slack says ${said.error}`;
        if (LASTING.has(said.error ?? "")) ctx.reject(reason);
        else return ctx.retry({ reason, after }); // such as a token or a channel that somebody mends
      }
    }
    posted.add(minute);
    if (before > 0) left.add("lines", -before);
  },
});
