-- Compiles patterns that are as large as they may be, and keeps them.
local weir = require "weir"
local re = require "re"
local kept, n = {}, 0
return weir.transform { metrics = function(batch)
  while true do
    n = n + 1
    kept[n] = re.compile(([[\w{999}]]):rep(15) .. n)
    re.compile("(" .. ("abcdefgh"):rep(400) .. "){900}")
  end
end }
