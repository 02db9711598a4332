-- Receives events over HTTP and sends each as a log line.
--
--   template.source_logs "default" {
--   	token      = sys.env("EVENTS_TOKEN")
--   	forward_to = [loki.write.default.receiver]
--
--   	listen {
--   		address = "127.0.0.1"
--   		port    = 9099
--   	}
--   }
--
-- A client sends an event, which is JSON, with POST to /events/APP:
--
--   curl -H "Authorization: Bearer $EVENTS_TOKEN" -d '{"msg":"deployed"}' http://127.0.0.1:9099/events/shop
local weir = require "weir"

-- This component is an example. To write your own, change the comment at the top of the
-- file, which is the manual, run 'weir test --watch', and change the test file and the
-- code until the tests pass.
--
-- Instead of receiving requests, a source can poll (poll) or run continuously (run).
-- 'weir help scripts' lists everything that a script can use.
return weir.source {
  args = {
    token = weir.arg.secret { doc = "Bearer token that clients must send." },
  },
  sends = { "logs" },

  http = {
    -- The client gets the response after all receivers have accepted the line.
    ["POST /events/{app}"] = function(req, ctx)
      if not req:authorized { bearer = ctx.args.token } then
        return 401
      end
      local event, err = req:json()
      if event == nil then
        return { status = 400, body = err }
      end
      ctx.emit {
        line = req.body,
        labels = { app = req.params.app },
        metadata = { remote_address = req.remote_address },
      }
      return 204
    end,
  },
}
