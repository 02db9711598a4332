local tidy = weir.test.component("tidy.lua", { site = "lab" })

describe("demo.tidy", function()
  it("adds the site to every series", function()
    local out = tidy:metrics [[
      up{job="a"} 1
      up{job="b"} 0
    ]]
    assert.same({ "lab" }, out:label_values("site"))
    assert.equals(2, #out)
  end)

  it("gives memory in MiB", function()
    local out = tidy:metrics "node_memory_MemFree_bytes 1572864"
    assert.equals(1.5, out:value [[node_memory_MemFree_mebibytes{site="lab"}]])
  end)

  describe("drops", function()
    it("what begins with a name of drop", function()
      local out = tidy:metrics [[
        go_goroutines 12
        cargo_total 3
      ]]
      assert.same({ "cargo_total" }, out:names())
      assert.equals(1, out:dropped())
    end)

    it("virtual devices", function()
      local out = tidy:metrics [[
        node_network_up{device="eth0"} 1
        node_network_up{device="veth12ab"} 1
      ]]
      assert.same({ "eth0" }, out:label_values("device"))
    end)

    it("the devices it is told to", function()
      local t = weir.test.component("tidy.lua", { devices = "^wg", drop = {} })
      local out = t:metrics [[
        go_goroutines{device="wg0"} 12
        go_goroutines{device="veth12ab"} 13
      ]]
      assert.same({ "veth12ab" }, out:label_values("device"))
    end)
  end)

  it("keeps everything else of a sample", function()
    local out = tidy:metrics(fixtures.special_values)
    for _, r in ipairs { "nan with a payload", "stale", "-0" } do
      assert.is_not_nil(out:value(string.format("v{is=%q,site=%q}", r, "lab")), r)
    end
    assert.matches("NaN%(0x7ff8000000000123%)", out:text())
  end)
end)
