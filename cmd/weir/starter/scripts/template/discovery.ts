/**
 * Discovers targets in an inventory that has a JSON API.
 *
 *   template.discovery "default" {
 *   	url = "https://inventory.internal/hosts"
 *
 *   	script {
 *   		allow {
 *   			http = ["https://inventory.internal/*"]
 *   		}
 *   	}
 *   }
 *
 *   prometheus.scrape "hosts" {
 *   	targets    = template.discovery.default.targets
 *   	forward_to = [prometheus.remote_write.default.receiver]
 *   }
 *
 * The response is a list such as [{"address": "10.0.0.1", "team": "db"}].
 */
import { arg, defineSource } from "weir";

// This component is an example. To write your own, change the comment at the top of the
// file, which is the manual, run 'weir test --watch', and change the test file and the
// code until the tests pass. 'weir help scripts' lists everything that a script can use.
export default defineSource({
  args: {
    url: arg.string({ doc: "URL of the inventory." }),
    port: arg.int({ default: 9100, doc: "Port to scrape on each host." }),
  },
  needs: { http: true }, // the block grants the URLs in script.allow.http
  exports: {
    targets: arg.targets({ doc: "The hosts in the inventory." }),
  },
  interval: "1m",

  // Called once per interval. If it fails, the last targets are kept.
  async poll(ctx) {
    const response = await ctx.http.get(ctx.args.url);
    if (response.status !== 200) throw new Error(`${ctx.args.url} returned status ${response.status}`);
    const targets = [];
    for (const host of response.json()) {
      targets.push({ __address__: `${host.address}:${ctx.args.port}`, team: host.team });
    }
    ctx.export({ targets });
  },
});
