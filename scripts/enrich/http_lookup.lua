-- Adds labels from an HTTP API, such as the team of a host or the plan of a tenant.
--
-- The script requests each value of a label once and caches the response. Batches that
-- need the same response at the same time share one request. If the API does not
-- respond, the script uses the last response for the value, or adds no labels; it tries
-- again after `retry`. Labels that the sample already has are replaced.
--
--   enrich.http_lookup "default" {
--   	url        = "https://cmdb.internal/hosts/{value}"
--   	label      = "instance"
--   	labels     = {team = "owner.team", rack = "location.rack"}
--   	forward_to = [prometheus.remote_write.default.receiver]
--
--   	script {
--   		allow {
--   			http = ["https://cmdb.internal/*"]
--   		}
--   	}
--   }
local url  = require "url"
local weir = require "weir"

local PAUSE = 0.02 -- seconds between two looks at whether another VM has the answer

-- pick finds what a path such as owner.team leads to: a text, or nil.
local function pick(answer, path)
  for key in path:gmatch "[^.]+" do
    if type(answer) ~= "table" then return nil end
    answer = answer[tonumber(key) or key]
  end
  local kind = type(answer)
  if kind == "string" or kind == "number" or kind == "boolean" then return tostring(answer) end
end

-- ask asks the API about a value and returns its labels; nil and why when it
-- does not answer. Who is not known to it (404) has no labels.
local function ask(ctx, value)
  local args = ctx.args
  local target = args.url:gsub("{value}", (url.escape(value):gsub("%%", "%%%%")))
  local answer, err = ctx.http.get(target, { bearer = args.token, timeout = args.timeout })
  if not answer then return nil, err end
  if answer.status == 404 then return {} end
  if answer.status ~= 200 then return nil, "status " .. answer.status end
  local body, wrong = answer:json()
  if wrong then return nil, wrong end
  local labels = {}
  for label, path in pairs(args.labels) do labels[label] = pick(body, path) end
  return labels
end

-- lookup returns the labels of a value, out of the cache as long as they are fresh.
local function lookup(ctx, value)
  local cache, asking = ctx.state.cache, ctx.state.asking
  local known = cache:get(value)
  if known and known.until_ > ctx.now() then return known.labels end

  if not asking:add(value) then -- another VM asks
    if known then return known.labels end
    local waited = 0
    repeat
      local _, err = ctx.sleep(PAUSE)
      if err then return {} end -- the component stops
      waited = waited + PAUSE
      known = cache:get(value) -- weir:ignore mutate only a second VM sets it now: TestLookupShares
      if known then return known.labels end -- weir:ignore mutate see above
    until asking:add(value) or waited >= ctx.args.timeout
  end
  local labels, err = ask(ctx, value)
  local fresh = labels and ctx.args.ttl or ctx.args.retry
  if not labels then
    labels = known and known.labels or {}
    if ctx.state.said:add("failed") then ctx.log.warn("no answer", { value = value, err = err }) end
  end
  cache:set(value, { labels = labels, until_ = ctx.now() + fresh * 1000 })
  asking:delete(value)
  return labels
end

return weir.transform {
  needs = { http = true },

  args = {
    url     = weir.arg.string { doc = "URL to request; {value} is replaced by the value of the label." },
    label   = weir.arg.string { default = "instance", doc = "The label whose values are looked up. Samples without it are not changed." },
    labels  = weir.arg.map { of = weir.arg.string {}, doc = "Labels to set, with their paths in the JSON response, such as owner.team or tags.1." },
    ttl     = weir.arg.duration { default = "1h", doc = "How long a response is cached." },
    retry   = weir.arg.duration { default = "1m", doc = "How long to wait after an error before the next request for the same value." },
    timeout = weir.arg.duration { default = "2s", doc = "Timeout of a request." },
    token   = weir.arg.secret { optional = true, doc = "Bearer token, sent in the header Authorization." },
  },

  state = {
    cache  = weir.state.lru { max = 50000, doc = "Responses by value: labels, and when they expire." },
    asking = weir.state.set { max = 1000, ttl = "15s", on_full = "evict", doc = "Values that are being requested." },
    said   = weir.state.set { max = 1, ttl = "10m", doc = "Whether the failure has been logged." },
  },

  metrics = function(batch, ctx)
    local found = {} -- of this batch
    for i, value in batch:rows("labels." .. ctx.args.label) do
      if value then
        local labels = found[value]
        if not labels then
          labels = lookup(ctx, value)
          found[value] = labels
        end
        for label, v in pairs(labels) do batch:set(i, "labels." .. label, v) end
      end
    end
  end,
}
