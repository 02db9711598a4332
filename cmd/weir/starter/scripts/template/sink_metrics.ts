/**
 * Sends samples to an HTTP API as JSON.
 *
 *   template.sink_metrics "default" {
 *   	url = "https://warehouse.internal/samples"
 *
 *   	script {
 *   		allow {
 *   			http = ["https://warehouse.internal/*"]
 *   		}
 *   	}
 *   }
 *
 * The body of a request is a list such as
 * [{"name": "up", "labels": {"job": "api"}, "value": 1, "time": 1735689600000}].
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

  // Called with a batch from the journal on disk. The batch is delivered if it returns,
  // and sent again if it throws.
  async send(batch, ctx) {
    const rows = [];
    for (const m of batch) {
      // JSON has no NaN, which staleness markers have, and no infinities. A native
      // histogram has no value.
      if (!Number.isFinite(m.value)) continue;
      rows.push({ name: m.name, labels: { ...m.labels }, value: m.value, time: m.time });
    }
    if (rows.length === 0) return;

    const response = await ctx.http.post(ctx.args.url, undefined, { json: rows });
    if (response.status === 400) return ctx.reject(response.body); // it would be refused again
    if (response.status >= 300) return ctx.retry({ reason: `status ${response.status}` });
  },
});
