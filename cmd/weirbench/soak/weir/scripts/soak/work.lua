-- The script that weirbench soak saves again and again; FAULT is replaced.
local weir = require "weir"
local re   = require "re"

local HOST = re.compile [[host-(\d+)]]

return weir.transform {
  state = {
    seen  = weir.state.lru { max = 5000 },
    total = weir.state.counter { max = 100 },
  },

  series = function(s)
    local host = HOST:match(s.labels.instance or "")
    if host then s.labels.host = "known" end
  end,

  metrics = function(batch, ctx)
    local n = ctx.state.total:add("batches", 1)
    batch:each(function(m)
      if m.name == "up" then ctx.state.seen:set(m.labels.instance or "", m.value) end
      m.value = m.value + 0
    end)
    --FAULT--
  end,

  every = {
    ["1s"] = function(ctx) ctx.state.total:add("ticks", 1) end,
  },
}
