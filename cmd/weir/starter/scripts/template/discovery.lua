-- Discovers targets in an inventory that has a JSON API.
--
--   template.discovery "default" {
--   	url = "https://inventory.internal/hosts"
--
--   	script {
--   		allow {
--   			http = ["https://inventory.internal/*"]
--   		}
--   	}
--   }
--
--   prometheus.scrape "hosts" {
--   	targets    = template.discovery.default.targets
--   	forward_to = [prometheus.remote_write.default.receiver]
--   }
--
-- The response is a list such as [{"address": "10.0.0.1", "team": "db"}].
local weir = require "weir"

-- This component is an example. To write your own, change the comment at the top of the
-- file, which is the manual, run 'weir test --watch', and change the test file and the
-- code until the tests pass. 'weir help scripts' lists everything that a script can use.
return weir.source {
  args = {
    url = weir.arg.string { doc = "URL of the inventory." },
    port = weir.arg.int { default = 9100, doc = "Port to scrape on each host." },
  },
  needs = { http = true }, -- the block grants the URLs in script.allow.http
  exports = {
    targets = weir.arg.targets { doc = "The hosts in the inventory." },
  },
  interval = "1m",

  -- Called once per interval. If it fails, the last targets are kept.
  poll = function(ctx)
    local response = assert(ctx.http.get(ctx.args.url))
    if response.status ~= 200 then
      error(("%s returned status %d"):format(ctx.args.url, response.status))
    end
    local targets = {}
    for _, host in ipairs(assert(response:json())) do
      targets[#targets + 1] = { __address__ = ("%s:%d"):format(host.address, ctx.args.port), team = host.team }
    end
    ctx.export { targets = targets }
  end,
}
