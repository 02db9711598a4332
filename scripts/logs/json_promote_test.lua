local weir = require "weir"

local function open(args) return weir.test.component("json_promote.lua", args) end

describe("logs.json_promote", function()
  it("promotes without a call into the script", function()
    local t = open { labels = { level = "level", code = "http.status" } }
    assert.equals('{code="200",level="info"} {"level":"info","http":{"status":200}}\n{} plain\n',
      t:logs('{} {"level":"info","http":{"status":200}}\n{} plain'):text())
  end)

  it("drops by what a field matches", function()
    local t = open { labels = { level = "level" }, drop = { level = "^debug$", path = "^/health" } }
    local out = t:logs '{} {"level":"debug"}\n{} {"level":"info","path":"/healthz"}\n{} {"level":"info","path":"/"}\n{} {"path":7}'
    assert.same({ '{"level":"info","path":"/"}', '{"path":7}' }, out:lines())
  end)

  it("reads logfmt", function()
    local t = open { format = "logfmt", metadata = { id = "trace" }, line = "msg" }
    assert.equals('{} {id="9"} went well\n', t:logs('{} trace=9 msg="went well"'):text())
  end)

  it("leaves values alone that are longer than 64 KiB", function()
    local fits = ("x"):rep(65536)
    local t = open { labels = { a = "a" }, metadata = { b = "b" }, drop = { c = "c" } }
    local out = t:logs(('{} {"a":%q,"b":%q}\n{} {"a":%q,"b":%q}'):format(fits, fits, fits .. "x", fits .. "x"))
    assert.same({ fits }, out:label_values("a"))
    assert.equals(fits, out[1].metadata.b)
    assert.is_nil(out[2].labels.a)
    assert.is_nil(out[2].metadata.b)
  end)

  it("leaves lines alone that do not have the fields", function()
    open({ labels = { level = "level" }, metadata = { id = "id" }, line = "msg" }):unchanged "{a=\"1\"} plain\n{a=\"1\"} {\"x\":null}\n{} \"\""
  end)
end)
