package lua_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/weir-run/weir/scripting/hostiletest"
)

// patternOps are the ways to match, each a function of a pattern p, a text s, a
// replacement w, the pattern quoted and the batch.
var patternOps = []string{
	`re.match(p, s)`, `re.find(p, s)`, `re.replace(p, s, w)`, `re.replace(p, s, function(m) return m .. w end)`, `re.split(p, s)`, `re.split(p, s, 3)`,
	`local c = re.compile(p) if c then c:replace(s, w) end`, `string.find(s, p)`, `string.match(s, p)`, `string.gsub(s, p, w)`, `for _ in string.gmatch(s, p) do end`,
	`string.gsub(s, p, function() return w end)`, `batch[1].labels.t = s:sub(1, 60000) batch:drop_where("labels.t matches " .. q)`,
	`batch[1].labels.t = s:sub(1, 60000) batch:drop_where("any([labels.t], # matches " .. q .. ")")`, `batch[1].labels.t = p batch:drop_where("any([labels.t], 'x' matches #)")`,
	`local t = {} for i = 1, 1000 do t[i] = re.compile(p .. i) end`,
}

func FuzzPatterns(f *testing.F) { hostiletest.FuzzPatterns(f, "TestPatternsInChild", len(patternOps)) }

func TestPatternsInChild(t *testing.T) {
	hostiletest.ServePatterns(t, func(t testing.TB) func(hostiletest.Pattern) error {
		fx := build(t, `local weir = require "weir" local re = require "re" local base64 = require "base64"
local ops = { function(p, s, w, q, batch) `+strings.Join(patternOps, ` end, function(p, s, w, q, batch) `)+` end }
return weir.transform { metrics = function(batch)
  local l = batch[1].labels
  local s = base64.decode(l.part or ""):rep(tonumber(l.n)) .. base64.decode(l.after or "")
  ops[l.op + 1](base64.decode(l.pattern or ""), s, base64.decode(l.insert or ""), base64.decode(l.quoted or ""), batch)
end }`, "script { limits { time = \"200ms\" } }")
		return func(p hostiletest.Pattern) error {
			fx.send(t, "m{"+p.Labels()+"} 1\n")
			if h := fx.Health(); strings.Contains(h.Message, "BUG") {
				return errors.New(h.Message)
			}
			return nil
		}
	})
}
