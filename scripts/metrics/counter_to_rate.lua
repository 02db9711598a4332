-- Converts counters to gauges of their rate per second.
--
-- Use it for receivers that cannot compute rates. The rate is computed between two
-- scrapes; after a reset, the counter starts from zero. requests_total becomes
-- requests_per_second. The first sample of a series, and a sample after a gap of more
-- than ten minutes, produce no rate. A rate ends with its counter.
--
--   metrics.counter_to_rate "default" {
--   	match      = "^(node_network|node_disk)_.*_total$"
--   	forward_to = [prometheus.remote_write.default.receiver]
--   }
--
-- Example Args:
--   keep = true
-- Example Input:
--   # TYPE requests_total counter
--   requests_total{job="api"} 10
--   up 1
-- Example Output:
--   # TYPE requests_total counter
--   requests_total{job="api"} 10
--   up 1
local weir = require "weir"

return weir.transform {
  args = {
    match  = weir.arg.regexp { default = "_total$", doc = "Pattern of the names of the counters." },
    suffix = weir.arg.string { default = "_per_second", doc = "Suffix that replaces _total in the name." },
    keep   = weir.arg.bool { default = false, doc = "Whether to forward the counters as well." },
  },

  state = {
    last = weir.state.map { max = 100000, ttl = "10m", doc = "Value and time of the last sample of each series." },
    said = weir.state.set { max = 1, ttl = "1h", doc = "The metric that has been logged because there are too many series." },
  },

  metrics = function(batch, ctx)
    local args, last = ctx.args, ctx.state.last
    local names = {} -- of this batch: name of the rate, false for no counter

    batch:each(function(r)
      local name = names[r.name]
      if name == nil then
        name = args.match:match(r.name) and (r.name:gsub("_total$", "") .. args.suffix)
        names[r.name] = name -- weir:ignore mutate without it, the pattern runs for each sample, with the same result
      end
      local value = r.value
      if not name or not value then return end -- a native histogram has no rate

      local key = r.name .. tostring(r.labels)
      local rate
      if r.stale then
        last:delete(key)
      else
        local before = last:get(key)
        local ok = last:set(key, { value, r.time })
        if not ok and ctx.state.said:add(name) then
          ctx.log.warn("too many counters: those beyond 100,000 have no rate") -- weir:ignore mutate a test would need 100,000 counters, which takes too long
        end
        if before and r.time > before[2] then
          local growth = value - before[1]
          if growth < 0 then growth = value end -- it was reset
          rate = growth * 1000 / (r.time - before[2])
        end
      end

      if rate or r.stale then
        local out = r:copy()
        out.name, out.type = name, "gauge"
        if rate then out.value = rate end
        ctx.emit(out)
      end
      if not args.keep then r:drop() end
    end)
  end,
}
