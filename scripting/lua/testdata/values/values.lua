-- The values that FuzzValues passes to everything that a script can call, and
-- what decodes a case: a list of numbers from 0 to 255.

local M = {}

local function nested(n, wrap)
  local x = 1
  for _ = 1, n do x = wrap(x) end
  return x
end

local function boom() error("boom") end
local function cyclic() local t = {} t[1] = t t.t = t return t end
local function meta(mt) return setmetatable({ 1, 2, 3 }, mt) end
local function of_itself(key) local t = setmetatable({}, {}) getmetatable(t)[key] = function() return t end return t end
local function selfmeta() local t = {} setmetatable(t, t) t.__index = t t.__newindex = t t.__call = t t.__tostring = t t.__concat = t return t end
local function chain(n)
  local t = {}
  for _ = 1, n do t = setmetatable({}, { __index = t, __newindex = t }) end
  return t
end
local function calls(n)
  local t = print
  for _ = 1, n do t = setmetatable({}, { __call = t }) end
  return t
end

M.values = {
  function() return nil end, function() return true end, function() return 0 / 0 end, function() return -0 end, function() return math.huge end, function() return 2 ^ 53 end, function() return -1 end, function() return 1e308 end, function() return 0.5 end,
  function() return "" end, function() return "a" end, function() return "\255\254" end, function() return "\0" end, function() return ("x"):rep(1e6) end, function() return ("["):rep(2e5) end, function() return ("{\"a\":"):rep(1e5) end, function() return "%s%1$s%99999d{a}" end, function() return ("- "):rep(1e5) end, function() return "name" end, function() return "labels.job" end, function() return "a: &a [*a,*a]" end, function() return "1e9" end, function() return "(a*)*b" end, function() return "%f" end, function() return ("%"):rep(1000) end,
  function() return {} end, function() return { 1, 2, 3 } end, function() return { "name", "value" } end, function() return { a = 1, default = 2, values = { "a" }, fields = {} } end, function() return { name = "x", value = 1, labels = { a = "b" } } end, function() return { line = "x", labels = {} } end, function() return { 1, nil, 3, a = 1 } end, function() return { [1e9] = 1, [2 ^ 53] = 2 } end, function() return { [true] = 1, [boom] = 2, [cyclic()] = 3 } end, function() return { [0.5] = 1, [-1] = 2 } end, function() local t = {} for i = 1, 131072 do t[i] = i end return t end, function() local t = {} for i = 1, 1e4 do t["k" .. i] = i end return t end, function() local t = {} t[131071] = t return t end,
  cyclic, selfmeta, function() return nested(500, function(x) return { x } end) end, function() return nested(50000, function(x) return { x } end) end, function() return nested(50000, function(x) return { a = x } end) end, function() return nested(60, function(x) return { x, x } end) end, function() return nested(60, function(x) return { a = x, b = x } end) end, function() return nested(40, function(x) return { x, x, x, x } end) end,
  function() return of_itself("__tostring") end, function() return of_itself("__concat") end, function() return of_itself("__index") end, function() return of_itself("__len") end, function() return of_itself("__call") end, function() return of_itself("__unm") end, function() return of_itself("__eq") end, function() return of_itself("__lt") end,
  function() return meta { __tostring = boom } end, function() return meta { __index = boom } end, function() return meta { __len = function() return 2 ^ 53 end } end, function() return meta { __index = function() for _ = 1, math.huge do end end } end, function() return meta { __tostring = function(t) return tostring(t) end } end, function() return meta { __concat = function(a, b) return a .. b end } end, function() return meta { __metatable = false } end, function() return meta { __eq = function() return true end, __lt = boom, __le = boom } end, function() return meta { __call = function(t, ...) return t(...) end } end, function() return meta { __newindex = function(t, k, v) t[k] = v end } end, function() return meta { __tostring = function() return cyclic() end } end, function() return meta { __name = cyclic(), __gc = boom, __mode = "kv" } end,
  function() return chain(100) end, function() return chain(50000) end, function() return calls(100) end, function() return calls(50000) end,
  function() return boom end, function() return print end, function() return function(x) return x end end, function() return function() return true end end, function() return function(...) return ... end end, function() return function() return nested(5000, function(x) return { x } end) end end, function() return function() return cyclic() end end, function() local f f = function() return f() end return f end, function() local f f = function() return 1 + f() end return f end, function() return function(a, b) return a == b end end, function() return string.rep end, function() return error end, function() return pcall end, function() return tostring end, function() return setmetatable end, function() return coroutine.yield end, function() return unpack end,
  function() return coroutine.create(boom) end, function() return coroutine.create(function() coroutine.yield(1) end) end, function() return coroutine.wrap(function() for i = 1, math.huge do coroutine.yield(i) end end) end, function() local co co = coroutine.create(function() return coroutine.resume(co) end) return co end, function() return coroutine.wrap(boom) end, function() local w w = coroutine.wrap(function() return w() end) return w end,
  function() return _G end, function() return string end, function() return getmetatable("") end, function() return require("weir").null end, function() return require("weir").arg.string {} end, function() return require("weir").state.map {} end, function() return require("weir").arg end,
}

M.wraps = {
  function(x) return { x } end, function(x) return { a = x } end, function(x) return { x, x } end, function(x) return function() return x end end, function(x) return setmetatable({}, { __index = x }) end, function(x) return setmetatable({}, { __tostring = function() return x end }) end, function(x) return setmetatable({}, { __call = x }) end, function(x) return setmetatable({}, { __index = function() return x end, __len = function() return x end }) end,
  function(x) return { labels = x, name = x, value = x, line = x, metadata = x } end, function(x) return { default = x, values = x, fields = x, description = x, optional = x, min = x } end, function(x) local t = { a = x } t.self = t return t end, function(x) return nested(150, function(y) return { y, x } end) end, function(x) return coroutine.wrap(function() coroutine.yield(x) end) end, function(x) return { x = { x = { x = x } }, [1] = x } end, function(x) return setmetatable({ x }, { __metatable = x }) end,
}

-- case reads the numbers of a case.
function M.case(codes)
  local c, at = {}, 0
  function c.next()
    at = at + 1
    return codes[at] or 0
  end
  function c.index(n) return (c.next() + 256 * c.next()) % n + 1 end
  function c.value()
    local i, wrapped = c.index(#M.values), c.next() % 3
    local _, x = pcall(M.values[i])
    for _ = 1, wrapped do
      local wrap = M.wraps[c.next() % #M.wraps + 1]
      _, x = pcall(wrap, x)
    end
    return x
  end
  function c.list()
    local n = c.next() % 5
    local out = { n = n }
    for i = 1, n do out[i] = c.value() end
    return out
  end
  return c
end

-- builtins are the functions of the language's own.
function M.builtins()
  local out, names = {}, {}
  for name in pairs(_G) do names[#names + 1] = name end
  table.sort(names)
  for _, name in ipairs(names) do
    local x = _G[name]
    if type(x) == "function" then out[#out + 1] = x end
  end
  for _, lib in ipairs { string, table, math, coroutine } do
    names = {}
    for name in pairs(lib) do names[#names + 1] = name end
    table.sort(names)
    for _, name in ipairs(names) do if type(lib[name]) == "function" then out[#out + 1] = lib[name] end end
  end
  return out
end

-- play calls what a case says: a function of the table, or one of the language's.
function M.play(c, targets)
  local kind = c.next() % 4
  local list = kind < 3 and targets or M.builtins()
  local fn = list[c.index(#list)]
  local args = c.list()
  if kind < 3 then
    pcall(fn, args)
  else
    pcall(fn, unpack(args, 1, args.n))
  end
end

return M
