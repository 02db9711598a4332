-- Makes the level a label, drops debug and shortens the line, without a line of
-- Lua for each of them.
local weir = require "weir"

return weir.transform {
  logs = function(batch)
    batch:promote("json.level", "level")
    batch:drop_where([[ labels.level == "debug" ]])
    batch:set_line("{json.msg} {json.path} {json.seq}")
  end,
}
