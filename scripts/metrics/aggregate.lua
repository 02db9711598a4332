-- Aggregates series by labels over an interval: sum, minimum, maximum, average, count.
--
-- The last sample of each series in an interval is used. When the interval and `delay`
-- are over, each group produces one sample per function, such as requests_inflight:sum,
-- with the timestamp of the end of the interval. Series that have ended or have no
-- sample in the interval do not count, and a group without series ends. Samples that
-- arrive later are dropped; the log reports this once an hour.
--
-- The sum of counters decreases when one of them ends, so use metrics.counter_to_rate
-- first. All sources of a block are aggregated together, so their series need a label
-- that distinguishes them, such as instance. The limit is 20,000 series.
--
--   metrics.aggregate "default" {
--   	match      = "^requests_inflight$"
--   	by         = ["job"]
--   	functions  = ["sum", "max"]
--   	every      = "1m"
--   	forward_to = [prometheus.remote_write.default.receiver]
--   }
--
-- Example Args:
--   match = "^requests_"
-- Example Input:
--   requests_inflight{job="api",instance="a"} 1
--   up{job="api",instance="a"} 1
-- Example Output:
--   up{job="api",instance="a"} 1
local json = require "json"
local weir = require "weir"

local MOST = 20000

-- What a group adds up to. each has the values of its series.
local FUNCTIONS = {
  sum   = function(g) return g.sum end,
  min   = function(g) return g.min end,
  max   = function(g) return g.max end,
  avg   = function(g) return g.sum / g.count end,
  count = function(g) return g.count end,
}

-- group returns the labels that a record is grouped by.
local function group(labels, args)
  local out = {}
  if #args.without > 0 then
    for name, value in pairs(labels) do out[name] = value end
    for _, name in ipairs(args.without) do out[name] = nil end
  else
    for _, name in ipairs(args.by) do out[name] = labels[name] end
  end
  return out
end

-- flush gives the samples of interval number n, and ends what gives none.
local function flush(n, ctx)
  local state, args = ctx.state, ctx.args
  local sums = {}
  for key, e in pairs(state.last:entries(MOST)) do
    local v
    if e.n == n then v = e.v elseif e.before_n == n then v = e.before end
    if v then
      local id = key:match("^[^%z]*%z[^%z]*")
      local g = sums[id]
      if g then
        g.sum, g.min, g.max, g.count = g.sum + v, math.min(g.min, v), math.max(g.max, v), g.count + 1
      else
        sums[id] = { sum = v, min = v, max = v, count = 1 }
      end
    end
  end

  local function give(id, g)
    local of = state.groups:get(id)
    if not of then return end
    for _, fn in ipairs(args.functions) do
      ctx.emit {
        name = of.name .. ":" .. fn, type = "gauge", labels = of.labels, time = (n + 1) * args.every * 1000,
        value = g and FUNCTIONS[fn](g), stale = not g,
      }
    end
  end

  for id, g in pairs(sums) do
    state.groups:update(id, function(of) return of end) -- for another hour
    give(id, g)
    state.shown:add(id)
  end
  for _, id in ipairs(state.shown:entries(MOST)) do
    if not sums[id] then
      give(id, nil)
      state.shown:delete(id)
    end
  end
end

return weir.transform {
  args = {
    match     = weir.arg.regexp { doc = "Pattern of the names of the metrics to aggregate; all other metrics pass." },
    by        = weir.arg.list { of = weir.arg.string {}, default = {}, doc = "Labels to group by." },
    without   = weir.arg.list { of = weir.arg.string {}, default = {}, doc = "Labels to aggregate away, as an alternative to by." },
    functions = weir.arg.list { of = weir.arg.enum { values = { "sum", "min", "max", "avg", "count" } }, default = { "sum" }, doc = "Functions to compute for each group." },
    every     = weir.arg.duration { default = "1m", doc = "The interval; a multiple of five seconds." },
    delay     = weir.arg.duration { default = "5s", doc = "How late samples may arrive; must be less than the interval." },
    keep      = weir.arg.bool { default = false, doc = "Whether to forward the aggregated samples as well." },
  },

  state = {
    last   = weir.state.map { max = MOST, ttl = "1h", doc = "Values of each series in the last two intervals in which it had a sample." },
    groups = weir.state.map { max = MOST, ttl = "1h", doc = "Name and labels of each group." },
    shown  = weir.state.set { max = MOST, doc = "Groups of the last interval." },
    done   = weir.state.counter { max = 1, doc = "The last completed interval." },
    said   = weir.state.set { max = 10, ttl = "1h", doc = "Problems that have been logged." },
  },

  setup = function(ctx)
    local a = ctx.args
    if a.every < 5 or a.every % 5 ~= 0 then error("cannot aggregate over " .. a.every .. "s: every must be a multiple of five seconds") end
    if a.delay >= a.every then error("cannot wait " .. a.delay .. "s for samples: delay must be less than every") end
  end,

  metrics = function(batch, ctx)
    local args, state = ctx.args, ctx.state
    local done = state.done:get("n")

    local function say(what)
      if state.said:add(what) then ctx.log.warn(what) end
    end

    batch:each(function(r)
      local v = r.value
      if not v or not args.match:match(r.name) then return end
      local n = math.floor(r.time / 1000 / args.every)
      if n <= done then
        say("samples came too late for their interval and are dropped")
      else
        local labels = group(r.labels, args)
        local id = r.name .. "\0" .. json.encode(labels)
        if not state.groups:has(id) then state.groups:set(id, { name = r.name, labels = labels }) end
        local value = not r.stale and v
        local ok = state.last:update(id .. "\0" .. tostring(r.labels), function(e)
          if not e or n > e.n + 1 then return { n = n, v = value } end
          if n == e.n + 1 then return { n = n, v = value, before_n = e.n, before = e.v } end
          if n == e.n then e.v = value elseif n == e.before_n then e.before = value end
          return e
        end)
        if not ok then
          say("there are more series than can be aggregated") -- weir:ignore mutate a test would need 20,000 series, which takes too long
        end
      end
      if not args.keep then r:drop() end
    end)
  end,

  every = {
    ["5s"] = function(ctx)
      local args, done = ctx.args, ctx.state.done
      local over = math.floor((ctx.now() / 1000 - args.delay) / args.every) - 1
      local before = done:get("n")
      done:set("n", math.max(before, over)) -- what comes from here on is late
      for n = math.max(before + 1, over - 1), over do flush(n, ctx) end
    end,
  },
}
