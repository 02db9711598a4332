package scripttest_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A request is answered, with what was sent; what fails in the script, or is
// asked wrongly, fails the test.
func TestRequest(t *testing.T) {
	write(t, archive(`
-- scripts/a/hook.lua --
local weir = require "weir"
return weir.source { http = {
  ["POST /hook/{team}"] = function(req, ctx)
    if req.body == "" then error("there is no body") end
    ctx.sleep(1)
    ctx.emit { name = "alerts", labels = { team = req.params.team, from = req.remote_address }, value = tonumber(req.body) }
    return { status = 202, headers = { ["X-Kind"] = req:header("x-kind") }, json = { now = ctx.now() } }
  end,
} }
-- scripts/a/hook_test.lua --
local t = weir.test.component("hook.lua")
it("answers", function()
  local answer = t:request { path = "/hook/db?x=1", body = "3", headers = { ["x-kind"] = "disk" } }
  assert.equals(202, answer.status)
  assert.equals("disk", answer.headers["x-kind"])
  assert.equals('{"now":1735689600000}', answer.body)
  assert.equals(3, answer.sent:value('alerts{from="192.0.2.1",team="db"}'))
  assert.equals(404, t:request { path = "/other" }.status)
  assert.equals(405, t:request { method = "GET", path = "/hook/db" }.status)
end)
it("fails", function() t:request { method = "POST", path = "/hook/db" } end)
it("fails as it should", function()
  assert.has_error(function() t:request { method = "POST", path = "/hook/db" } end)
end)
it("asks wrongly", function() t:request { path = "hook" } end)
`))
	r := run(t, options("scripts"))
	want := []string{"passed answers", "error fails", "passed fails as it should", "error asks wrongly"}
	if diff := cmp.Diff(want, ends(r)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for i, want := range map[int]string{1: "a/hook.lua:4: in http: there is no body", 3: `the path begin with "/", not "hook"`} {
		if got := r.Files[0].Tests[i].Problem.Msg; !strings.Contains(got, want) {
			t.Errorf("got %q, want %q in it", got, want)
		}
	}
}
