/**
 * Receives events over HTTP and sends each as a log line.
 *
 *   template.source_logs "default" {
 *   	token      = sys.env("EVENTS_TOKEN")
 *   	forward_to = [loki.write.default.receiver]
 *
 *   	listen {
 *   		address = "127.0.0.1"
 *   		port    = 9099
 *   	}
 *   }
 *
 * A client sends an event, which is JSON, with POST to /events/APP:
 *
 *   curl -H "Authorization: Bearer $EVENTS_TOKEN" -d '{"msg":"deployed"}' http://127.0.0.1:9099/events/shop
 */
import { arg, defineSource } from "weir";
import json from "weir/json";

// This component is an example. To write your own, change the comment at the top of the
// file, which is the manual, run 'weir test --watch', and change the test file and the
// code until the tests pass.
//
// Instead of receiving requests, a source can poll (poll) or run continuously (run).
// 'weir help scripts' lists everything that a script can use.
export default defineSource({
  args: {
    token: arg.secret({ doc: "Bearer token that clients must send." }),
  },
  sends: ["logs"],

  http: {
    // The client gets the response after all receivers have accepted the line.
    "POST /events/{app}"(req, ctx) {
      if (!req.authorized({ bearer: ctx.args.token })) return 401;
      try {
        json.decode(req.body);
      } catch (err) {
        return { status: 400, body: String(err) };
      }
      ctx.emit({
        line: req.body,
        labels: { app: req.params.app },
        metadata: { remote_address: req.remoteAddress },
      });
      return 204;
    },
  },
});
