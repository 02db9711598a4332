-- Never ends.
local weir = require "weir"
return weir.transform { metrics = function() while true do end end }
