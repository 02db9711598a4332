-- Sends metrics in InfluxDB's line protocol to InfluxDB, Telegraf, QuestDB and similar.
--
-- A metric becomes a measurement with the field `value`; its labels become tags, and its
-- timestamp is in milliseconds. Values that the line protocol cannot express are omitted:
-- NaN, infinities, native histograms and staleness markers. Data that cannot be delivered
-- stays in the journal and is sent again.
--
--   sink.influx_line "default" {
--   	url   = "https://influx.internal:8086/api/v2/write"
--   	query = {org = "ops", bucket = "metrics"}
--   	token = sys.env("INFLUX_TOKEN")
--
--   	script {
--   		allow {
--   			http = ["https://influx.internal:8086/*"]
--   		}
--   	}
--   }
--
-- https://docs.influxdata.com/influxdb/v2/reference/syntax/line-protocol/
local weir = require "weir"

local function escape(s)
  return (s:gsub("[,= ]", "\\%0"):gsub("\n", "\\n"))
end

-- number is a value as line protocol has it, nil for what it has no form for.
local function number(v)
  if v ~= v or v == math.huge or v == -math.huge then return nil end
  return ("%.17g"):format(v)
end

return weir.sink {
  needs = { http = true },
  batch = { max_records = 5000, max_bytes = "2MiB", max_wait = "1s" },

  args = {
    url     = weir.arg.string { doc = "URL to write to: …/api/v2/write or …/write." },
    query   = weir.arg.map { of = weir.arg.string {}, default = {}, doc = "Query parameters, such as org and bucket, or db." },
    token   = weir.arg.secret { optional = true, doc = "Token, sent in the header Authorization." },
    headers = weir.arg.map { of = weir.arg.string {}, default = {}, doc = "Additional headers of the request." },
    tags    = weir.arg.map { of = weir.arg.string {}, default = {}, doc = "Tags to add to all metrics; a label of the same name has precedence." },
    timeout = weir.arg.duration { default = "10s", doc = "Timeout of a request." },
  },

  send = function(batch, ctx)
    local args, lines = ctx.args, {}
    for m in batch:records() do
      local value = not m.stale and m.value and number(m.value)
      if value then
        local tags = {}
        for k, v in pairs(args.tags) do tags[k] = v end
        for k, v in pairs(m.labels) do tags[k] = v end
        local names = {}
        for k, v in pairs(tags) do
          if v ~= "" then names[#names + 1] = k end -- an empty tag is a mistake
        end
        table.sort(names)
        local line = { escape(m.name) }
        for _, k in ipairs(names) do line[#line + 1] = escape(k) .. "=" .. escape(tags[k]) end
        lines[#lines + 1] = ("%s value=%s %.0f"):format(table.concat(line, ","), value, m.time)
      end
    end
    if #lines == 0 then return end

    local query, headers = { precision = "ms" }, { ["Content-Type"] = "text/plain; charset=utf-8" }
    for k, v in pairs(args.query) do query[k] = v end
    for k, v in pairs(args.headers) do headers[k] = v end
    if args.token then headers.Authorization = { "Token ", args.token } end

    local answer, err = ctx.http.post(args.url, table.concat(lines, "\n") .. "\n", { query = query, headers = headers, timeout = args.timeout })
    if not answer then return ctx.retry { reason = err } end
    local status = answer.status
    if status < 300 then return end

    local reason = "status " .. status .. ": " .. answer.body:sub(1, 200)
    if status == 400 or status == 413 or status == 422 then return ctx.reject(reason) end -- as bad the next time
    local after = tonumber(answer.headers["retry-after"])
    ctx.retry { reason = reason, after = after and math.min(math.max(after, 1), 600) }
  end,
}
