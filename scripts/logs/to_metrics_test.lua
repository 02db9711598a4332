local weir = require "weir"

describe("logs.to_metrics", function()
  it("counts lines by their fields", function()
    local t = weir.test.component("to_metrics.lua", {
      metric = { { name = "requests_total", where = "json.status", labels = { job = "labels.job", status = "json.status" } } },
    })
    local out = t:logs [[
      {job="a"} {"status":200}
      {job="a"} {"status":200}
      {job="b"} {"status":500}
      {job="b"} no status
    ]]
    assert.equals(0, #out)
    t:logs [[{job="a"} {"status":200}]]
    out = t:advance("15s")
    assert.equals(3, out:value [[requests_total{job="a",status="200"}]])
    assert.equals(1, out:value [[requests_total{job="b",status="500"}]])
    assert.equals(2, #out)
  end)

  it("adds up fields and sets gauges", function()
    local t = weir.test.component("to_metrics.lua", { metric = {
      { name = "bytes_total", value = "logfmt.bytes" },
      { name = "queue", type = "gauge", value = "logfmt.queue", where = "line", match = "^queue=" },
    } })
    t:logs "{} bytes=10\n{} bytes=5 x\n{} bytes=many\n{} queue=3\n{} queue=7\n{} the queue=9"
    local out = t:advance("15s")
    assert.equals(15, out:value("bytes_total"))
    assert.equals(7, out:value("queue"))
  end)

  it("makes histograms", function()
    local t = weir.test.component("to_metrics.lua", { metric = {
      { name = "took_seconds", type = "histogram", value = "json.ms", scale = 0.001, buckets = { 0.1, 1 } },
    } })
    t:logs '{} {"ms":50}\n{} {"ms":500}\n{} {"ms":5000}'
    assert.equals([[
# TYPE took_seconds histogram
took_seconds_bucket{le="0.1"} 1
took_seconds_bucket{le="1"} 2
took_seconds_bucket{le="+Inf"} 3
took_seconds_sum 5.55
took_seconds_count 3
]], t:advance("15s"):text())
  end)

  it("ends what no line came for", function()
    local t = weir.test.component("to_metrics.lua", { idle = "30s", metric = { { name = "lines_total" } } })
    t:logs "{} a"
    assert.equals(1, t:advance("15s"):value("lines_total"))
    local out = t:advance("15s")
    assert.is_true(out[1].stale)
    assert.equals(0, #t:advance("1m"))
    t:logs "{} b"
    assert.equals(1, t:advance("15s"):value("lines_total"))
  end)

  it("goes on over a reload", function()
    local t = weir.test.component("to_metrics.lua", { metric = { { name = "lines_total" } } })
    t:logs "{} a"
    t:reload()
    t:logs "{} b"
    assert.equals(2, t:advance("15s"):value("lines_total"))
  end)

  it("refuses buckets that do not rise", function()
    for _, buckets in ipairs { { 1, 1 }, { 1, 2, 1.5 }, { 2, 1 } } do
      assert.has_error(function()
        weir.test.component("to_metrics.lua", { metric = { { name = "took", type = "histogram", buckets = buckets } } }):logs "{} a"
      end, "the buckets of metric took do not rise at")
    end
  end)

  it("has labels of as many fields as lines have", function()
    local labels, line, want = {}, {}, {}
    for i = 1, 8 do labels["l" .. i], line[i], want[i] = "json.f" .. i, ('"f%d":%d'):format(i, i), ('l%d="%d"'):format(i, i) end
    local t = weir.test.component("to_metrics.lua", { metric = { { name = "lines_total", labels = labels } } })
    t:logs("{} {" .. table.concat(line, ",") .. '}\n{} {"f1":false,"f2":"","f8":1}')
    assert.same({ "lines_total{" .. table.concat(want, ",") .. "}", [[lines_total{l1="false",l8="1"}]] }, t:advance("15s"):series())
  end)

  it("takes a field without text for one that is missing", function()
    local t = weir.test.component("to_metrics.lua", { metric = { { name = "lines_total", labels = { a = "json.a" } } } })
    t:logs '{} {"a":""}\n{} {}'
    assert.same("# TYPE lines_total counter\nlines_total 2", t:advance("15s"))
  end)

  it("matches texts of up to 1 MiB", function()
    local t = weir.test.component("to_metrics.lua", { metric = { { name = "lines_total", match = "^x" } } })
    local longest = ("x"):rep(1048576)
    t:logs("{} " .. longest .. "\n{} " .. longest .. "x")
    assert.equals(1, t:advance("15s"):value("lines_total"))
  end)

  it("does not go on with what other blocks have counted", function()
    local t = weir.test.component("to_metrics.lua", { metric = { { name = "lines_total" } } })
    local function of(rule) return { rule = rule, labels = {}, n = 1, sum = 1, counts = {}, at = t:now() } end
    t:set_state("series", { ["1{}"] = of "other_total", ["2{}"] = of "lines_total" })
    assert.equals(0, #t:advance("15s"))
    local left = t:state("series")
    assert.is_nil(left["2{}"])
    assert.equals("other_total", left["1{}"].rule)
  end)

  it("has the usual buckets, bounds included", function()
    local t = weir.test.component("to_metrics.lua", { metric = { { name = "took", type = "histogram", value = "logfmt.s" } } })
    t:logs "{} s=0.005\n{} s=10\n{} s=11"
    t:logs "{} s=0.2"
    local out, les = t:advance("15s"), { "0.005", "0.01", "0.025", "0.05", "0.1", "0.25", "0.5", "1", "2.5", "5", "10", "+Inf" }
    for i, want in ipairs { 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 3, 4 } do
      assert.equals(want, out:value(("took_bucket{le=%q}"):format(les[i])))
    end
  end)

  it("counts the lines of series beyond the limit", function()
    local t = weir.test.component("to_metrics.lua", { metric = { { name = "lines_total", labels = { id = "logfmt.id" } } } })
    local known = {}
    for i = 1, 9999 do known["x" .. i] = true end
    t:set_state("series", known)
    t:logs "{} id=1\n{} id=1"
    assert.same({}, t:own_metrics())
    t:logs "{} id=2\n{} id=2\n{} id=1"
    assert.same({ "weir_script_custom_over_limit_total 2" }, t:own_metrics())
  end)

  it("says that there are too many labels", function()
    local labels = {}
    for i = 1, 9 do labels["l" .. i] = "labels.x" end
    assert.has_error(function()
      weir.test.component("to_metrics.lua", { metric = { { name = "lines_total", labels = labels } } }):logs "{} a"
    end, "metric lines_total has 9 labels: at most 8")
  end)
end)
