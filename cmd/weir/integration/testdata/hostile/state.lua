-- Keeps a short piece of every line in its state, and declares room without end.
local weir = require "weir"
return weir.transform {
  state = { kept = weir.state.map { max_bytes = "200MiB" } },
  logs = function(batch, ctx)
    for record in batch:records() do ctx.state.kept:set(record.line:sub(1, 14) .. record.time, record.line) end
  end,
}
