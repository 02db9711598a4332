local weir = require "weir"

describe("logs.redact", function()
  local function f(args, line, want)
    local t = weir.test.component("redact.lua", args)
    assert.same({ want }, t:logs("{} " .. line):lines())
  end
  local function stays(line) f({}, line, line) end

  it("hides each kind", function()
    f({}, "a.b+c@mail.example.co.uk!", "<email>!")
    f({}, "card 5500-0000-0000-0004, amex 3782 822463 10005.", "card <card>, amex <card>.")
    f({}, "to GB82 WEST 1234 5698 7654 32", "to <iban>")
    f({}, "from 192.168.0.1:8080", "from <ipv4>:8080")
    f({}, "call +49 (30) 1234 5678 now", "call <phone> now")
    f({}, "ssn 078-05-1120", "ssn <ssn>")
    f({}, "jwt eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N", "jwt <jwt>")
    f({}, "Authorization: Bearer abc.def x", "Authorization: Bearer <secret> x")
    f({}, '{"api_key":"k-1","user":"joe"}', '{"api_key":"<secret>","user":"joe"}')
  end)

  it("leaves what only looks like it", function()
    stays "order 4111111111111112"          -- no check digit
    stays "DE89 3704 0044 0532 0130 01"     -- nor here
    stays "version 1.2.3.400"
    stays "took 1234-56-789 ms, a@b, 12:30:45.123"
    stays "GET /users/42 200"
  end)

  it("hides only what it is asked for", function()
    f({ kinds = { "email" } }, "a@b.example 10.0.0.1", "<email> 10.0.0.1")
    f({ kinds = {}, also = { id = [[\bC-\d+\b]] } }, "C-1 a@b.example", "<id> a@b.example")
  end)

  it("says by a hash what belongs together", function()
    local t = weir.test.component("redact.lua", { hash_key = "k" })
    local lines = t:logs("{} a@b.example\n{} a@b.example\n{} c@b.example"):lines()
    assert.equals(lines[1], lines[2])
    assert.is_false(lines[1] == lines[3])
    assert.matches("^<email:%x+>$", lines[1])
  end)

  it("looks at metadata unless told not to", function()
    local t = weir.test.component("redact.lua", {})
    assert.equals('{} {user="<email>"} hi\n', t:logs('{} {user="a@b.example"} hi'):text())
    weir.test.component("redact.lua", { metadata = false }):unchanged '{} {user="a@b.example"} hi'
  end)

  it("cuts lines that are too long for it, and shows nothing of what the cut goes through", function()
    local t = weir.test.component("redact.lua", { max_length = "2KiB" })
    local long = "jane.doe@example.org " .. ("x@ "):rep(1000)
    local got = t:logs("{} before\n{} " .. long .. "\n{} after joe@example.org"):lines()
    assert.equals(3, #got)
    assert.equals("before", got[1])
    assert.equals("<email> x@ x@ ", got[2]:sub(1, 14))
    assert.equals("<truncated from 3020 bytes>", got[2]:sub(-27))
    assert.is_true(#got[2] < 2048)
    assert.equals("after <email>", got[3])
    for from = 2000, 2052, 7 do
      local line = ("x "):rep(from / 2) .. "jane.doe@example.org 4111 1111 1111 1111 " .. ("y "):rep(100)
      local cut = t:logs("{} " .. line):lines()[1]
      assert.is_nil(cut:find("jane", 1, true))
      assert.is_nil(cut:find("4111", 1, true))
    end
  end)
end)
