-- A mock answers the requests of the component: a test never uses the network.
-- 'weir test --help' lists everything that a test can use.
local json = require "json"

local URL = "https://archive.internal/lines"

describe("template.sink_logs", function()
  -- A list of responses answers one request after the other.
  local function open(responses)
    local mock = weir.test.http { ["POST " .. URL] = responses }
    return weir.test.component("sink_logs.lua", { url = URL }), mock
  end

  it("sends one JSON object per line", function()
    local t, mock = open { status = 200 }
    t:logs '{app="shop"} @2025-01-01T00:00:00Z order placed\n{app="shop"} @2025-01-01T00:00:01Z card refused'
    local sent, body = {}, mock:calls()[1].body
    for line in body:gmatch "[^\n]+" do
      sent[#sent + 1] = json.decode(line)
    end
    assert.same({
      { time = "1735689600000000000", labels = { app = "shop" }, line = "order placed" },
      { time = "1735689601000000000", labels = { app = "shop" }, line = "card refused" },
    }, sent)
  end)

  for _, status in ipairs { 300, 429, 503 } do
    it("sends lines again after status " .. status, function()
      local t, mock = open { { status = status }, { error = "connection refused" }, { status = 200 } }
      local outcome = t:logs('{app="shop"} order placed'):outcome()
      assert.equals(1, outcome.waiting)
      assert.equals("status " .. status, outcome.reason)
      t:advance "5m"
      assert.equals(3, #mock:calls())
      assert.equals(mock:calls()[1].body, mock:calls()[3].body)
    end)
  end

  it("gives lines up if the API refuses them", function()
    local t, mock = open { status = 400, body = "no such archive" }
    local outcome = t:logs('{app="shop"} order placed'):outcome()
    assert.same({ rejected = 1 }, outcome.lost)
    assert.matches("no such archive", outcome.reason)
    assert.equals(1, #mock:calls())
  end)
end)
