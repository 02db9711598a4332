-- Replaces the variable parts of URL paths in the label `path`.
--
-- Numbers, UUIDs, dates, hashes and other long tokens become :id, and query strings are
-- removed. Series of a target that become identical are summed, so use it for counters
-- and histograms of requests.
--
--   http.paths "default" {
--   	labels     = ["path", "uri"]
--   	also       = "^(alice|bob)$"
--   	forward_to = [prometheus.remote_write.default.receiver]
--   }
--
-- Example Input:
--   # TYPE http_requests_total counter
--   http_requests_total{job="api",path="/users/42/orders/7?page=2"} 1
--   http_requests_total{job="api",path="/users/43/orders/8"} 2
--   http_requests_total{job="api",path="/v2/users"} 4
--   http_requests_total{job="api",path="/files/2025-01-02/report.7.pdf"} 1
--   http_requests_total{job="api",path="/trace/4bf92f3577b34da6a3ce929d0e0e4736"} 1
--   http_requests_total{job="api",path="/item/9f1c0b7e-4b5a-4c3d-8e2f-1a2b3c4d5e6f/"} 1
-- Example Output:
--   # TYPE http_requests_total counter
--   http_requests_total{job="api",path="/users/:id/orders/:id"} 3
--   http_requests_total{job="api",path="/v2/users"} 4
--   http_requests_total{job="api",path="/files/:id/report.7.pdf"} 1
--   http_requests_total{job="api",path="/trace/:id"} 1
--   http_requests_total{job="api",path="/item/:id/"} 1
-- Example Args:
--   labels = ["uri"]
--   also   = "^(alice|bob)$"
--   mark   = "*"
-- Example Input:
--   hits_total{uri="/u/alice/1.json"} 1
--   hits_total{uri="/u/bob/2.json"} 1
--   hits_total{uri="/u/new"} 1
-- Example Output:
--   hits_total{uri="/u/*/*.json"} 2
--   hits_total{uri="/u/new"} 1
local merge = require "merge"
local re    = require "re"
local weir  = require "weir"

-- A whole segment that is no name: a number, a UUID, a date, a hash in hex, a
-- long token.
local ID = re.compile [[^(\d+|[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|\d{4}-\d\d(-\d\d)?|[0-9a-fA-F]{16,}|[0-9A-Za-z_=-]{32,})$]]

-- Shorter ones in hex count if they have a digit: "facade" is a word.
local SHORT = re.compile [[^[0-9a-fA-F]{7,15}$]]

local function fold(path, also, mark)
  path = path:gsub("[?#].*$", "")
  return (path:gsub("[^/]+", function(segment)
    local name, ending = segment:match("^(.+)(%.%a%w*)$")
    name = name or segment
    if ID:match(name) or (SHORT:match(name) and name:find("%d")) or (also and also:match(segment)) then
      return mark .. (ending or "")
    end
  end))
end

return weir.transform {
  args = {
    labels = weir.arg.list { of = weir.arg.string {}, default = { "path" }, doc = "Labels that contain paths." },
    also   = weir.arg.regexp { optional = true, doc = "Pattern of further path segments to replace." },
    mark   = weir.arg.string { default = ":id", doc = "Replacement for variable parts." },
  },

  metrics = function(batch, ctx)
    local args = ctx.args
    for _, label in ipairs(args.labels) do
      -- Once per distinct path, not once per record.
      batch:map_label(label, function(path) return fold(path, args.also, args.mark) end)
    end
    local folded, seen = {}, {}
    for _, label in ipairs(args.labels) do
      for i, path in batch:rows(label) do
        if path and not seen[i] and path:find(args.mark, 1, true) then
          seen[i] = true
          folded[#folded + 1] = i
        end
      end
    end
    merge.rows(batch, folded)
  end,
}
