-- Redacts personal data in lines and structured metadata before they leave the host.
--
-- It detects e-mail addresses, payment cards and IBANs (with a valid check digit), IPv4
-- addresses, telephone numbers in international form, US social security numbers, JSON
-- web tokens, and secrets after words such as password= or "Authorization: Bearer".
-- `also` adds your own patterns. Detected text is replaced by <email>, <card> and so on.
-- With `hash_key`, the replacement contains a hash, such as <email:1f3a…>, which is the
-- same for the same text, so that related lines can still be found.
--
-- A line or a metadata value that is longer than `max_length` is truncated and ends in
-- <truncated from … bytes>. Up to 1,024 bytes before the cut, and the word before them,
-- are removed as well, because they may be a part of something that is redacted.
--
-- If the script cannot process a line, the line goes into quarantine, and all other
-- lines pass. A line never leaves unredacted because of an error in this script.
-- weir_script_custom_redacted_total counts the replacements, and
-- weir_script_custom_truncated_total the truncated values.
--
--   logs.redact "default" {
--   	kinds      = ["email", "card", "iban", "secret"]
--   	also       = {customer = "\\bC-\\d{8}\\b"}
--   	hash_key   = sys.env("REDACT_KEY")
--   	forward_to = [loki.write.default.receiver]
--   }
--
-- Example Input:
--   {app="shop"} mail to jane.doe@example.org paid with 4111 1111 1111 1111
--   {app="shop"} order 4111111111111112 from 10.1.2.3 password=hunter2 ok
--   {app="shop"} GET /health 200
-- Example Output:
--   {app="shop"} mail to <email> paid with <card>
--   {app="shop"} order 4111111111111112 from <ipv4> password=<secret> ok
--   {app="shop"} GET /health 200
-- Example Args:
--   kinds = ["iban"]
--   also  = { customer = "\\bC-\\d{4}\\b" }
-- Example Input:
--   {app="shop"} {from="a@b.example"} C-1234 pays from DE89 3704 0044 0532 0130 00
-- Example Output:
--   {app="shop"} {from="a@b.example"} <customer> pays from <iban>
local hash = require "hash"
local re   = require "re"
local weir = require "weir"

-- luhn reports whether digits end in the check digit of a payment card.
local function luhn(s)
  local digits = s:gsub("%D", "")
  local sum = digits:byte(-1) - 48
  for i = 2, #digits do
    local d = digits:byte(#digits + 1 - i) - 48
    if i % 2 == 0 then
      d = d * 2
      if d >= 10 then d = d - 9 end
    end
    sum = sum + d
  end
  return sum % 10 == 0
end

-- mod97 reports whether an IBAN has its check digits (ISO 13616).
local function mod97(s)
  s = s:gsub("%s", "")
  s = s:sub(5) .. s:sub(1, 4)
  local rest = 0
  for c in s:gmatch(".") do
    local d = tonumber(c, 36)
    rest = (rest * (d > 9 and 100 or 10) + d) % 97
  end
  return rest == 1
end

-- KINDS are what it knows, in the order in which they are looked for: a pattern;
-- `only`, what must hold beside it; `keep`, that its first group stays. Few lines
-- have something to hide, so that what is cheap comes first: `has` are texts of
-- which a line has one (in lower case, for `fold`), and `hint` a pattern of Lua's
-- that it has, or it is not looked at.
local KINDS = {
  { name = "secret", has = { "pass", "pwd", "secret", "token", "key", "authorization" }, fold = true, keep = true,
    pattern = [[(?i)(\b(?:password|passwd|pwd|secret|token|api[_-]?key|access[_-]?key|client[_-]?secret)"?\s*[=:]\s*"?|\bauthorization"?\s*[=:]\s*"?(?:bearer|basic|token)\s+)[^\s"',;&]+]] },
  { name = "jwt", has = { "eyJ" }, pattern = [[\beyJ[0-9A-Za-z_-]{8,}\.[0-9A-Za-z_-]{8,}\.[0-9A-Za-z_-]{8,}]] },
  { name = "email", has = { "@" }, pattern = [[\b[0-9A-Za-z._%+-]+@[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*\.[A-Za-z]{2,}\b]] },
  { name = "iban", hint = "%u%u%d%d", only = mod97, pattern = [[\b[A-Z]{2}\d{2}(?: ?[0-9A-Z]{4}){2,7}(?: ?[0-9A-Z]{1,3})?\b]] },
  { name = "card", hint = "[3-6]%d%d%d[ -]?%d%d%d%d", only = luhn, pattern = [[\b[3-6]\d{3}(?:[ -]?\d{4}){2}[ -]?\d{1,7}\b|\b3[47]\d{2}[ -]?\d{6}[ -]?\d{5}\b]] },
  { name = "ssn", has = { "-" }, hint = "%d%d%d%-%d%d%-%d%d%d%d", pattern = [[\b\d{3}-\d{2}-\d{4}\b]] },
  { name = "phone", has = { "+" }, hint = "%+%d", pattern = [[\+\d{1,3}[ .-]?(?:\(\d{1,4}\)[ .-]?)?\d{2,4}(?:[ .-]?\d{2,4}){1,4}\b]] },
  { name = "ipv4", has = { "." }, hint = "%d%.%d%d?%d?%.%d%d?%d?%.%d", pattern = [[\b(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(?:25[0-5]|2[0-4]\d|1?\d?\d)\b]] },
}
local KNOWN = {}
for i, k in ipairs(KINDS) do
  k.re, KNOWN[i] = assert(re.compile(k.pattern)), k.name
end

-- worth reports whether s may have what kind k is. It saves time: if it is true too
-- often, the pattern of the kind does not match.
local find, lower = string.find, string.lower
local PLAIN = true -- weir:ignore mutate as a pattern, each text of KINDS matches at least itself
local function worth(k, s)
  if k.hint and not find(s, k.hint) then
    return false -- weir:ignore mutate saves time only
  end
  if not k.has then return true end
  local from = k.fold and lower(s) or s
  for i = 1, #k.has do
    if find(from, k.has[i], 1, PLAIN) then return true end
  end
  return false -- weir:ignore mutate saves time only
end

-- MARGIN is what goes of the end of a text that was cut, in bytes: it is longer than
-- anything of KINDS that has spaces in it.
local MARGIN = 1024

-- BREAKS are bytes that no word has in it.
local BREAKS = {}
for c in (" \t\r\n\"',;&"):gmatch "." do BREAKS[c:byte()] = true end

-- margin returns s, the beginning of a text, without its last bytes and the word
-- that they begin in.
local function margin(s)
  local n = math.max(0, #s - MARGIN)
  while n > 0 and not BREAKS[s:byte(n)] do n = n - 1 end
  return s:sub(1, n)
end

return weir.transform {
  on_error = "hold",

  args = {
    kinds    = weir.arg.list { of = weir.arg.enum { values = KNOWN }, default = KNOWN, doc = "Kinds of data to redact." },
    also     = weir.arg.map { of = weir.arg.regexp {}, default = {}, doc = "Additional patterns to redact, by the name that replaces the matches." },
    hash_key = weir.arg.secret { optional = true, doc = "Key of the hashes. Without it, replacements contain no hash." },
    max_length = weir.arg.size { default = "64KiB", doc = "Maximum length of a line or a metadata value; longer ones are truncated." },
    metadata = weir.arg.bool { default = true, doc = "Whether to redact structured metadata as well." },
  },

  logs = function(batch, ctx)
    local args, found, truncated = ctx.args, {}, 0

    local rules = {}
    for _, k in ipairs(KINDS) do
      for _, wanted in ipairs(args.kinds) do
        if wanted == k.name then rules[#rules + 1] = k end
      end
    end
    for name, pattern in pairs(args.also) do rules[#rules + 1] = { name = name, re = pattern } end

    local function mark(name, text)
      found[name] = (found[name] or 0) + 1
      if not args.hash_key then return "<" .. name .. ">" end
      return "<" .. name .. ":" .. assert(hash.hmac("sha256", args.hash_key, text)):sub(1, 12) .. ">"
    end

    -- hide returns s without what the rules find in it.
    local function hide(s)
      for i = 1, #rules do
        local k = rules[i]
        if worth(k, s) then
          s = assert(k.re:replace(s, function(match, groups)
            if k.only and not k.only(match) then return nil end
            if k.keep then return groups[1] .. mark(k.name, match:sub(#groups[1] + 1)) end
            return mark(k.name, match)
          end))
        end
      end
      return s
    end

    -- safe is hide for a text of any length.
    local function safe(s)
      if #s <= args.max_length then return hide(s) end
      truncated = truncated + 1
      return margin(hide(s:sub(1, args.max_length))) .. "<truncated from " .. #s .. " bytes>"
    end

    for i, line in batch:rows("line") do
      local hidden = safe(line)
      if hidden ~= line then batch:set(i, "line", hidden) end
      if args.metadata then
        for k, v in pairs(batch[i].metadata) do
          local h = safe(v)
          if h ~= v then batch:set(i, "meta." .. k, h) end
        end
      end
    end
    for name, n in pairs(found) do
      ctx.metrics.counter("redacted", { kind = name }, "What was hidden, by its kind."):add(n)
    end
    if truncated > 0 then
      ctx.metrics.counter("truncated", {}, "Lines and values of metadata that were cut, because they are longer than max_length."):add(truncated)
    end
  end,
}
