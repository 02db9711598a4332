-- Makes ever new metrics of its own, with long texts.
local weir = require "weir"
local n = 0
return weir.transform { metrics = function(batch, ctx)
  for i = 1, 1000 do
    n = n + 1
    pcall(ctx.metrics.counter, "made_" .. n, { help = ("x"):rep(100000) })
  end
end }
