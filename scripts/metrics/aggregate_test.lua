describe("metrics.aggregate", function()
  local function new(more)
    local args = { match = "^load$", by = { "job" }, functions = { "sum", "count" } }
    for k, v in pairs(more or {}) do args[k] = v end
    return weir.test.component("aggregate.lua", args)
  end

  local two = 'load{job="a",i="1"} 1\nload{job="a",i="2"} 2\nload{job="b",i="1"} 4'

  it("gives a sample for each group and function when the interval is over", function()
    local t = new()
    assert.equals(0, #t:metrics(two))
    assert.same({}, t:logged())
    assert.equals(0, #t:advance("60s"))
    assert.same([[
      # TYPE load:sum gauge
      # TYPE load:count gauge
      load:sum{job="a"} 3 1735689660000
      load:count{job="a"} 2 1735689660000
      load:sum{job="b"} 4 1735689660000
      load:count{job="b"} 1 1735689660000
    ]], t:advance("5s"))
  end)

  it("takes the last sample of each series", function()
    local t = new { functions = { "sum", "min", "max", "avg" } }
    t:metrics(two)
    t:advance("15s")
    t:metrics 'load{job="a",i="1"} 10'
    local out = t:advance("50s")
    assert.equals(12, out:value 'load:sum{job="a"}')
    assert.equals(2, out:value 'load:min{job="a"}')
    assert.equals(10, out:value 'load:max{job="a"}')
    assert.equals(6, out:value 'load:avg{job="a"}')
  end)

  it("knows the interval before until it is over", function()
    local t = new()
    t:metrics 'load{job="a",i="1"} 1'
    t:advance("61s")
    t:metrics 'load{job="a",i="1"} 7' -- of the next one
    assert.equals(1, t:advance("4s"):value 'load:sum{job="a"}')
    assert.equals(7, t:advance("60s"):value 'load:sum{job="a"}')
  end)

  it("drops what comes too late, and says so once", function()
    local t = new()
    t:metrics(two)
    t:advance("65s")
    for _ = 1, 3 do t:metrics 'load{job="a",i="3"} 100 1735689600000' end
    t:metrics 'load{job="a",i="1"} 1'
    assert.equals(1, t:advance("60s"):value 'load:sum{job="a"}')
    local logged = t:logged()
    assert.equals(1, #logged)
    assert.matches("samples came too late for their interval and are dropped", logged[1])
  end)

  it("knows a group for as long as it has samples", function()
    local t = new { functions = { "sum" } }
    t:metrics(two)
    t:advance("59m30s")
    t:metrics 'load{job="a",i="1"} 5'
    assert.equals(5, t:advance("35s"):value 'load:sum{job="a"}')
  end)

  it("has nothing to say of a group that it does not know any more", function()
    local t = new()
    t:metrics(two)
    t:set_state("groups", {})
    assert.equals(0, #t:advance("65s"))
  end)

  it("begins with the last two intervals", function()
    local t = new { functions = { "sum" } }
    t:metrics 'load{job="a",i="1"} 1 1735689470000\nload{job="b",i="1"} 2 1735689530000'
    assert.same('load:sum{job="b"} 2 1735689540000\nload:sum{job="b"} stale 1735689600000', t:advance("5s"))
  end)

  it("forgets what is two intervals old when a series goes on", function()
    local t = new { functions = { "sum" }, delay = "50s" }
    t:metrics 'load{job="a",i="1"} 1'
    t:advance("125s")
    t:metrics 'load{job="a",i="1"} 4'
    assert.same('load:sum{job="a"} stale 1735689720000\nload:sum{job="a"} 4 1735689780000', t:advance("2m"))
  end)

  it("ends a group that no series came for", function()
    local t = new { functions = { "sum" } }
    t:metrics(two)
    t:advance("65s")
    t:metrics 'load{job="b",i="1"} 5\nload{job="a",i="1"} stale\nload{job="a",i="2"} stale'
    assert.same('load:sum{job="b"} 5 1735689720000\nload:sum{job="a"} stale 1735689720000', t:advance("60s"))
    assert.same('load:sum{job="b"} stale 1735689780000', t:advance("60s"))
    assert.equals(0, #t:advance("5m"))
  end)

  it("groups by all labels but some, over other intervals", function()
    local t = new { by = {}, without = { "i" }, functions = { "sum" }, every = "10s", delay = "0s" }
    t:metrics 'load{job="a",zone="x",i="1"} 1\nload{job="a",zone="x",i="2"} 2\nload{job="a",i="2"} 4'
    assert.same('load:sum{job="a",zone="x"} 3 1735689610000\nload:sum{job="a"} 4 1735689610000', t:advance("10s"))
  end)

  it("refuses intervals that it cannot keep", function()
    assert.has_error(function() new { every = "7s" } end, "every must be a multiple of five seconds")
    assert.has_error(function() new { every = "0s" } end, "every must be a multiple of five seconds")
    assert.has_error(function() new { every = "10s", delay = "10s" } end, "delay must be less than every")
    new { every = "5s", delay = "4s" }
  end)

  it("takes a late sample into the interval before, while it is open", function()
    local t = new { functions = { "sum" }, delay = "20s" }
    t:metrics 'load{job="a",i="1"} 1'
    t:advance("61s")
    t:metrics 'load{job="a",i="1"} 7'
    t:metrics 'load{job="a",i="1"} 3 1735689630000' -- of the first one again
    assert.equals(3, t:advance("19s"):value 'load:sum{job="a"}')
    assert.equals(7, t:advance("60s"):value 'load:sum{job="a"}')
  end)

  it("forgets an interval that is older than the one before", function()
    local t = new { functions = { "sum" } }
    t:metrics 'load{job="a",i="1"} 1'
    t:advance("65s")
    t:advance("120s")
    t:metrics 'load{job="a",i="1"} 5'
    assert.equals(5, t:advance("60s"):value 'load:sum{job="a"}')
  end)

  it("goes on over a reload", function()
    local t = new { functions = { "sum" } }
    t:metrics 'load{job="a",i="1"} 1'
    t:advance("20s")
    t:reload()
    t:metrics 'load{job="a",i="2"} 2'
    assert.equals(3, t:advance("45s"):value 'load:sum{job="a"}')
  end)

  it("sends on what it is told to keep, and what is not aggregated", function()
    new { keep = true }:unchanged(two)
    new():unchanged(fixtures.every_metric_kind)
  end)
end)
