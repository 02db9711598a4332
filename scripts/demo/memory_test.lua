local both = [[
  node_memory_MemTotal_bytes{instance="a"} 4000
  node_memory_MemAvailable_bytes{instance="a"} 1000
]]

describe("demo.memory", function()
  local memory
  before_each(function() memory = weir.test.component("memory.lua") end)

  it("adds the ratio to what came", function()
    local out = memory:metrics(both)
    assert.equals(3, #out)
    assert.equals(0.75, out:value [[node_memory_used_ratio{instance="a"}]])
  end)

  it("takes another name", function()
    local named = weir.test.component("memory.lua", { name = "used" })
    assert.equals(0.75, named:metrics(both):value [[used{instance="a"}]])
  end)

  it("computes the ratio of any memory", function()
    local out = memory:metrics "node_memory_MemTotal_bytes 1\nnode_memory_MemAvailable_bytes 0.25"
    assert.equals(0.75, out:value "node_memory_used_ratio")
  end)

  it("says nothing of half the gauges, or of no memory at all", function()
    memory:unchanged [[node_memory_MemTotal_bytes{instance="a"} 4000]]
    memory:unchanged [[
      node_memory_MemTotal_bytes{instance="a"} 0
      node_memory_MemAvailable_bytes{instance="a"} 0
    ]]
  end)

  it("ends the ratio with what it is made of", function()
    memory:metrics(both)
    memory:advance("15s")
    local out = memory:metrics [[
      node_memory_MemTotal_bytes{instance="a"} stale
      node_memory_MemAvailable_bytes{instance="a"} stale
    ]]
    assert.same([[
      node_memory_MemTotal_bytes{instance="a"} stale
      node_memory_MemAvailable_bytes{instance="a"} stale
      node_memory_used_ratio{instance="a"} stale
    ]], out)
  end)

  it("leaves everything else alone", function() memory:unchanged(fixtures.every_metric_kind) end)
end)
