-- A neighbour that never changes: it notices nothing of the other script.
local weir = require "weir"

return weir.transform {
  state = { batches = weir.state.counter { max = 10 } },

  series = function(s)
    s.labels.env = "production"
  end,

  metrics = function(batch, ctx)
    ctx.state.batches:add("all", 1)
  end,
}
