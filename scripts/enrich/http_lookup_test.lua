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

  -- stays checks that samples get no labels either, which t:unchanged allows.
  local function stays(t, text) assert.same(text, t:metrics(text)) end

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
    stays(lookup, 'up{instance="db/1"} 1')
    lookup:advance("2m") -- longer than after an error
    stays(lookup, 'up{instance="db/1"} 1')
    assert.equals(1, #mocks:calls())
    assert.same({}, lookup:logged())
  end)

  it("leaves samples without the label alone", function()
    stays(lookup, 'up{job="x"} 1')
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
    stays(lookup, 'up{instance="a"} 1')
    assert.matches("no answer", lookup:logged()[1])
    stays(lookup, 'up{instance="b"} 1')
    assert.same('up{instance="c",team="true"} 1', lookup:metrics 'up{instance="c"} 1')
  end)

  it("sets no labels when the API cannot be reached", function()
    weir.test.http { ["https://cmdb.internal/hosts/a"] = { error = "connection refused" } }
    stays(lookup, 'up{instance="a"} 1')
    assert.matches("no answer.*connection refused", lookup:logged()[1])
  end)

  it("logs a failure once in ten minutes", function()
    weir.test.http { ["https://cmdb.internal/hosts/*"] = { status = 500 } }
    lookup:metrics 'up{instance="a"} 1\nup{instance="b"} 1'
    assert.equals(1, #lookup:logged())
    assert.same({ "failed" }, lookup:state "said")
    lookup:advance("11m")
    lookup:metrics 'up{instance="a"} 1'
    assert.equals(1, #lookup:logged())
  end)

  it("does not look up an empty value", function()
    stays(lookup, 'up{instance=""} 1')
    assert.equals(0, #mocks:calls())
  end)

  it("needs no token, and waits for nobody after an answer", function()
    local t = weir.test.component("http_lookup.lua", {
      url = "https://cmdb.internal/hosts/{value}", labels = { team = "owner.team" }, retry = "5s",
      script = { allow = { http = { "https://cmdb.internal/*" } } },
    })
    weir.test.http { ["https://cmdb.internal/hosts/web-1"] = { { status = 503 }, [[{"owner":{"team":"shop"}}]] } }
    stays(t, 'up{instance="web-1"} 1')
    assert.same({}, t:state "asking") -- another request may begin
    t:advance("5s") -- the failure is old now
    assert.same({ "shop" }, t:metrics('up{instance="web-1"} 1'):label_values("team"))
  end)

  it("waits for another request for the same value, or takes what it knew", function()
    local t = weir.test.component("http_lookup.lua", {
      url = "https://cmdb.internal/hosts/{value}", labels = { team = "owner.team" }, timeout = "40ms",
      script = { allow = { http = { "https://cmdb.internal/*" } } },
    })
    local function waited() -- until the other request has timed out
      local before = t:now()
      t:set_state("asking", { "web-1" })
      assert.same({ "shop" }, t:metrics('up{instance="web-1"} 1'):label_values("team"))
      return t:now() - before
    end
    assert.equals(40, waited())
    t:advance("1h")
    assert.equals(0, waited())
    assert.equals(1, #mocks:calls())
  end)

  it("sets no labels when it cannot wait for another request", function()
    local t = weir.test.component("http_lookup.lua", {
      url = "https://cmdb.internal/hosts/{value}", labels = { team = "owner.team" },
      script = { allow = { http = { "https://cmdb.internal/*" } }, limits = { wait = "10ms" } },
    })
    t:set_state("asking", { "web-1" })
    assert.same({ 'up{instance="web-1"}' }, t:metrics('up{instance="web-1"} 1'):series())
    assert.equals(0, #mocks:calls())
  end)

  it("takes any label, and sends one request in a batch", function()
    local t = weir.test.component("http_lookup.lua", {
      url = "https://cmdb.internal/hosts/{value}", label = "name", labels = { value = "owner.team" }, retry = "0s",
      script = { allow = { http = { "https://cmdb.internal/*" } } },
    })
    assert.same('up{name="web-1",value="shop"} 1', t:metrics 'up{name="web-1"} 1')
    weir.test.http { ["https://cmdb.internal/hosts/a"] = { { status = 500 }, [[{"owner":{"team":"shop"}}]] } }
    stays(t, 'up{name="a"} 1\ndown{name="a"} 1')
  end)

  it("caches the answers of more than one value", function()
    for _ = 1, 2 do lookup:metrics 'up{instance="web-1"} 1\nup{instance="db/1"} 1' end
    assert.equals(2, #mocks:calls())
  end)

  it("asks again after an error", function()
    weir.test.http { ["https://cmdb.internal/hosts/web-1"] = { { status = 503 }, [[{"owner":{"team":"shop"}}]] } }
    stays(lookup, 'up{instance="web-1"} 1')
    lookup:advance("61s")
    assert.same({ "shop" }, lookup:metrics('up{instance="web-1"} 1'):label_values("team"))
  end)
end)
