describe("metrics.cardinality_guard", function()
  local guard
  before_each(function() guard = weir.test.component("cardinality_guard.lua", { limit = 2 }) end)

  local function paths(out) return table.concat(out:label_values("path"), " ") end

  it("lets the first series pass, in every batch", function()
    assert.equals("a b", paths(guard:metrics 'hits{path="a"} 1\nhits{path="b"} 1\nhits{path="c"} 1'))
    local out = guard:metrics 'hits{path="c"} 1\nhits{path="b"} 1\nhits{path="d"} 1'
    assert.equals("b", paths(out))
    assert.equals(2, out:dropped("script"))
    assert.equals("b", paths(guard:metrics 'hits{path="b"} 1'))
  end)

  it("says once which metric is over its limit", function()
    for _ = 1, 3 do guard:metrics 'hits{path="a"} 1\nhits{path="b"} 1\nhits{path="c"} 1\nhits{path="d"} 1' end
    local logs = guard:logged()
    assert.equals(1, #logs)
    assert.matches("metric=hits", logs[1])
  end)

  it("gives the place of a series that ended to another", function()
    guard:metrics 'hits{path="a"} 1\nhits{path="b"} 1\nhits{path="c"} 1'
    guard:advance("15s")
    assert.same('hits{path="a"} stale', guard:metrics 'hits{path="a"} stale\nhits{path="x"} stale')
    assert.equals("c", paths(guard:metrics 'hits{path="c"} 1'))
    assert.equals(0, #guard:metrics 'hits{path="d"} 1')
  end)

  it("gives the place of a series that does not come for an hour to another", function()
    guard:metrics 'hits{path="a"} 1\nhits{path="b"} 1'
    guard:advance("40m")
    guard:metrics 'hits{path="a"} 1'
    guard:advance("40m")
    assert.equals("a c", paths(guard:metrics 'hits{path="c"} 1\nhits{path="d"} 1\nhits{path="a"} 1'))
  end)

  it("gives all places to others when no series has come for an hour", function()
    guard:metrics 'hits{path="a"} 1\nhits{path="b"} 1'
    guard:advance("61m")
    assert.equals("c d", paths(guard:metrics 'hits{path="c"} 1\nhits{path="d"} 1\nhits{path="e"} 1'))
  end)

  it("folds what is over the limit", function()
    local folding = weir.test.component("cardinality_guard.lua", { limit = 1, fold = { "path" } })
    local batch = 'hits{path="a"} 1\nhits{path="b"} 2\nhits{path="c"} 4\nhits{path="c",zone="z"} 8\nhits{zone="y"} 16'
    assert.same('hits{path="a"} 1\nhits{path="other"} 6', folding:metrics(batch))
    folding:advance("15s")
    assert.same('hits{path="a"} 1\nhits{path="other"} 4', folding:metrics 'hits{path="a"} 1\nhits{path="b"} stale\nhits{path="c"} 4')
    folding:advance("15s")
    assert.same('hits{path="other"} stale', folding:metrics 'hits{path="c"} stale')
  end)

  it("counts folded series apart", function()
    local folding = weir.test.component("cardinality_guard.lua", { limit = 1, fold = { "value" } })
    assert.same('hits{value="a"} 1\nhits{value="other"} 2', folding:metrics 'hits{value="a"} 1\nhits{value="b"} 2')
    folding:advance("1m")
    folding:metrics 'hits{value="a"} stale'
    assert.same('hits{value="d"} 1', folding:metrics 'hits{value="d"} 1')
  end)

  it("keeps its counts over a reload", function()
    guard:metrics 'hits{path="a"} 1\nhits{path="b"} 1'
    guard:reload()
    assert.equals("a b", paths(guard:metrics 'hits{path="c"} 1\nhits{path="a"} 1\nhits{path="b"} 1'))
  end)

  it("takes other limits by name", function()
    local named = weir.test.component("cardinality_guard.lua", { limit = 1, limits = { wide = 3 } })
    local out = named:metrics 'wide{a="1"} 1\nwide{a="2"} 1\nnarrow{a="5"} 1\nwide{a="3"} 1\nwide{a="4"} 1\nnarrow{a="6"} 1'
    assert.same({ "1", "2", "3", "5" }, out:label_values("a"))
  end)

  it("leaves everything else alone", function()
    weir.test.component("cardinality_guard.lua"):unchanged(fixtures.every_metric_kind)
  end)
end)
