package node_test

import (
	"strings"
	"testing"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/scripting/internal/registrytest"
)

// A script's declaration cannot exceed the limit in its block.
func TestStateLimit(t *testing.T) {
	n := newHarness(t)
	const keeps = `return weir.transform {
		state = { seen = weir.state.map { max = 100000, max_bytes = "MAX" } },
		metrics = function(batch, ctx)
			for i = 1, 5000 do
				local ok, err = ctx.state.seen:set("key" .. i, ("x"):rep(1000))
				if not ok then batch:set_label("err", err) break end
			end
		end }`
	path := n.f.Write("a/b.lua", "local weir = require \"weir\"\n"+strings.Replace(keeps, "MAX", "1TiB", 1))
	n.cat.Refresh([]string{path})
	r, _ := n.cat.Lookup("a.b")
	args := r.NewArgs()
	if err := registrytest.Decode(args, "", n.sink); err != nil {
		t.Fatal(err)
	}
	const want = `cannot use max_bytes = 1TiB of state seen in a.b: the node may keep 256MiB; declare less, or write limits { state = "1TiB" } in the block script`
	if _, err := r.Build(n.Options(), args, nil); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v", err)
	}
	if es := r.Check(args, func(string) bool { return true }); len(es) != 1 || es[0].Path != "script.limits.state" || !strings.Contains(es[0].Err.Error(), want) {
		t.Errorf("check: got %v", es)
	}
	n.save(strings.Replace(keeps, "MAX", "1MiB", 1), "script {\nlimits { state = \"1MiB\" }\n}")
	n.save(strings.ReplaceAll(strings.Replace(keeps, "MAX", "512KiB", 1), "seen", "other"), "script {\nlimits { state = \"512KiB\" }\n}")
	if got := n.send(text(t, 1, "a 1\n")); !strings.Contains(got, "524288 bytes") {
		t.Errorf("got %s", got)
	}
	if h := n.Health(); h.State != component.Healthy {
		t.Errorf("got health %+v", h)
	}
}
