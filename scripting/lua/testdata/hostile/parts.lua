-- Parts of long texts, which keep all of the text alive: kept ones count as much.
--
-- script: limits { time = "500ms" memory = "8MiB" }
local weir = require "weir"
local json, re, text, csv, logfmt, url = require "json", require "re", require "text", require "csv", require "logfmt", require "url"
local bombs, kept = {}, {}

local n = 0
local function long() n = n + 1 return ("x"):rep(100) .. " " .. n .. ("y"):rep(1000000) end
local function keep(x) assert(#x > 0) kept[#kept + 1] = x end

-- want: limit exceeded
function bombs.sub() while true do keep(long():sub(1, 20)) end end
function bombs.match() while true do keep(long():match("%d+")) end end
function bombs.gmatch() while true do for x in long():gmatch("%d+") do keep(x) end end end
function bombs.gsub() while true do (long():gsub("%d+", keep)) end end
function bombs.json() while true do keep(json.decode('{"a":"' .. n .. 'abc","b":"' .. long() .. '"}').a) end end
function bombs.re() while true do keep(re.find("[0-9]+", long())[1]) end end
function bombs.split() while true do keep(text.split(long(), "y", 2)[1]) end end
function bombs.trim() while true do keep(text.trim(long(), "y")) end end
function bombs.truncate() while true do keep(text.truncate(long(), 50)) end end
function bombs.csv() while true do keep(csv.decode("a," .. n .. ",b" .. long())[1][2]) end end
function bombs.logfmt() while true do keep(logfmt.decode("a=b" .. n .. " b=" .. long()).a) end end

return weir.transform { metrics = function(batch, ctx)
  local bomb = bombs[batch[1].labels.bomb]
  if bomb then bomb(batch, ctx) end
  batch:set_label("ok", "1")
end }
