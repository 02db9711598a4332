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

  it("keeps lines that come late", function()
    local t = weir.test.component("dedupe.lua", {})
    assert.equals(2, #t:logs "{} @2025-01-01T00:10:00Z x\n{} @2025-01-01T00:00:00Z x")
  end)

  it("tells words from numbers when lines are alike", function()
    local t = weir.test.component("dedupe.lua", { alike = true })
    assert.same({ "user 1 from 10.0.0.1", "user x from 10.0.0.1", "added 7" },
      t:logs("{} user 1 from 10.0.0.1\n{} user 2 from 10.0.0.99\n{} user x from 10.0.0.1\n{} added 7\n{} added 0xff"):lines())
  end)
end)
