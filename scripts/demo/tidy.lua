-- scripts/demo/tidy.lua
-- Adds a label `site`, drops what nobody looks at, and gives memory in MiB.
--
-- Add "weir_script_" to the default of drop, save, and look at the next scrape:
-- only the nodes that use this file are rebuilt, and series that are no longer
-- sent end at once.
--
-- Example Args:
--   site = "lab"
-- Example Input:
--   # TYPE node_memory_MemFree_bytes gauge
--   node_memory_MemFree_bytes 1572864
--   # TYPE node_network_up gauge
--   node_network_up{device="eth0"} 1
--   node_network_up{device="veth12ab"} 1
--   go_goroutines 12
-- Example Output:
--   # TYPE node_memory_MemFree_mebibytes gauge
--   node_memory_MemFree_mebibytes{site="lab"} 1.5
--   # TYPE node_network_up gauge
--   node_network_up{device="eth0",site="lab"} 1
local weir = require "weir"

return weir.transform {
  args = {
    site = weir.arg.string { default = "quickstart", doc = "Value of the label site." },
    drop = weir.arg.list {
      of = weir.arg.string {}, default = { "go_", "promhttp_", "node_scrape_collector_" },
      doc = "Beginnings of the names of metrics to drop.",
    },
    devices = weir.arg.string { default = "^(veth|br-|docker|loop)", doc = "Devices to drop, a regular expression." },
  },

  -- Once per new series: what is decided here costs nothing in later scrapes.
  series = function(s, ctx)
    for _, beginning in ipairs(ctx.args.drop) do
      if s.name:sub(1, #beginning) == beginning then return s:drop() end
    end
    s.labels.site = ctx.args.site
  end,

  -- Once per scrape, for all its samples at a time.
  metrics = function(batch, ctx)
    batch:drop_where [[ labels.device != "" && labels.device matches args.devices ]]
    batch:scale([[ name startsWith "node_memory_" && name endsWith "_bytes" ]], 1 / (1024 * 1024))
    batch:each(function(m)
      local memory = m.name:match("^(node_memory_.*)_bytes$")
      if memory then m.name = memory .. "_mebibytes" end
    end)
  end,
}
