-- A mock answers the requests of the component: a test never uses the network.
-- 'weir test --help' lists everything that a test can use.
local URL = "https://queues.internal/api/queues"

describe("template.source_metrics", function()
  local function open(response)
    local mock = weir.test.http { [URL] = response }
    return weir.test.component("source_metrics.lua", { url = URL }), mock
  end

  it("sends the depth of each queue", function()
    local t = open { json = { { name = "mail", depth = 3 }, { name = "video", depth = 0 } } }
    assert.same(
      [[
        # TYPE queue_depth gauge
        # HELP queue_depth Messages that wait in the queue.
        queue_depth{queue="mail"} 3
        queue_depth{queue="video"} 0
      ]],
      t:poll()
    )
  end)

  it("polls once per interval", function()
    local t, mock = open { json = {} }
    t:advance "90s"
    assert.equals(3, #mock:calls())
  end)

  it("reports an error of the API", function()
    local t = open { status = 503 }
    assert.error(function()
      t:poll()
    end, "returned status 503")
  end)
end)
