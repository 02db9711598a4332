package scripttest_test

import "testing"

// The metrics that a script has set can be checked, in Lua and in JavaScript, and go on
// over a reload.
func TestOwnMetrics(t *testing.T) {
	write(t, archive(`
-- scripts/a/counts.lua --
local weir = require "weir"
return weir.transform { metrics = function(batch, ctx)
  ctx.metrics.counter("seen", { kind = "x" }, "What was seen."):add(#batch)
  ctx.metrics.gauge("last"):set(#batch)
end }
-- scripts/a/counts_test.lua --
it("counts", function()
  local t = weir.test.component("counts.lua")
  assert.same({}, t:own_metrics())
  t:metrics "up 1\ndown 1"
  t:reload()
  t:metrics "up 1"
  assert.same({ "weir_script_custom_last 1", [[weir_script_custom_seen_total{kind="x"} 3]] }, t:own_metrics())
end)
-- scripts/a/more.js --
import { defineTransform } from "weir";
export default defineTransform({ metrics(batch, ctx) { ctx.metrics.counter("calls").add(); } });
-- scripts/a/more.test.js --
import { component, expect, test } from "weir/test";
test("counts", () => {
  const t = component("more.js");
  t.metrics("up 1");
  expect(t.ownMetrics()).toEqual(["weir_script_custom_calls_total 1"]);
});
`))
	if r := run(t, options()); !r.OK() {
		t.Errorf("got %v: %+v", ends(r), r.Files)
	}
}
