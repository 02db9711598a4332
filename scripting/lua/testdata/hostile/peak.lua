-- Bombs at the usual limit of memory, for the peak of the process.
--
-- script: limits { time = "60s" }
local weir = require "weir"
local json = require "json"
local bombs = {}

-- want: holds more than 64 MiB
function bombs.tables() local t, i = {}, 0 while true do i = i + 1 t[i] = {} end end
function bombs.named() local t, i = {}, 0 while true do i = i + 1 t[i] = { name = i } end end
function bombs.sparse() local t, i = {}, 0 while true do i = i + 1 t[i] = { [100000] = 1 } end end
function bombs.functions() local f while true do local g = f f = function() return g end end end
function bombs.lists() local t, i, s = {}, 0, "[" .. ("{},"):rep(20000) .. "{}]" while true do i = i + 1 t[i] = json.decode(s) end end

return weir.transform { metrics = function(batch, ctx)
  local bomb = bombs[batch[1].labels.bomb]
  if bomb then bomb(batch, ctx) end
  batch:set_label("ok", "1")
end }
