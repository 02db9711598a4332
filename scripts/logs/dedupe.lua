-- Drops lines that repeat one of the same stream within a while.
--
-- Of equal lines the first passes, then one each `window`, with the structured
-- metadata repeated="41" for those that were dropped since. With `alike`, lines
-- count as equal that differ in numbers and hexadecimal ids only, unless they are
-- longer than 1,024 bytes; lines above 1 MiB all pass. The time is that of the lines. At most 100,000 different lines are kept in mind, the oldest are
-- forgotten first; dropped lines are counted by
-- weir_component_lines_dropped_total.
--
--   logs.dedupe "default" {
--   	window     = "1m"
--   	alike      = true
--   	forward_to = [loki.write.default.receiver]
--   }
--
-- Example Args:
--   window = "10s"
-- Example Input:
--   {app="a"} @2025-01-01T00:00:00Z connection refused
--   {app="a"} @2025-01-01T00:00:03Z connection refused
--   {app="b"} @2025-01-01T00:00:03Z connection refused
--   {app="a"} @2025-01-01T00:00:07Z connection refused
--   {app="a"} @2025-01-01T00:00:11Z connection refused
--   {app="a"} @2025-01-01T00:00:12Z started
-- Example Output:
--   {app="a"} @2025-01-01T00:00:00Z connection refused
--   {app="b"} @2025-01-01T00:00:03Z connection refused
--   {app="a"} @2025-01-01T00:00:11Z {repeated="2"} connection refused
--   {app="a"} @2025-01-01T00:00:12Z started
-- Example Args:
--   alike = true
-- Example Input:
--   {app="a"} job 17 of 0x7f3a failed
--   {app="a"} job 18 of 0x81bb failed
-- Example Output:
--   {app="a"} job 17 of 0x7f3a failed
local hash = require "hash"
local weir = require "weir"

-- HUGE is the length in bytes beyond which a line is not looked at.
local HUGE = 1048576

-- LONG is the length in bytes beyond which a line is compared as it is: the
-- patterns of shape may take the square of it.
local LONG = 1024

-- shape is a line without what differs between lines that are alike.
local function shape(line)
  if #line > LONG then return line end
  return (line:gsub("0x%x+", "#"):gsub("%f[%w]%x*%d%x*%f[%W]", "#"):gsub("%d+", "#"))
end

return weir.transform {
  args = {
    window = weir.arg.duration { default = "1m", doc = "How long a line is not repeated." },
    alike  = weir.arg.bool { default = false, doc = "Whether lines that differ in numbers only are equal." },
  },

  state = {
    seen = weir.state.map { max = 100000, ttl = "1h", on_full = "evict", doc = "When a line passed last, and how many were dropped since." },
  },

  logs = function(batch, ctx)
    local window, alike, seen = ctx.args.window * 1000, ctx.args.alike, ctx.state.seen
    for i, line, at in batch:rows("line", "time") do
      local now
      if #line <= HUGE then
        local key = hash.xxhash(tostring(batch[i].labels)) .. hash.xxhash(alike and shape(line) or line)
        now = seen:update(key, function(old)
          if old and at - old[1] < window and at >= old[1] then return { old[1], old[2] + 1, 0 } end
          return { at, 0, old and old[2] or 0 } -- it passes, for as many as were dropped
        end)
      end
      -- Without a place in the state nothing is dropped.
      if now and now[2] > 0 then
        batch:drop(i)
      elseif now and now[3] > 0 then
        batch:set(i, "meta.repeated", tostring(now[3]))
      end
    end
  end,
}
