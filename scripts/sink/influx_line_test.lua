describe("sink.influx_line", function()
  local mocks
  local function open(answer, args)
    mocks = weir.test.http { ["POST https://influx/write*"] = answer }
    args = args or {}
    args.url = "https://influx/write"
    return weir.test.component("influx_line.lua", args)
  end

  it("writes lines", function()
    local t = open({ status = 204 }, { query = { db = "m" }, token = "s3cret", tags = { site = "lab", job = "x", none = "" } })
    t:metrics 'up{job="a b",path="/x,y=z"} 1.5 1000\ntemp -3 2000'
    local call = mocks:calls()[1]
    assert.equals("up,job=a\\ b,path=/x\\,y\\=z,site=lab value=1.5 1000\ntemp,job=x,site=lab value=-3 2000\n", call.body)
    assert.equals("https://influx/write?db=m&precision=ms", call.url)
    assert.equals("Token s3cret", call.headers.Authorization)
  end)

  it("leaves out what has no form", function()
    open({ status = 204 }):metrics "a NaN 1000\nb +Inf 1000\nc stale 1000\nd 1 1000"
    assert.equals("d value=1 1000\n", mocks:calls()[1].body)
  end)

  it("escapes names and newlines, and sends its headers", function()
    local t = open({ status = 204 }, { headers = { ["X-Org"] = "o" } })
    t:metrics '{"a=b c",p="x\\ny"} 1 1000\nneg -Inf 1000'
    local call = mocks:calls()[1]
    assert.equals("a\\=b\\ c,p=x\\ny value=1 1000\n", call.body)
    assert.equals("o", call.headers["X-Org"])
    assert.equals("text/plain; charset=utf-8", call.headers["Content-Type"])
    assert.is_nil(call.headers.Authorization)
  end)

  it("gives up what is too large or wrong, and waits for all else", function()
    for _, status in ipairs { 400, 413, 422 } do
      assert.same({ rejected = 1 }, open({ status = status }):metrics("a 1 1000"):outcome().lost)
    end
    for _, status in ipairs { 300, 404, 500 } do
      assert.equals(1, open({ status = status }):metrics("a 1 1000"):outcome().waiting)
    end
    assert.equals(0, open({ status = 299 }):metrics("a 1 1000"):outcome().waiting)
  end)

  it("quotes 200 bytes of an answer", function()
    local reason = open({ status = 400, body = ("x"):rep(300) }):metrics("a 1 1000"):outcome().reason
    assert.equals(200, #reason:match("x+"))
  end)

  it("sends again when the database cannot be reached", function()
    local out = open({ error = "connection refused" }):metrics("a 1 1000"):outcome()
    assert.equals(1, out.waiting)
    assert.matches("connection refused", out.reason)
  end)

  it("waits at least a second and at most ten minutes", function()
    for after, want in pairs { ["0"] = 1, ["599"] = 599, ["9000"] = 600 } do
      assert.equals(want, open({ status = 429, headers = { ["Retry-After"] = after } }):metrics("a 1 1000"):outcome().after)
    end
  end)

  it("sends nothing when nothing is left", function()
    open({ status = 204 }):metrics "a NaN"
    assert.equals(0, #mocks:calls())
  end)

  it("sends again what the other side could not take, and gives up what it will never", function()
    local t = open { { status = 429, headers = { ["Retry-After"] = "7" } }, { status = 204 }, { status = 400, body = "bad" } }
    local out = t:metrics("a 1 1000"):outcome()
    assert.equals(1, out.waiting)
    assert.equals(7, out.after)
    t:advance("10s")
    assert.equals(2, #mocks:calls())
    out = t:metrics("a 2 2000"):outcome()
    assert.same({ rejected = 1 }, out.lost)
    assert.matches("status 400: bad", out.reason)
  end)
end)
