describe("metrics.counter_to_rate", function()
  local rates
  before_each(function() rates = weir.test.component("counter_to_rate.lua") end)

  -- Sends a value every ten seconds and returns what comes of the last one.
  local function send(t, ...)
    local out
    for _, v in ipairs { ... } do
      out = t:metrics('# TYPE hits_total counter\nhits_total{job="a"} ' .. v)
      t:advance("10s")
    end
    return out
  end

  it("is the growth a second", function()
    assert.equals(0, #send(rates, 100))
    assert.same('# TYPE hits_per_second gauge\nhits_per_second{job="a"} 5', send(rates, 150))
    assert.same('hits_per_second{job="a"} 0', send(rates, 150))
    assert.same({}, rates:logged())
  end)

  it("counts from zero after a reset", function()
    assert.same('hits_per_second{job="a"} 2', send(rates, 1000, 20))
  end)

  it("ends with its counter, and begins anew", function()
    send(rates, 1, 2)
    assert.same('hits_per_second{job="a"} stale', send(rates, "stale"))
    assert.equals(0, #send(rates, 500))
    assert.same('hits_per_second{job="a"} 1', send(rates, 510))
  end)

  it("has no rate over a long gap", function()
    send(rates, 1)
    rates:advance("11m")
    assert.equals(0, #send(rates, 100))
  end)

  it("tells series apart, and targets", function()
    rates:metrics 'a_total{x="1"} 0\na_total{x="2"} 0\nb_total{x="1"} 0'
    rates:advance("1s")
    assert.same('a_per_second{x="1"} 1\na_per_second{x="2"} 2\nb_per_second{x="1"} 3',
      rates:metrics 'a_total{x="1"} 1\na_total{x="2"} 2\nb_total{x="1"} 3')
  end)

  it("has no rate without time between two samples", function()
    assert.equals(0, #rates:metrics "a_total 1 1000\na_total 5 1000")
  end)

  it("goes on over a reload", function()
    send(rates, 100)
    rates:reload()
    assert.same('hits_per_second{job="a"} 5', send(rates, 150))
  end)

  it("sends the counters on as well", function()
    local both = weir.test.component("counter_to_rate.lua", { keep = true, suffix = ":rate" })
    assert.same('hits_total{job="a"} 30\nhits:rate{job="a"} 2', send(both, 10, 30))
  end)

  it("leaves gauges and histograms alone", function()
    local none = weir.test.component("counter_to_rate.lua", { match = "^nothing$" })
    none:unchanged(fixtures.every_metric_kind)
    rates:unchanged(fixtures.native_histograms)
  end)
end)
