-- Limits the number of series per metric.
--
-- The first `limit` series of a metric pass. Further series are dropped; with `fold`,
-- these labels are set to `other` instead, and the resulting series are summed. A series
-- counts until it ends or has had no sample for an hour. The log reports each metric over
-- its limit once an hour, and weir_component_samples_dropped_total counts the dropped
-- samples.
--
-- The limit for all metrics together is 50,000 series. Fold only labels that differ
-- within a target, and keep labels such as instance, which separate the sums of
-- different targets.
--
--   metrics.cardinality_guard "default" {
--   	limit      = 500
--   	limits     = {http_requests_total = 5000}
--   	fold       = ["path"]
--   	forward_to = [prometheus.remote_write.default.receiver]
--   }
--
-- Example Args:
--   limit = 2
-- Example Input:
--   hits_total{path="/a"} 1
--   hits_total{path="/b"} 2
--   hits_total{path="/c"} 3
--   up 1
-- Example Output:
--   hits_total{path="/a"} 1
--   hits_total{path="/b"} 2
--   up 1
-- Example Args:
--   limits = { hits_total = 1 }
--   fold   = ["path"]
-- Example Input:
--   hits_total{path="/a"} 1
--   hits_total{path="/b"} 2
--   hits_total{path="/c"} 3
-- Example Output:
--   hits_total{path="/a"} 1
--   hits_total{path="other"} 5
local merge = require "merge"
local weir  = require "weir"

local MOST = 50000

-- admit gives a series a place among `limit` ones of its metric, and reports
-- whether it has one.
local function admit(state, key, name, limit)
  if state.series:has(key) then
    state.series:add(key) -- for another hour
    return true
  end
  -- Counted first: of two VMs that do this at once, both see the other's.
  local n = state.count:add(name)
  local fits = n and n <= limit and state.series:add(key)
  if not fits then state.count:add(name, -1) end
  return fits
end

-- leave gives up the place of a series that ended, and reports whether it had one.
local function leave(state, key, name)
  local had = state.series:delete(key)
  if had then state.count:add(name, -1) end
  return had
end

return weir.transform {
  args = {
    limit  = weir.arg.int { default = 1000, doc = "Maximum number of series per metric." },
    limits = weir.arg.map { of = weir.arg.int {}, default = {}, doc = "Limits for individual metrics, by name." },
    fold   = weir.arg.list {
      of = weir.arg.string {}, default = {},
      doc = "Labels to set to `other` in series over the limit. The limit applies to the folded series as well; series beyond it are dropped.",
    },
  },

  state = {
    series = weir.state.set { max = MOST, ttl = "1h", doc = "Series that pass: name, a zero byte, labels." },
    count  = weir.state.counter { max = MOST, doc = "Number of series per metric." },
    said   = weir.state.set { max = 1000, ttl = "1h", on_full = "evict", doc = "Metrics that have been logged as over their limit." },
  },

  metrics = function(batch, ctx)
    local state, args = ctx.state, ctx.args
    local folded = {}

    local function decide(r, name, limit, stale)
      local key = name .. "\0" .. tostring(r.labels)
      if stale then return leave(state, key, name) end
      return admit(state, key, name, limit)
    end

    for i, name, stale in batch:rows("name", "stale") do
      local limit = args.limits[name] or args.limit
      if not decide(batch[i], name, limit, stale) then
        if not stale and state.said:add(name) then
          ctx.log.warn("a metric has too many series", { metric = name, limit = limit })
        end
        local some = false
        for _, label in ipairs(args.fold) do
          if batch[i].labels[label] then
            batch:set(i, "labels." .. label, "other")
            some = true
          end
        end
        if some then folded[#folded + 1] = i else batch:drop(i) end
      end
    end

    -- Folded series are limited as well, by a count of their own: another label
    -- may be the one that is too many.
    local keep = {}
    for _, i in ipairs(folded) do
      local r = batch[i]
      local name = r.name .. "\0folded"
      local key = name .. "\0" .. tostring(r.labels)
      if r.stale then
        keep[#keep + 1] = i
      elseif admit(state, key, name, args.limits[r.name] or args.limit) then
        keep[#keep + 1] = i
      else
        batch:drop(i)
      end
    end
    merge.rows(batch, keep)
  end,

  -- Places end by time as well, which the counts do not notice.
  every = {
    ["1m"] = function(ctx)
      local counts = {}
      for _, key in ipairs(ctx.state.series:entries(MOST)) do
        local name = key:match("^(.*)%z[^%z]*$")
        counts[name] = (counts[name] or 0) + 1
      end
      for name in pairs(ctx.state.count:entries(MOST)) do
        if not counts[name] then ctx.state.count:delete(name) end
      end
      for name, n in pairs(counts) do ctx.state.count:set(name, n) end
    end,
  },
}
