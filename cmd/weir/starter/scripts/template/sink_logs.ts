/**
 * Sends log lines to an HTTP API, as one JSON object per line.
 *
 *   template.sink_logs "default" {
 *   	url = "https://archive.internal/lines"
 *
 *   	script {
 *   		allow {
 *   			http = ["https://archive.internal/*"]
 *   		}
 *   	}
 *   }
 *
 * A line of the body is an object such as
 * {"time": "1735689600000000000", "labels": {"app": "shop"}, "line": "order placed"}.
 */
import { arg, defineSink } from "weir";

// This component is an example. To write your own, change the comment at the top of the
// file, which is the manual, run 'weir test --watch', and change the test file and the
// code until the tests pass. 'weir help scripts' lists everything that a script can use.
export default defineSink({
  args: {
    url: arg.string({ doc: "URL to send a POST request to." }),
  },
  needs: { http: true }, // the block grants the URLs in script.allow.http
  accepts: ["logs"],

  // Called with a batch from the journal on disk. The batch is delivered if it returns,
  // and sent again if it throws.
  async send(batch, ctx) {
    let body = "";
    for (const entry of batch) {
      body += JSON.stringify({ time: String(entry.ts), labels: { ...entry.labels }, line: entry.line }) + "\n";
    }

    const headers = { "Content-Type": "application/x-ndjson" };
    const response = await ctx.http.post(ctx.args.url, body, { headers });
    if (response.status === 400) return ctx.reject(response.body); // it would be refused again
    if (response.status >= 300) return ctx.retry({ reason: `status ${response.status}` });
  },
});
