-- scripts/demo/memory.lua
-- Adds node_memory_used_ratio, made of two gauges of node_exporter.
--
-- Example Input:
--   # TYPE node_memory_MemTotal_bytes gauge
--   node_memory_MemTotal_bytes{instance="a"} 4000
--   # TYPE node_memory_MemAvailable_bytes gauge
--   node_memory_MemAvailable_bytes{instance="a"} 1000
-- Example Output:
--   # TYPE node_memory_MemTotal_bytes gauge
--   node_memory_MemTotal_bytes{instance="a"} 4000
--   # TYPE node_memory_MemAvailable_bytes gauge
--   node_memory_MemAvailable_bytes{instance="a"} 1000
--   # TYPE node_memory_used_ratio gauge
--   # HELP node_memory_used_ratio Share of the memory that is in use.
--   node_memory_used_ratio{instance="a"} 0.75
-- Example Input:
--   # TYPE node_memory_MemTotal_bytes gauge
--   node_memory_MemTotal_bytes{instance="a"} stale
--   node_memory_MemAvailable_bytes{instance="a"} stale
--   up{instance="a"} 0
-- Example Output:
--   # TYPE node_memory_MemTotal_bytes gauge
--   node_memory_MemTotal_bytes{instance="a"} stale
--   node_memory_MemAvailable_bytes{instance="a"} stale
--   up{instance="a"} 0
--   # TYPE node_memory_used_ratio gauge
--   # HELP node_memory_used_ratio Share of the memory that is in use.
--   node_memory_used_ratio{instance="a"} stale
-- Example Input:
--   # TYPE node_memory_MemTotal_bytes gauge
--   node_memory_MemTotal_bytes{instance="a"} 4000
--   node_memory_MemAvailable_bytes{instance="a"} stale
-- Example Output:
--   # TYPE node_memory_MemTotal_bytes gauge
--   node_memory_MemTotal_bytes{instance="a"} 4000
--   node_memory_MemAvailable_bytes{instance="a"} stale
--   # TYPE node_memory_used_ratio gauge
--   # HELP node_memory_used_ratio Share of the memory that is in use.
--   node_memory_used_ratio{instance="a"} stale
local weir = require "weir"

return weir.transform {
  args = {
    name = weir.arg.string { default = "node_memory_used_ratio", doc = "Name of the metric." },
  },

  metrics = function(batch, ctx)
    local total, available
    for i, name in batch:rows("name") do
      if name == "node_memory_MemTotal_bytes" then total = batch[i] end
      if name == "node_memory_MemAvailable_bytes" then available = batch[i] end
    end
    if not total or not available then return end

    local used = total:copy() -- its labels and its time
    used.name = ctx.args.name
    used.help = "Share of the memory that is in use."
    if total.stale or available.stale then
      used.stale = true -- what it is made of ends here, and so does it
    elseif total.value > 0 then
      used.value = 1 - available.value / total.value
    else
      return
    end
    ctx.emit(used)
  end,
}
