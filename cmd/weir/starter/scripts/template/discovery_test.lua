-- A mock answers the requests of the component: a test never uses the network.
-- 'weir test --help' lists everything that a test can use.
local URL = "https://inventory.internal/hosts"
local HOSTS = { json = { { address = "10.0.0.1", team = "db" }, { address = "10.0.0.2" } } }

describe("template.discovery", function()
  -- A list of responses answers one request after the other.
  local function open(responses, args)
    weir.test.http { [URL] = responses }
    args = args or {}
    args.url = URL
    return weir.test.component("discovery.lua", args)
  end

  it("exports a target per host", function()
    local t = open(HOSTS)
    t:poll()
    assert.same({
      { __address__ = "10.0.0.1:9100", team = "db" },
      { __address__ = "10.0.0.2:9100" },
    }, t:exported "targets")
  end)

  it("uses the argument port", function()
    local t = open(HOSTS, { port = 8080 })
    t:poll()
    assert.equals("10.0.0.1:8080", t:exported("targets")[1].__address__)
  end)

  it("keeps the targets if the inventory fails", function()
    local t = open { HOSTS, { status = 500 } }
    t:poll()
    assert.error(function()
      t:poll()
    end, "returned status 500")
    assert.equals(2, #t:exported "targets")
  end)
end)
