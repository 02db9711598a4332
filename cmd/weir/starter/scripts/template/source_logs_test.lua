-- A test sends requests to the component and checks the responses and the lines.
-- 'weir test --help' lists everything that a test can use.
describe("template.source_logs", function()
  local t = weir.test.component("source_logs.lua", { token = "s3cret" })

  local function post(body, token)
    return t:request {
      method = "POST",
      path = "/events/shop",
      headers = { Authorization = "Bearer " .. token },
      body = body,
    }
  end

  it("sends an event as a line", function()
    local response = post('{"msg":"deployed"}', "s3cret")
    assert.equals(204, response.status)
    assert.same({ '{"msg":"deployed"}' }, response.sent:lines())
    assert.same({ '{app="shop"}' }, response.sent:streams())
  end)

  it("refuses a wrong token", function()
    local response = post('{"msg":"deployed"}', "guess")
    assert.equals(401, response.status)
    assert.equals(0, #response.sent)
  end)

  it("refuses a body that is not JSON", function()
    local response = post("deployed", "s3cret")
    assert.equals(400, response.status)
    assert.matches("cannot decode JSON", response.body)
    assert.equals(0, #response.sent)
  end)
end)
