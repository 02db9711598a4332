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
-- scripts/a/renames.lua --
local weir = require "weir"
return weir.transform { series = function(s) s.labels.site = "lab" end }
-- scripts/a/renames_test.lua --
local t = weir.test.component("renames.lua")
it("gets other series in each batch", function()
  for i = 1, 20 do assert.equals(1, #t:metrics('up{i="' .. i .. '"} 1')) end
end)
it("sees which series a reload ends", function()
  t:metrics 'up{i="1"} 1'
  t:reload()
  assert.same('up{i="1",site="lab"} stale\nup{i="2",site="lab"} 1', t:metrics 'up{i="2"} 1')
end)
-- scripts/a/sends.ts --
import { arg, defineSink } from "weir";
export default defineSink({
  args: { careless: arg.bool({ default: false }) },
  needs: { http: true },
  async send(batch, ctx) {
    try {
      await ctx.http.post("https://sink.internal/", String(batch.length));
    } catch (e) {
      if (ctx.args.careless) throw new TypeError("of another kind");
      throw e;
    }
  },
});
-- scripts/a/sends.test.ts --
import { component, expect, http, it } from "weir/test";
http({ "POST https://sink.internal/": { status: 200 } });
it("leaves the error of a request to the retry", () => {
  const t = component("sends.ts");
  for (let i = 0; i < 20; i++) expect(t.metrics("up 1").outcome().delivered).toBe(1);
});
it("fails with an error of its own", () => {
  const t = component("sends.ts", { careless: true });
  for (let i = 0; i < 20; i++) expect(t.metrics("up 1").outcome().delivered).toBe(1);
});
-- scripts/a/watches.lua --
local weir = require "weir"
return weir.source { needs = { http = true }, interval = "1m", poll = function(ctx)
  local res, err = ctx.http.get "https://geo.internal/"
  ctx.emit { name = "geo", value = #(res or error(err)).body }
end }
-- scripts/a/watches_test.lua --
weir.test.http { ["https://geo.internal/"] = "x" }
it("leaves the error of a request to the next poll", function()
  local t = weir.test.component("watches.lua")
  for i = 1, 20 do assert.equals(1, t:poll():value "geo") end
end)
`))
	plain := options()
	if r := run(t, plain); !r.OK() {
		t.Fatalf("without chaos: %v", ends(r))
	}
	o := options()
	o.Chaos, o.Seed = true, 7
	r := run(t, o)
	want := []string{"error asks", "passed asks", "failed counts", "passed does something else",
		"passed gets other series in each batch", "passed sees which series a reload ends",
		"passed leaves the error of a request to the retry", "error fails with an error of its own",
		"passed leaves the error of a request to the next poll"}
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
