/**
 * Polls a JSON API and sends the depth of each queue.
 *
 *   template.source_metrics "default" {
 *   	url        = "https://queues.internal/api/queues"
 *   	forward_to = [prometheus.remote_write.default.receiver]
 *
 *   	script {
 *   		allow {
 *   			http = ["https://queues.internal/*"]
 *   		}
 *   	}
 *   }
 *
 * The response is a list such as [{"name": "mail", "depth": 3}].
 */
import { arg, defineSource } from "weir";

// This component is an example. To write your own, change the comment at the top of the
// file, which is the manual, run 'weir test --watch', and change the test file and the
// code until the tests pass.
//
// Instead of polling, a source can run continuously (run) or receive requests (http).
// 'weir help scripts' lists everything that a script can use.
export default defineSource({
  args: {
    url: arg.string({ doc: "URL of the API." }),
  },
  needs: { http: true }, // the block grants the URLs in script.allow.http
  interval: "30s",

  // Called once per interval. A series that it does not emit again ends.
  async poll(ctx) {
    const response = await ctx.http.get(ctx.args.url);
    if (response.status !== 200) throw new Error(`${ctx.args.url} returned status ${response.status}`);
    for (const queue of response.json()) {
      ctx.emit({
        name: "queue_depth",
        type: "gauge",
        help: "Messages that wait in the queue.",
        labels: { queue: queue.name },
        value: queue.depth,
      });
    }
  },
});
