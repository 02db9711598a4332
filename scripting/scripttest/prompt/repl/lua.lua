-- Receives the statements of a prompt without a node.
local weir = require "weir"

return weir.transform {
  metrics = function() end,
  logs = function() end,
}
