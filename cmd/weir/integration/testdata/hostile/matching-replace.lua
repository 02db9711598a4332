-- Replaces by a pattern that takes quadratic time on a text of 200 KB.
local weir = require "weir"
local re = require "re"
return weir.transform { metrics = function(batch)
  re.replace([[x*y|x]], ("x"):rep(200000), "z")
end }
