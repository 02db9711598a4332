describe("enrich.http_lookup", function()
  local lookup, mocks
  before_each(function()
    mocks = weir.test.http {
      ["https://cmdb.internal/hosts/web-1"] = [[{"owner":{"team":"shop"},"tags":["a","b"],"size":3}]],
      ["https://cmdb.internal/hosts/db%2F1"] = { status = 404 },
    }
    lookup = weir.test.component("http_lookup.lua", {
      url    = "https://cmdb.internal/hosts/{value}",
      labels = { team = "owner.team", tag = "tags.2", size = "size", none = "owner.name" },
      token  = "s3cret",
      script = { allow = { http = { "https://cmdb.internal/*" } } },
    })
  end)

  it("sets what the answer has", function()
    assert.same('up{instance="web-1",size="3",tag="b",team="shop"} 1', lookup:metrics 'up{instance="web-1"} 1')
    assert.equals("Bearer s3cret", mocks:calls()[1].headers.Authorization)
  end)

  it("asks once for a value, until the answer is old", function()
    local function ask() lookup:metrics 'a{instance="web-1"} 1\nb{instance="web-1"} 2' end
    ask() ask()
    assert.equals(1, #mocks:calls())
    lookup:advance("59m")
    ask()
    assert.equals(1, #mocks:calls())
    lookup:advance("2m")
    ask()
    assert.equals(2, #mocks:calls())
  end)

  it("escapes the value, and leaves alone who is not known", function()
    lookup:unchanged 'up{instance="db/1"} 1'
    lookup:advance("2m") -- longer than after an error
    lookup:unchanged 'up{instance="db/1"} 1'
    assert.equals(1, #mocks:calls())
    assert.same({}, lookup:logged())
  end)

  it("leaves samples without the label alone", function()
    lookup:unchanged 'up{job="x"} 1'
    assert.equals(0, #mocks:calls())
  end)

  it("keeps the last answer when the next one does not come", function()
    lookup:metrics 'up{instance="web-1"} 1'
    weir.test.http { ["https://cmdb.internal/hosts/web-1"] = { status = 500 } }
    lookup:advance("61m")
    assert.same({ "shop" }, lookup:metrics('up{instance="web-1"} 1'):label_values("team"))
    assert.matches("no answer.*status 500", lookup:logged()[1])
  end)

  it("sets no labels when the answer is not JSON or has another shape", function()
    weir.test.http {
      ["https://cmdb.internal/hosts/a"] = "not JSON",
      ["https://cmdb.internal/hosts/b"] = [[{"owner":"shop","tags":[],"size":{"x":1}}]],
      ["https://cmdb.internal/hosts/c"] = [[{"owner":{"team":true}}]],
    }
    lookup:unchanged 'up{instance="a"} 1'
    assert.matches("no answer", lookup:logged()[1])
    lookup:unchanged 'up{instance="b"} 1'
    assert.same('up{instance="c",team="true"} 1', lookup:metrics 'up{instance="c"} 1')
  end)

  it("sets no labels when the API cannot be reached", function()
    weir.test.http { ["https://cmdb.internal/hosts/a"] = { error = "connection refused" } }
    lookup:unchanged 'up{instance="a"} 1'
    assert.matches("no answer.*connection refused", lookup:logged()[1])
  end)

  it("logs a failure once in ten minutes", function()
    weir.test.http { ["https://cmdb.internal/hosts/*"] = { status = 500 } }
    lookup:metrics 'up{instance="a"} 1\nup{instance="b"} 1'
    assert.equals(1, #lookup:logged())
    lookup:advance("11m")
    lookup:metrics 'up{instance="a"} 1'
    assert.equals(1, #lookup:logged())
  end)

  it("does not look up an empty value", function()
    lookup:unchanged 'up{instance=""} 1'
    assert.equals(0, #mocks:calls())
  end)

  it("needs no token, and waits for nobody after an answer", function()
    local t = weir.test.component("http_lookup.lua", {
      url = "https://cmdb.internal/hosts/{value}", labels = { team = "owner.team" }, retry = "5s",
      script = { allow = { http = { "https://cmdb.internal/*" } } },
    })
    weir.test.http { ["https://cmdb.internal/hosts/web-1"] = { { status = 503 }, [[{"owner":{"team":"shop"}}]] } }
    t:unchanged 'up{instance="web-1"} 1'
    assert.same({}, t:state "asking") -- another request may begin
    t:advance("5s") -- the failure is old now
    assert.same({ "shop" }, t:metrics('up{instance="web-1"} 1'):label_values("team"))
  end)

  it("waits for another request for the same value, or takes what it knew", function()
    local t = weir.test.component("http_lookup.lua", {
      url = "https://cmdb.internal/hosts/{value}", labels = { team = "owner.team" }, ttl = "5s",
      script = { allow = { http = { "https://cmdb.internal/*" } }, limits = { memory = "2MiB" } },
    })
    local big = '{"owner":{"team":[' .. ("1,"):rep(300000) .. "1]}}"
    weir.test.http { ["https://cmdb.internal/hosts/*"] = { big, [[{"owner":{"team":"shop"}}]], big } }
    t:failing 'up{instance="a"} 1' -- its request does not end, as if it took long
    local before = t:now()
    assert.same({ "shop" }, t:metrics('up{instance="a"} 1'):label_values("team"))
    assert.is_true(t:now() > before)
    t:advance("6s")
    t:failing 'up{instance="a"} 1'
    assert.same({ "shop" }, t:metrics('up{instance="a"} 1'):label_values("team"))
  end)

  it("caches the answers of more than one value", function()
    for _ = 1, 2 do lookup:metrics 'up{instance="web-1"} 1\nup{instance="db/1"} 1' end
    assert.equals(2, #mocks:calls())
  end)

  it("asks again after an error", function()
    weir.test.http { ["https://cmdb.internal/hosts/web-1"] = { { status = 503 }, [[{"owner":{"team":"shop"}}]] } }
    lookup:unchanged 'up{instance="web-1"} 1'
    lookup:advance("61s")
    assert.same({ "shop" }, lookup:metrics('up{instance="web-1"} 1'):label_values("team"))
  end)
end)
