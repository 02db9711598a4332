-- Sends samples to an HTTP API as JSON.
--
--   template.sink_metrics "default" {
--   	url = "https://warehouse.internal/samples"
--
--   	script {
--   		allow {
--   			http = ["https://warehouse.internal/*"]
--   		}
--   	}
--   }
--
-- The body of a request is a list such as
-- [{"name": "up", "labels": {"job": "api"}, "value": 1, "time": 1735689600000}].
local math = require "math"
local weir = require "weir"

-- This component is an example. To write your own, change the comment at the top of the
-- file, which is the manual, run 'weir test --watch', and change the test file and the
-- code until the tests pass. 'weir help scripts' lists everything that a script can use.
return weir.sink {
  args = {
    url = weir.arg.string { doc = "URL to send a POST request to." },
  },
  needs = { http = true }, -- the block grants the URLs in script.allow.http

  -- Called with a batch from the journal on disk. The batch is delivered if it returns.
  send = function(batch, ctx)
    local rows = {}
    for m in batch:records() do
      -- JSON has no NaN, which staleness markers have, and no infinities. A native
      -- histogram has no value.
      if m.value and math.is_finite(m.value) then
        local labels = {}
        for name, value in pairs(m.labels) do
          labels[name] = value
        end
        rows[#rows + 1] = { name = m.name, labels = labels, value = m.value, time = m.time }
      end
    end
    if #rows == 0 then
      return
    end

    local response, err = ctx.http.post(ctx.args.url, nil, { json = rows })
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
