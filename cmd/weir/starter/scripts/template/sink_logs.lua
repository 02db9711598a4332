-- Sends log lines to an HTTP API, as one JSON object per line.
--
--   template.sink_logs "default" {
--   	url = "https://archive.internal/lines"
--
--   	script {
--   		allow {
--   			http = ["https://archive.internal/*"]
--   		}
--   	}
--   }
--
-- A line of the body is an object such as
-- {"time": "1735689600000000000", "labels": {"app": "shop"}, "line": "order placed"}.
local json = require "json"
local weir = require "weir"

-- This component is an example. To write your own, change the comment at the top of the
-- file, which is the manual, run 'weir test --watch', and change the test file and the
-- code until the tests pass. 'weir help scripts' lists everything that a script can use.
return weir.sink {
  args = {
    url = weir.arg.string { doc = "URL to send a POST request to." },
  },
  needs = { http = true }, -- the block grants the URLs in script.allow.http
  accepts = { "logs" },

  -- Called with a batch from the journal on disk. The batch is delivered if it returns.
  send = function(batch, ctx)
    local lines = {}
    for entry in batch:records() do
      local labels = {}
      for name, value in pairs(entry.labels) do
        labels[name] = value
      end
      lines[#lines + 1] = assert(json.encode { time = entry.ts, labels = labels, line = entry.line }) .. "\n"
    end

    local headers = { ["Content-Type"] = "application/x-ndjson" }
    local response, err = ctx.http.post(ctx.args.url, table.concat(lines), { headers = headers })
    if not response then
      return ctx.retry { reason = err }
    end
    if response.status == 400 then -- it would be refused again
      return ctx.reject(response.body)
    end
    if response.status >= 300 then
      return ctx.retry { reason = "status " .. response.status }
    end
  end,
}
