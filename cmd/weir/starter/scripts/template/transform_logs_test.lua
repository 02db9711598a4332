-- Each test sends lines to the component and checks the output.
-- 'weir test --help' lists everything that a test can use.
describe("template.transform_logs", function()
  local t = weir.test.component("transform_logs.lua", { drop = { "debug", "trace" } })

  it("sets the label level", function()
    local out = t:logs [[
      {app="shop"} {"level":"info","msg":"order placed"}
      {app="shop"} {"level":"error","msg":"card refused"}
    ]]
    assert.same({ '{app="shop",level="error"}', '{app="shop",level="info"}' }, out:streams())
  end)

  it("drops lines with the levels in the argument drop", function()
    local out = t:logs [[
      {app="shop"} {"level":"trace","msg":"enter"}
      {app="shop",level="debug"} a line of a stream that has a level
      {app="shop"} {"level":"warn","msg":"slow"}
    ]]
    assert.same({ '{"level":"warn","msg":"slow"}' }, out:lines())
  end)

  it("does not change lines that are not JSON", function()
    t:unchanged '{app="shop"} {"level":\n{app="shop"} plain text'
  end)
end)
