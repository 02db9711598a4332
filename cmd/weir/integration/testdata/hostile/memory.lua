-- Keeps more with every call.
local weir = require "weir"
local kept = {}
return weir.transform { metrics = function(batch)
  for i = 1, 100000 do kept[#kept + 1] = { batch } end
end }
