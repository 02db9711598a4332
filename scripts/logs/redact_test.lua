local hash = require "hash"
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
    f({}, "to AD12 0001 2030 2003 5910 0100", "to <iban>")
    f({}, "to MU17 BOMM 0101 1010 3030 0200 000M UR", "to <iban>")
    f({}, "to NL91ABNA0417164300", "to <iban>") -- A is 10
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
    f({ kinds = {}, also = { z = "C", b = "C1", a = "C12", y = "C." } }, "C123 C19 C45 C", "<a>3 <b>9 <y>5 <z>")
    f({ kinds = {}, also = { id = [[\bC-\d+\b]] } }, "C-1 a@b.example", "<id> a@b.example")
  end)

  it("says by a hash what belongs together", function()
    local t = weir.test.component("redact.lua", { hash_key = "k" })
    local lines = t:logs("{} a@b.example\n{} a@b.example\n{} c@b.example"):lines()
    assert.equals(lines[1], lines[2])
    assert.is_false(lines[1] == lines[3])
    local function mark(kind, text) return "<" .. kind .. ":" .. hash.hmac("sha256", "k", text):sub(1, 12) .. ">" end
    assert.equals(mark("email", "a@b.example"), lines[1])
    f({ hash_key = "k" }, "token=hunter2", "token=" .. mark("secret", "hunter2"))
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

  it("removes at least 1,024 bytes before the cut, and the word before them", function()
    local args = { max_length = "2KiB" }
    local function x(n) return ("x"):rep(n) end
    f(args, "a b " .. x(2044), "a b " .. x(2044)) -- just short enough
    f(args, "a b " .. x(2045), "a b <truncated from 2049 bytes>")
    f(args, x(3000), "<truncated from 3000 bytes>")
    f(args, x(1023) .. " " .. x(3000), x(1023) .. " <truncated from 4024 bytes>")
    f(args, "a " .. x(1021) .. "; " .. x(3000), "a " .. x(1021) .. ";<truncated from 4025 bytes>")
    f(args, ';secret=' .. x(3000), "<truncated from 3008 bytes>")
    f(args, "password=" .. x(1500) .. " " .. ("4111 "):rep(400), "<truncated from 3509 bytes>") -- less is left
  end)

  it("counts what it hides and truncates", function()
    local t = weir.test.component("redact.lua", { max_length = "2KiB" })
    t:logs "{} hi"
    assert.same({}, t:own_metrics())
    t:logs('{} {user="a@b.example"} a@b.example 10.0.0.1\n{} c@b.example ' .. ("y"):rep(3000))
    assert.same({
      [[weir_script_custom_redacted_total{kind="email"} 3]],
      [[weir_script_custom_redacted_total{kind="ipv4"} 1]],
      "weir_script_custom_truncated_total 1",
    }, t:own_metrics())
  end)
end)
