-- Bombs that hold more and more: the limit of memory must end them, not that of
-- time.
--
-- script: limits { time = "60s" memory = "8MiB" }
local weir = require "weir"
local json = require "json"
local bombs, kept = {}, {}

local n = 0 -- lists of more than 131071 items have no # that tells
local function push(t, x) n = n + 1 t[n] = x end

-- want: holds more than 8 MiB
function bombs.array() local t = {} while true do push(t, n + 0.5) end end
function bombs.tables() local t = {} while true do push(t, {}) end end
function bombs.linked() local t while true do t = { t } end end
function bombs.keys() local t, i = {}, 0 while true do i = i + 1 t[i * 1.5] = true end end
function bombs.deleted() local t, i = {}, 0 while true do i = i + 1 t[i + 0.5] = true t[i + 0.5] = nil end end
function bombs.sparse() local t = {} while true do local s = {} s[100000] = 1 push(t, s) end end
function bombs.emptied() local t = {} while true do local s = {} s[100000] = 1 s[100000] = nil push(t, s) end end
function bombs.upvalues() while true do local n, before = 1, {} push(kept, function() return n, before end) end end
function bombs.functions() local f while true do local g = f f = function() return g end end end
function bombs.metatables() local t while true do t = setmetatable({}, { __index = t }) end end
function bombs.iterators() local t = {} while true do push(t, ("x"):gmatch(".")) end end
function bombs.copies(batch) local t = {} while true do push(t, batch[1]:copy()) end end
function bombs.decoded() local t = {} while true do push(t, json.decode("[{},[],{}]")) end end
function bombs.lists() local t, s = {}, "[" .. ("{},"):rep(20000) .. "{}]" while true do push(t, json.decode(s)) end end
function bombs.recursion() local function f(t) local u = {} for i = 1, 10000 do u[i] = { t } end return 1 + f(u) end f() end
function bombs.pcalls() local t = {} while true do pcall(function() while true do push(t, {}) end end) end end
function bombs.metamethod() local t = {} local _ = setmetatable({}, { __index = function() while true do push(t, {}) end end }).x end
function bombs.sort() local t = {} table.sort({ 3, 2, 1 }, function(a, b) while true do push(t, {}) end end) end
function bombs.gsub() local t = {} ;("a"):gsub("a", function() while true do push(t, {}) end end) end
function bombs.each(batch) local t = {} batch:each(function() while true do push(t, {}) end end) end
function bombs.in_coroutine() coroutine.wrap(function() local t = {} while true do push(t, {}) end end)() end
function bombs.suspended()
  local t = {}
  while true do
    local co = coroutine.wrap(function() local s = {} for i = 1, 10000 do s[i] = i end coroutine.yield() return s end)
    co()
    push(t, co)
  end
end
function bombs.module_local() while true do push(kept, {}) end end

-- want: limit exceeded
function bombs.strings() local t = {} while true do push(t, ("x"):rep(100000) .. #t) end end
function bombs.coroutines() local t = {} while true do push(t, coroutine.create(function() end)) end end
function bombs.formatted() local t = {} while true do push(t, ("%99d"):format(#t)) end end
function bombs.concatenated() local t, all = { ("x"):rep(100000) }, {} while true do push(all, table.concat(t, ",")) end end
function bombs.uppered() local t, s = {}, ("x"):rep(1000000) while true do push(t, s:upper()) end end

-- want: more than 500000 values
function bombs.json_wide() assert(json.decode("[" .. ("{},"):rep(2000000) .. "{}]")) end
-- want: more than 100 levels
function bombs.json_deep() assert(json.decode(("["):rep(4000000))) end
-- want: nests deeper than 100
function bombs.json_encode_deep() local t = {} for _ = 1, 1e5 do t = { t } end assert(json.encode(t)) end

return weir.transform { metrics = function(batch, ctx)
  local bomb = bombs[batch[1].labels.bomb]
  if bomb then bomb(batch, ctx) end
  batch:set_label("ok", "1")
end }
