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
local weir = require "weir"

return weir.transform {
  args = {
    name = weir.arg.string { default = "node_memory_used_ratio", doc = "Name of the metric." },
  },

  metrics = function(batch, ctx)
    local total, available
    for i, name, value in batch:rows("name", "value") do
      if name == "node_memory_MemTotal_bytes" then total = batch[i] end
      if name == "node_memory_MemAvailable_bytes" then available = value end
    end
    if not total or not available or total.stale or not (total.value > 0) then return end

    local used = total:copy() -- its labels and its time
    used.name = ctx.args.name
    used.help = "Share of the memory that is in use."
    used.value = 1 - available / total.value
    ctx.emit(used)
  end,
}
