local weir = require "weir"

describe("logs.dedupe", function()
  it("remembers from batch to batch, and over a reload", function()
    local t = weir.test.component("dedupe.lua", {})
    assert.equals(1, #t:logs '{a="1"} x')
    assert.equals(0, #t:logs '{a="1"} x')
    t:reload()
    assert.equals(0, #t:logs '{a="1"} x')
    t:advance("1m")
    assert.equals('{a="1"} {repeated="2"} x\n', t:logs('{a="1"} x'):text():gsub("@%S+ ", ""))
  end)

  it("drops a line within the window only, from the first one on", function()
    local t = weir.test.component("dedupe.lua", { window = "10s" })
    assert.equals(1, #t:logs "{} @2025-01-01T00:00:00Z x\n{} @2025-01-01T00:00:09.999Z x")
    local out = t:logs "{} @2025-01-01T00:00:10Z x\n{} @2025-01-01T00:00:10Z x"
    assert.same({ "x" }, out:lines())
    assert.equals("1", out[1].metadata.repeated)
    assert.is_nil(t:logs("{} @2025-01-01T00:01:00Z y")[1].metadata.repeated)
  end)

  it("compares labels and the whole of long lines", function()
    local t = weir.test.component("dedupe.lua", { alike = true })
    assert.equals(2, #t:logs '{a="1"} x\n{a="2"} x')
    local long = ("x"):rep(1024)
    assert.equals(2, #t:logs("{} " .. long .. "1\n{} " .. long .. "2"))
    local short = ("x "):rep(511) .. " "
    assert.equals(1, #t:logs("{} " .. short .. "1\n{} " .. short .. "2"))
  end)

  it("never drops a line that is too long to compare", function()
    local t, huge = weir.test.component("dedupe.lua", {}), ("x"):rep(1048577)
    assert.equals(2, #t:logs("{} " .. huge .. "\n{} " .. huge))
    local shorter = huge:sub(2)
    assert.equals(1, #t:logs("{} " .. shorter .. "\n{} " .. shorter))
  end)

  it("compares numbers by default", function()
    assert.equals(2, #weir.test.component("dedupe.lua", {}):logs "{} x 1\n{} x 2")
  end)

  it("keeps lines that come late", function()
    local t = weir.test.component("dedupe.lua", {})
    assert.equals(2, #t:logs "{} @2025-01-01T00:10:00Z x\n{} @2025-01-01T00:00:00Z x")
  end)

  it("tells words from numbers when lines are alike", function()
    local t = weir.test.component("dedupe.lua", { alike = true })
    assert.same({ "user 1 from 10.0.0.1", "user x from 10.0.0.1", "added 7" },
      t:logs("{} user 1 from 10.0.0.1\n{} user 2 from 10.0.0.99\n{} user x from 10.0.0.1\n{} added 7\n{} added 0xff"):lines())
    assert.same({ "took 7ms", "took ms" }, t:logs("{} took 7ms\n{} took 8ms\n{} took ms"):lines())
  end)
end)
