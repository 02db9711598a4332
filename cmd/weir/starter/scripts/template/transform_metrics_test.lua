-- Each test sends records to the component and checks the output.
-- 'weir test --help' lists everything that a test can use.
describe("template.transform_metrics", function()
  local t = weir.test.component("transform_metrics.lua", { region = "eu", drop = "_debug$" })

  it("adds the region to all series", function()
    local out = t:metrics [[
      up{job="api"} 1
      up{job="web"} 0
    ]]
    assert.equals(2, #out)
    assert.same({ "eu" }, out:label_values "region")
  end)

  it("drops the metrics that the argument drop matches", function()
    local out = t:metrics [[
      go_goroutines 12
      cache_debug 3
    ]]
    assert.same({ "go_goroutines" }, out:names())
    assert.equals(1, out:dropped())
  end)

  -- A fixture contains cases that are easily forgotten, such as staleness markers.
  it("does not change anything else", function()
    t:unchanged(fixtures.every_metric_kind)
  end)
end)
