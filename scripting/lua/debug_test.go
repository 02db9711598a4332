package lua_test

import (
	"testing"

	"github.com/google/go-dap"

	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/debug/debugtest"
	"github.com/weir-run/weir/scripting/lua"
)

func debugged(t *testing.T, text string) *debugtest.Client {
	t.Helper()
	return debugtest.Run(t, lua.New(), scripting.File{Name: "scripts/x.lua", Path: "/w/scripts/x.lua", Text: text}, "a{b=\"c\"} 1\nd 2\n")
}

func TestDebug(t *testing.T) {
	c := debugged(t, `local weir = require "weir"
local factor = 3
local function scale(x)
  local y = x * factor
  return y
end
return weir.transform {
  metrics = function(batch, ctx)
    local sum = 0
    for i = 1, 3 do
      local z = scale(i)
      sum = sum + z
    end
    local t = { a = 1, "first" }
    return scale(sum)
  end,
}
`)
	got := c.Start("/w/scripts/x.lua", dap.SourceBreakpoint{Line: 4, Condition: "x == 2"})
	if !got[0].Verified || got[0].Line != 4 {
		t.Fatalf("%+v", got)
	}
	f := func(got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	f(c.Stopped(), "breakpoint scale:4 metrics:11")
	f(c.Scope(1, "Locals"), "x=2")
	f(c.Scope(1, "Upvalues"), "factor=3")
	f(c.Scope(2, "Locals"), "batch=batch of 2 records ctx=table, 4 entries sum=3 i=2")
	f(c.Evaluate(1, "x + factor"), "5")
	f(c.Evaluate(2, "sum"), "3")
	f(c.Evaluate(2, "sum = 100"), "nil")
	c.Step("next")
	f(c.Stopped(), "step scale:5 metrics:11")
	f(c.Scope(1, "Locals"), "x=2 y=6")
	c.Step("stepOut")
	f(c.Stopped(), "step metrics:12")
	c.Step("next")
	f(c.Stopped(), "step metrics:11")
	f(c.Evaluate(0, "sum"), "106")
	c.Break("/w/scripts/x.lua")
	c.Step("next")
	c.Stopped()
	c.Step("next")
	f(c.Stopped(), "step metrics:14")
	c.Step("next")
	f(c.Stopped(), "step metrics:15")
	f(c.Scope(1, "Locals"), "batch=batch of 2 records ctx=table, 4 entries sum=115 t=table, 2 entries")
	c.Step("stepIn")
	f(c.Stopped(), "step scale:4 metrics:15")
	c.Step("continue")
	c.Output("done")
}
