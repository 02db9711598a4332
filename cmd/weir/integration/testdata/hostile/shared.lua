-- Logs a table that contains another one twice, 60 levels deep.
local weir = require "weir"
return weir.transform {
  metrics = function(batch, ctx)
    local x = "x"
    for _ = 1, 60 do x = { x, x } end
    ctx.log.info("x", { x = x })
  end,
}
