-- Drops repeated lines of a stream.
--
-- The first of several equal lines passes, then one per `window`, with the structured
-- metadata repeated="41" if 41 lines were dropped since. With `alike`, lines that differ
-- only in numbers and hexadecimal IDs are equal, unless they are longer than 1,024 bytes.
-- Lines longer than 1 MiB always pass. The window refers to the timestamps of the lines.
-- The script remembers at most 100,000 different lines and forgets the oldest first.
-- weir_component_lines_dropped_total counts the dropped lines.
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
    window = weir.arg.duration { default = "1m", doc = "How long repetitions of a line are dropped." },
    alike  = weir.arg.bool { default = false, doc = "Whether lines that differ only in numbers and hexadecimal IDs are equal." },
  },

  state = {
    seen = weir.state.map { max = 100000, ttl = "1h", on_full = "evict", doc = "When a line last passed, and how many were dropped since." },
  },

  logs = function(batch, ctx)
    local window, alike, seen = ctx.args.window * 1000, ctx.args.alike, ctx.state.seen
    for i, line, at in batch:rows("line", "time") do
      local now
      if #line <= HUGE then
        local key = hash.xxhash(tostring(batch[i].labels)) .. hash.xxhash(alike and shape(line) or line)
        now = seen:update(key, function(old)
          if old and at - old[1] < window and at >= old[1] then return { old[1], old[2] + 1 } end
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
