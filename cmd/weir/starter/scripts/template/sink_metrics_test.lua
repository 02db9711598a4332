-- A mock answers the requests of the component: a test never uses the network.
-- 'weir test --help' lists everything that a test can use.
local json = require "json"

local URL = "https://warehouse.internal/samples"

describe("template.sink_metrics", function()
  -- A list of responses answers one request after the other.
  local function open(responses)
    local mock = weir.test.http { ["POST " .. URL] = responses }
    return weir.test.component("sink_metrics.lua", { url = URL }), mock
  end

  it("sends samples as JSON", function()
    local t, mock = open { status = 200 }
    assert.equals(2, t:metrics('up{job="api"} 1 1000\nup{job="web"} 0 1000'):outcome().delivered)
    assert.same({
      { name = "up", labels = { job = "api" }, value = 1, time = 1000 },
      { name = "up", labels = { job = "web" }, value = 0, time = 1000 },
    }, json.decode(mock:calls()[1].body))
  end)

  for _, status in ipairs { 300, 429, 503 } do
    it("sends samples again after status " .. status, function()
      local t, mock = open { { status = status }, { error = "connection refused" }, { status = 200 } }
      local outcome = t:metrics("up 1"):outcome()
      assert.equals(1, outcome.waiting)
      assert.equals("status " .. status, outcome.reason)
      t:advance "5m"
      assert.equals(3, #mock:calls())
      assert.equals(mock:calls()[1].body, mock:calls()[3].body)
    end)
  end

  it("gives samples up if the API refuses them", function()
    local t, mock = open { status = 400, body = "no such table" }
    local outcome = t:metrics("up 1"):outcome()
    assert.same({ rejected = 1 }, outcome.lost)
    assert.matches("no such table", outcome.reason)
    assert.equals(1, #mock:calls())
  end)

  it("leaves out records that JSON cannot express", function()
    local t, mock = open { status = 200 }
    t:metrics "a NaN\nb +Inf\nc stale\nd 1"
    t:metrics(fixtures.native_histograms)
    assert.equals(1, #mock:calls())
    assert.equals(1, #json.decode(mock:calls()[1].body))
  end)
end)
