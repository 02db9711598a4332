-- scripts/http/paths.lua
-- Folds ids in the `path` label into :id and drops debug series.
--
-- Example Args:
--   keep = ["api"]
-- Example Input:
--   # TYPE http_requests_total counter
--   http_requests_total{job="api",path="/users/42/orders/7"} 1
--   go_goroutines{job="web"} 12
-- Example Output:
--   http_requests_total{job="api",path="/users/:id/orders/:id",region="eu"} 1
local weir = require "weir"
local re   = require "re"

local ID = re.compile [[/(\d+|[0-9a-f-]{36})\b]]

return weir.transform {
  args = {                                        -- attributes of the block: typed, checked with line and column, printed by `weir components http.paths`
    region = weir.arg.string { default = "eu" },
    keep   = weir.arg.list   { of = weir.arg.string {}, default = {}, doc = "Jobs whose go_ metrics stay." },
  },

  series = function(s, ctx)                       -- once per NEW series; what it decides is remembered on the series
    if s.labels.env == "dev" and s.labels.job ~= "api" then return s:drop() end
    s.labels.region = ctx.args.region
  end,

  metrics = function(batch, ctx)                  -- once per batch; records are kept unless dropped
    batch:drop_where [[ name startsWith "go_" && !(labels.job in args.keep) ]]
    batch:map_label("path", function(p) return (ID:replace(p, "/:id")) end)           -- once per distinct value
    batch:each(function(m)                        -- a record at a time; an error rolls this record back and goes to on_error
      if m.name == "request_ms" then
        m.name  = "request_seconds"
        m.value = m.value / 1000
      end
    end)
  end,
}
