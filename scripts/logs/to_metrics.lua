-- Derives metrics from log lines.
--
-- Each block `metric` defines a counter, a gauge or a histogram of the lines that match:
-- of their number, or of one of their fields. Series are sent every 15 seconds and end
-- when no line has arrived for `idle`. The component does not forward the lines, so send
-- them to this component and to loki.write. Use labels with few values: the limit is
-- 10,000 series, and weir_script_custom_over_limit_total counts the lines beyond it.
--
--   logs.to_metrics "default" {
--   	metric {
--   		name   = "http_requests_total"
--   		labels = {job = "labels.job", status = "json.status"}
--   		where  = "json.status"
--   	}
--
--   	metric {
--   		name    = "http_request_seconds"
--   		type    = "histogram"
--   		value   = "json.took_ms"
--   		scale   = 0.001
--   		buckets = [0.1, 1, 10]
--   	}
--   	forward_to = [prometheus.remote_write.default.receiver]
--   }
local json = require "json"
local weir = require "weir"

local MOST = 10000
local LONGEST = 1048576 -- bytes of a text that can match

-- text is how a bound is written in the label le.
local function text(v)
  return (("%.12f"):format(v):gsub("0+$", ""):gsub("%.$", ""))
end

-- fields returns the labels of a rule, and its fields as batch:rows takes them: where,
-- value, then those of the labels.
local function fields(rule)
  local names = {}
  local out = { rule.where ~= "" and rule.where or "line", rule.value ~= "" and rule.value or "line" }
  for name, field in pairs(rule.labels) do
    names[#names + 1], out[#out + 1] = name, field
  end
  return names, out
end

return weir.transform {
  sends = { "metrics" },

  args = {
    idle = weir.arg.duration { default = "5m", doc = "How long a series continues without a line." },
    metric = weir.arg.block { repeated = true, doc = "A metric.", fields = {
      name    = weir.arg.string { doc = "Name of the metric." },
      type    = weir.arg.enum { values = { "counter", "gauge", "histogram" }, default = "counter", doc = "Type of the metric. A gauge has the last value." },
      help    = weir.arg.string { default = "", doc = "Help text of the metric." },
      where   = weir.arg.string { default = "", doc = "A field that a line must have to be counted: json.status, logfmt.level, labels.app, meta.trace_id. It is the name of a field, not an expression; to choose lines by an expression ('weir help expr'), put an expr.filter before this block." },
      match   = weir.arg.regexp { optional = true, doc = "Pattern that this field, or without `where` the line, must match. Texts longer than 1 MiB do not match." },
      value   = weir.arg.string { default = "", doc = "The field that is added, set or observed. Without it, lines are counted." },
      scale   = weir.arg.number { default = 1, doc = "Factor for the value: 0.001 converts milliseconds to seconds." },
      labels  = weir.arg.map { of = weir.arg.string {}, default = {}, doc = "Labels to set, with the fields of the line." },
      buckets = weir.arg.list { of = weir.arg.number {}, default = { 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10 }, doc = "Upper bounds of a histogram, in ascending order." },
    } },
  },

  state = {
    series = weir.state.map { max = MOST, max_value = "256KiB", doc = "Series by number of the rule and labels: value or buckets, and when a line came last." },
  },

  setup = function(ctx)
    for _, rule in ipairs(ctx.args.metric) do
      local names = fields(rule)
      if #names > 8 then error(("metric %s has %d labels: at most 8"):format(rule.name, #names)) end
      for i = 2, #rule.buckets do
        if rule.buckets[i] <= rule.buckets[i - 1] then error(("the buckets of metric %s do not rise at %g"):format(rule.name, rule.buckets[i])) end
      end
    end
  end,

  logs = function(batch, ctx)
    local series, now = ctx.state.series, ctx.now()
    for n, rule in ipairs(ctx.args.metric) do
      local names, wanted = fields(rule)
      local sums = {} -- of this batch: one change of the state for each series
      for _, where, value, a, b, c, d, e, f, g, h in batch:rows(unpack(wanted)) do
        local v = 1
        if rule.value ~= "" then v = tonumber(value) end
        local s = where ~= nil and tostring(where)
        if v and s and (not rule.match or #s <= LONGEST and rule.match:match(s)) then
          local labels = {}
          local got = { a, b, c, d, e, f, g, h }
          for i, name in ipairs(names) do
            if got[i] ~= nil and got[i] ~= "" then labels[name] = tostring(got[i]) end
          end
          local key = n .. json.encode(labels)
          local sum = sums[key] or { labels = labels, n = 0, sum = 0, counts = {} }
          sums[key] = sum
          v = v * rule.scale
          sum.n, sum.sum, sum.last = sum.n + 1, sum.sum + v, v
          if rule.type == "histogram" then
            for i, bound in ipairs(rule.buckets) do
              if v <= bound then sum.counts[i] = (sum.counts[i] or 0) + 1 end
            end
          end
        end
      end
      for key, sum in pairs(sums) do
        local ok = series:update(key, function(old)
          old = old or { rule = rule.name, labels = sum.labels, n = 0, sum = 0, counts = {} }
          local counts = {}
          for i = 1, #rule.buckets do counts[i] = (old.counts[i] or 0) + (sum.counts[i] or 0) end
          return { rule = rule.name, labels = old.labels, n = old.n + sum.n, sum = old.sum + sum.sum, last = sum.last, counts = counts, at = now }
        end)
        if not ok then ctx.metrics.counter("over_limit", {}, "Lines that were not counted: there are too many series."):add(sum.n) end
      end
    end
  end,

  every = {
    ["15s"] = function(ctx)
      local series, now, idle = ctx.state.series, ctx.now(), ctx.args.idle * 1000
      for key, s in pairs(series:entries(MOST)) do
        local rule = ctx.args.metric[tonumber(key:match("^%d+"))]
        local over = now - s.at >= idle
        -- What an older block counted under this number is not this rule's.
        if rule and rule.name == s.rule then
          local function emit(name, value, le)
            local labels = {}
            for k, v in pairs(s.labels) do labels[k] = v end
            labels.le = le
            ctx.emit { name = name, labels = labels, value = not over and value or nil, stale = over, type = rule.type, help = rule.help }
          end
          if rule.type == "counter" then
            emit(rule.name, s.sum)
          elseif rule.type == "gauge" then
            emit(rule.name, s.last)
          else
            for i, bound in ipairs(rule.buckets) do emit(rule.name .. "_bucket", s.counts[i], text(bound)) end
            emit(rule.name .. "_bucket", s.n, "+Inf")
            emit(rule.name .. "_sum", s.sum)
            emit(rule.name .. "_count", s.n)
          end
        end
        if over or not rule then series:delete(key) end
      end
    end,
  },
}
