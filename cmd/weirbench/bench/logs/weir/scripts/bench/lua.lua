-- Makes the level a label, drops debug and shortens the line.
--
-- Example Input:
--   {"level":"info","msg":"request served","path":"/api/v1/orders/1","seq":"7"}
-- Example Output:
--   request served /api/v1/orders/1 7
local weir = require "weir"

return weir.transform {
  logs = function(batch)
    batch:json({ "level", "msg", "path", "seq" }, function(level, msg, path, seq, r)
      if level == "debug" then return false end
      r.labels.level = level
      r.line = msg .. " " .. path .. " " .. seq
    end)
  end,
}
