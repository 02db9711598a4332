-- Adds the label team.
local weir = require "weir"
return weir.transform { series = function(s) s.labels.team = "core" end }
