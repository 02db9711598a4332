-- Errors that are no texts, that fail when they are looked at, and errors in
-- what handles errors.
--
-- script: limits { time = "100ms" }
local weir = require "weir"
local bombs = {}

local loop = function() while true do end end
local function object(mt) return setmetatable({}, mt) end

-- want: in metrics: 
function bombs.with_nil() error(nil) end
function bombs.nothing() error() end
function bombs.boolean() error(false) end
function bombs.number() error(42) end
function bombs.empty() error("") end
function bombs.table() error({}) end
function bombs.cycle() local t = {} t.message = t error(t) end
function bombs.coroutine() error(coroutine.create(function() end)) end
function bombs.func() error(print) end
function bombs.userdata(batch) error(batch) end
function bombs.record(batch) error(batch[1]) end
function bombs.tostring_fails() error(object { __tostring = function() error("again") end }) end
function bombs.tostring_loops() error(object { __tostring = loop }) end
function bombs.tostring_lies() error(object { __tostring = function() return 1 end }) end
function bombs.index_fails() error(object { __index = function() error("again") end }) end
function bombs.index_loops() error(object { __index = loop }) end
function bombs.concat_fails() error(object { __concat = function() error("again") end }) end
function bombs.binary() error("\0\1\2\255\27[31m") end
function bombs.long() error(("x"):rep(8000000)) end
function bombs.levels() error("x", 1e9) end
function bombs.negative_level() error("x", -1) end
function bombs.in_handler() assert(xpcall(error, function() error("again") end)) end
function bombs.in_handlers() local function h() xpcall(error, h) error("again") end assert(xpcall(error, h)) end
function bombs.handler_of_itself() local function h(e) return xpcall(h, h) end error(xpcall(h, h)) end
function bombs.in_coroutine() coroutine.wrap(function() error({}) end)() end
function bombs.in_comparator() table.sort({ 3, 2, 1 }, function() error({}) end) end
function bombs.in_gsub() ("a"):gsub("a", function() error({}) end) end
function bombs.in_iterator() for _ in function() error({}) end do end end
function bombs.in_map_label(batch) batch:map_label("bomb", function() error({}) end) end
function bombs.in_filter(batch) batch:filter({ "value" }, function() error({}) end) end
function bombs.assert_table() assert(false, {}) end
function bombs.assert_nil() assert(nil) end

-- want: limit exceeded: the call ran longer
function bombs.print_loops() print(object { __tostring = loop }) end
function bombs.log_loops(_, ctx) ctx.log.info(object { __tostring = loop }) end
function bombs.log_field_loops(_, ctx) ctx.log.info("x", { y = object { __tostring = loop } }) end
function bombs.eq_loops() local mt = { __eq = loop } return object(mt) == object(mt) end
function bombs.lt_loops() local mt = { __lt = loop } return object(mt) < object(mt) end
function bombs.le_loops() local mt = { __le = loop } return object(mt) <= object(mt) end
function bombs.concat_loops() return object { __concat = loop } .. "x" end
function bombs.concat_loops_right() return "x" .. object { __concat = loop } end
function bombs.call_loops() object { __call = loop } () end
function bombs.newindex_loops() object { __newindex = loop }.x = 1 end
function bombs.unm_loops() return -object { __unm = loop } end
function bombs.add_loops() return object { __add = loop } + 1 end
function bombs.len_loops() return #object { __len = loop }, loop() end
function bombs.sort_lt_loops() local mt = { __lt = loop } table.sort { object(mt), object(mt) } end
function bombs.finally() while true do pcall(loop) xpcall(loop, loop) end end
function bombs.nested_pcalls() local function f() pcall(f) loop() end f() end

return weir.transform { metrics = function(batch, ctx)
  local bomb = bombs[batch[1].labels.bomb]
  if bomb then bomb(batch, ctx) end
  batch:set_label("ok", "1")
end }
