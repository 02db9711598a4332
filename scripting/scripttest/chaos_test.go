package scripttest_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/scripting/scripttest"
)

// Chaos finds what a script keeps in its VM, and answers that it does not
// expect; what may be counted on does not fail.
func TestChaos(t *testing.T) {
	write(t, archive(`
-- scripts/a/counts.lua --
local weir = require "weir"
local n = 0
return weir.transform { metrics = function(batch) n = n + 1 batch:each(function(m) m.value = n end) end }
-- scripts/a/counts_test.lua --
local t = weir.test.component("counts.lua")
it("counts", function()
  for i = 1, 20 do assert.equals(i, t:metrics("up 1"):value "up") end
end)
it("does something else", function() t:metrics "up 1" end)
-- scripts/a/asks.lua --
local weir = require "weir"
return weir.transform { needs = { http = true }, metrics = function(batch, ctx)
  batch:each(function(m) m.labels.got = ctx.http:get("https://geo.internal/").body end)
end }
-- scripts/a/asks_test.lua --
local t = weir.test.component("asks.lua")
weir.test.http { ["https://geo.internal/"] = "x" }
it("asks", function()
  for i = 1, 20 do assert.same({ "x" }, t:metrics("up 1"):label_values "got") end
end)
-- scripts/a/careful.lua --
local weir = require "weir"
return weir.transform { needs = { http = true }, metrics = function(batch, ctx)
  batch:each(function(m)
    local res = ctx.http:get("https://geo.internal/")
    m.labels.got = res and res.body
  end)
end, every = { ["10s"] = function(ctx) ctx.emit { name = "x", value = 1 } end } }
-- scripts/a/careful_test.lua --
local t = weir.test.component("careful.lua")
weir.test.http { ["https://geo.internal/"] = "x" }
it("asks", function()
  for i = 1, 20 do assert.same({ "x" }, t:metrics("up 1"):label_values "got") end
  for i = 1, 20 do assert.equals(1, #t:advance("10s")) end
end)
`))
	plain := options()
	if r := run(t, plain); !r.OK() {
		t.Fatalf("without chaos: %v", ends(r))
	}
	o := options()
	o.Chaos, o.Seed = true, 7
	r := run(t, o)
	want := []string{"error asks", "passed asks", "failed counts", "passed does something else"}
	if diff := cmp.Diff(want, ends(r)); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	messages := func(r *scripttest.Report) string {
		return r.Files[0].Tests[0].Problem.Msg + r.Files[2].Tests[0].Problem.Msg
	}
	for _, text := range []string{
		"with --chaos 7: GET https://geo.internal/ failed", "with --chaos 7: a.counts was reloaded before call ",
	} {
		if !strings.Contains(messages(r), text) {
			t.Errorf("no %q in %s", text, messages(r))
		}
	}
	o.Parallel = 1
	if diff := cmp.Diff(messages(r), messages(run(t, o))); diff != "" {
		t.Errorf("the same seed (-first +second):\n%s", diff)
	}
}
