local function fold(t, path)
  return t:metrics(('hits_total{path=%q} 1'):format(path)):label_values("path")[1]
end

describe("http.paths", function()
  local paths
  before_each(function() paths = weir.test.component("paths.lua") end)

  it("folds ids", function()
    for path, want in pairs {
      ["/users/42"] = "/users/:id",
      ["/users/42/"] = "/users/:id/",
      ["/42/43/44.json"] = "/:id/:id/:id.json",
      ["/commit/3f2c9ab"] = "/commit/:id",
      ["/facade/cafe"] = "/facade/cafe",
      ["/defaced/x"] = "/defaced/x",
      ["/v1/2025-01/x"] = "/v1/:id/x",
      ["/session/eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9"] = "/session/:id",
      ["/search?q=weir&page=7#top"] = "/search",
      ["users/7"] = "users/:id",
      ["/"] = "/",
    } do
      assert.equals(want, fold(paths, path))
    end
  end)

  it("adds up what becomes the same, of each time", function()
    local out = paths:metrics [[
      hits_total{path="/a/1"} 1
      hits_total{path="/a/2"} 2
      hits_total{path="/a/3"} 4 1000
      hits_total{path="/a/:id"} 8
      other_total{path="/a/1"} 16
    ]]
    assert.same([[
      hits_total{path="/a/:id"} 11
      hits_total{path="/a/:id"} 4 1000
      other_total{path="/a/:id"} 16
    ]], out)
  end)

  it("adds up paths that are nothing but an id, and marks of any characters", function()
    assert.same('hits_total{path=":id"} 3', paths:metrics 'hits_total{path="1"} 1\nhits_total{path="2"} 2')
    local t = weir.test.component("paths.lua", { mark = "^id" })
    assert.same('hits_total{path="/^id"} 3', t:metrics 'hits_total{path="/1"} 1\nhits_total{path="/2"} 2')
  end)

  it("does not take the time of a sample for a part of its name", function()
    local out = paths:metrics 'a{path="/1"} 1 11000\na1{path="/2"} 2 1000'
    assert.same('a{path="/:id"} 1 11000\na1{path="/:id"} 2 1000', out)
  end)

  it("ends a folded series when all that is in it has ended", function()
    local out = paths:metrics 'hits_total{path="/a/1"} stale\nhits_total{path="/a/2"} 2\nhits_total{path="/a/3"} stale\nhits_total{path="/a/4"} 1'
    assert.same('hits_total{path="/a/:id"} 3', out)
    paths:advance("15s")
    out = paths:metrics 'hits_total{path="/a/2"} stale\nhits_total{path="/a/4"} stale'
    assert.same('hits_total{path="/a/:id"} stale', out)
  end)

  it("leaves native histograms apart, which have no sum", function()
    local out = paths:metrics 'took_seconds{path="/a/1"} {count:1, sum:2}\ntook_seconds{path="/a/2"} {count:3, sum:4}'
    assert.equals(2, #out)
  end)

  it("reads other labels, and no label twice", function()
    local t = weir.test.component("paths.lua", { labels = { "path", "uri" } })
    assert.same('hits_total{path="/:id",uri="/:id"} 3', t:metrics 'hits_total{path="/1",uri="/2"} 1\nhits_total{path="/3",uri="/4"} 2')
  end)

  it("leaves everything else alone", function() paths:unchanged(fixtures.every_metric_kind) end)
end)
