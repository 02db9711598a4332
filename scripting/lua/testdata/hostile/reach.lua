-- Attempts to reach what is not the script's, and to leave something behind.
--
-- script: limits { time = "500ms" }
local weir = require "weir"
local json, re, time = require "json", require "re", require "time"
local bombs, kept = {}, {}

local function refused(...) local ok, err = pcall(...) assert(not ok, "it was done") return tostring(err) end

-- want: contained
function bombs.globals()
  for _, name in ipairs { "os", "io", "debug", "package", "load", "loadstring", "loadfile", "dofile", "module", "getfenv",
    "setfenv", "collectgarbage", "newproxy", "channel", "_printregs", "arg", "jit", "ffi" } do
    assert(_G[name] == nil, name)
  end
  assert(string.dump == nil or not pcall(string.dump, print))
  error("contained")
end
function bombs.write_globals()
  refused(function() _G.print = 1 end)
  refused(rawset, _G, "print", 1)
  refused(table.insert, _G, 1)
  refused(setmetatable, _G, {})
  assert(getmetatable(_G) == false and rawget(_G, "print") == nil)
  error("contained")
end
function bombs.write_libraries(_, ctx)
  for _, lib in ipairs { string, table, math, coroutine, weir, json, re, time, ctx, ctx.args, ctx.log } do
    refused(function() lib.x = 1 end)
    refused(rawset, lib, "x", 1)
    refused(table.insert, lib, 1)
    refused(table.remove, lib)
    refused(table.sort, lib)
    refused(setmetatable, lib, {})
    assert(getmetatable(lib) == false)
  end
  error("contained")
end
function bombs.metatables(batch)
  for _, x in ipairs { "", batch, batch[1], batch[1].labels, json.null, re.compile "x" } do
    assert(getmetatable(x) == false)
    refused(setmetatable, x, {})
  end
  refused(function() ("").x = 1 end)
  error("contained")
end
function bombs.batch(batch)
  refused(function() batch.x = 1 end)
  refused(function() batch[1] = batch[1] end)
  refused(function() batch[1].nonsense = 1 end)
  refused(rawset, batch, 1, 1)
  refused(rawget, batch, 1)
  refused(next, batch)
  refused(unpack, batch)
  error("contained")
end
function bombs.names(batch)
  refused(function() batch[1].name = "" end)
  refused(function() batch[1].name = "\255" end)
  refused(function() batch[1].name = ("x"):rep(2000) end)
  refused(function() batch[1].labels[""] = "x" end)
  refused(function() batch[1].labels["\255"] = "x" end)
  refused(function() batch[1].labels.__name__ = "x" end)
  refused(function() batch[1].labels.x = "\255" end)
  refused(function() batch[1].labels.x = ("x"):rep(100000) end)
  refused(function() batch[1].labels[("x"):rep(2000)] = "x" end)
  refused(function() batch[1].labels.x = {} end)
  refused(function() for i = 1, 1000 do batch[1].labels["l" .. i] = "x" end end)
  refused(batch.set_label, batch, "x", ("x"):rep(100000))
  refused(batch.map_label, batch, "bomb", function() return ("x"):rep(100000) end)
  error("contained")
end
function bombs.expressions(batch)
  for _, e in ipairs { ("("):rep(5000), ("!"):rep(5000) .. "true", ("["):rep(5000), ("labels.x == 'a' || "):rep(3000) .. "true",
    "name matches '" .. ("(a|"):rep(2000) .. "'", "name matches '(x{1000}){1000}'", "1 + ", "len(1..1000000000) > 0", "repeat('x', 1000000000) == ''",
    "labels", "value", "nonsense > 1", "filter(1..1000, all(1..1000, true)) == 1", "9223372036854775808 > 0", "" } do
    local ok, err = pcall(batch.drop_where, batch, e)
    assert(not ok, e:sub(1, 80))
  end
  error("contained")
end
function bombs.patterns()
  refused(string.find, ("a"):rep(1000000), ("(.-)"):rep(33))
  refused(string.find, "x", "[")
  refused(string.find, "x", "%")
  refused(string.rep, "x", 1e18)
  refused(string.format, "%999999d", 1)
  refused(string.format, ("%s"):rep(300000))
  assert(not re.compile(("(a|"):rep(3000)))
  assert(not re.compile("((a{100}){100}){100}"))
  assert(not re.compile(("a|"):rep(10000)))
  assert(not re.match(("(a|b)"):rep(1000), ("ab"):rep(4000000)))
  assert(not re.replace("x*", ("-"):rep(1000000), ("y"):rep(1000)))
  error("contained")
end
-- What is kept is of no use in the next call.
function bombs.keep(batch, ctx)
  local k = kept
  kept = { batch = batch, record = batch[1], labels = batch[1].labels, ctx = ctx, emit = ctx.emit, rows = batch:rows("value"),
    records = batch:records(), co = coroutine.create(function() local r = batch[1] coroutine.yield() r.value = 9 end) }
  coroutine.resume(kept.co)
  if k.batch then
    for _, use in ipairs {
      function() return k.record.name end, function() k.record.value = 9 end, function() k.record:drop() end, function() return k.record:copy() end,
      function() return k.labels.bomb end, function() k.labels.x = "left" end, function() for _ in pairs(k.labels) do end end,
      function() return k.rows() end, function() return k.records() end,
    } do refused(use) end
    local ok = coroutine.resume(k.co)
    assert(not ok)
    error("contained")
  end
  kept.first = true
  error("contained")
end
function bombs.keep_again(...) bombs.keep(...) end

-- want: limit exceeded
function bombs.emit_records(_, ctx) while true do ctx.emit { name = "x", value = 1 } end end
function bombs.emit_bytes(_, ctx) local l = ("x"):rep(60000) while true do ctx.emit { name = "x", value = 1, labels = { l = l } } end end
function bombs.label_bytes(batch) local l = ("x"):rep(60000) while true do batch:set_label("l", l) end end
function bombs.label_values(batch) local i = 0 while true do i = i + 1 batch:set_label("l", i) end end
function bombs.label_names(batch) local i = 0 while true do i = i + 1 batch:set_label("l" .. i, "x") batch:drop_label("l" .. i) end end
function bombs.log_flood(_, ctx) while true do ctx.log.error(("x"):rep(1000), { a = ("y"):rep(1000) }) end end
function bombs.print_flood() while true do print(("x"):rep(10000)) end end
function bombs.compiled_patterns() local i = 0 while true do i = i + 1 re.match("a" .. i .. ("b"):rep(1000), "x") end end
function bombs.compiled_expressions(batch) local i = 0 while true do i = i + 1 batch:drop_where("value == " .. i .. ".5") end end

return weir.transform { metrics = function(batch, ctx)
  local bomb = bombs[batch[1].labels.bomb]
  if bomb then bomb(batch, ctx) end
  batch:set_label("ok", "1")
end }
