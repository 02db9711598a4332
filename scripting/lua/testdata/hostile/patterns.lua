-- Patterns that take quadratic time or much memory. The limit of the call must
-- end them, and no text may be refused that a simple pattern matches.
--
-- script: limits { time = "100ms" memory = "64MiB" }
local weir = require "weir"
local re = require "re"
local bombs, kept = {}, {}
local x = ("x"):rep(1000000)
local few = ("x"):rep(50000)

-- want: limit exceeded
function bombs.replace() re.replace([[x*y|x]], few, "z") end
function bombs.replace_by() re.replace([[x*y|x]], few, function() end) end
function bombs.replace_groups() re.replace([[(x)(?:x*y)?]], few, "$1") end
function bombs.replace_words() re.replace([[\B(x*y|x)]], few, "z") end
function bombs.split() re.split([[x*y|x]], few) end
function bombs.split_some() re.split([[x*y|x]], few, 99000) end
function bombs.in_pcall() while true do pcall(re.replace, [[x*y|x]], few, "z") end end
function bombs.matches() while true do re.match([[x{1,9}x{1,9}y]], x) end end
function bombs.own_patterns() string.gsub(few, "x*y", "") end
function bombs.own_find() string.find(few, ".-.-.-y") end
function bombs.own_gmatch() for _ in string.gmatch(few, "(x*)y") do end end
function bombs.own_balance() string.gsub(("("):rep(50000), "%b()", "") end
function bombs.own_back_reference() string.find(few, "(x+)%1y") end
function bombs.memory()
  local i = 0
  while true do
    i = i + 1
    kept[i] = assert(re.compile(([[\w{999}]]):rep(15) .. i))
  end
end
function bombs.classes()
  local i = 0
  while true do
    i = i + 1
    kept[i] = assert(re.compile(([[\pL]]):rep(700) .. i))
  end
end
function bombs.expressions()
  local i = 0
  while true do
    i = i + 1
    kept[i] = assert(re.compile(("(a)"):rep(150) .. i))
  end
end

-- want: cannot match a text of
function bombs.one_match() assert(re.match([[(x{30}){30}y]], x)) end

-- want: of memory, and the limit is 4.0 MiB
function bombs.large() assert(re.compile("(" .. ("abcdefgh"):rep(400) .. "){900}")) end
function bombs.large_classes() assert(re.compile(([[\pL{1000}\pN{1000}]]):rep(50))) end
function bombs.large_table() assert(re.compile([[^\pL{490}\d$]])) end
function bombs.groups() assert(re.compile(("(a)"):rep(2700))) end
function bombs.in_an_expression(batch) batch:drop_where('name matches "(' .. ("abcdefgh"):rep(400) .. '){900}"') end
function bombs.in_an_element(batch) batch:drop_where('any([name], # matches "(' .. ("abcdefgh"):rep(400) .. '){900}")') end
function bombs.in_two_parts(batch) batch:drop_where('name matches "(" + "' .. ("abcdefgh"):rep(400) .. '" + "){900}"') end

return weir.transform { metrics = function(batch, ctx)
  local bomb = bombs[batch[1].labels.bomb]
  if bomb then bomb(batch, ctx) end
  batch:set_label("ok", "1")
end }
