package node_test

import (
	"strings"
	"testing"

	"github.com/weir-run/weir/engine/component"
)

// One budget bounds all that a call makes of records, however it does, and a
// message in the log or the health is no longer than anyone reads.
func TestOutputLimit(t *testing.T) {
	const block = "script {\non_error = \"drop\"\nlimits { output = \"1MiB\" }\n}"
	in := strings.Repeat("{job=\"a\"} line\n", 100)
	for name, edit := range map[string]string{
		"each":    `batch:each(function(r) r.line = big end)`,
		"records": `for r in batch:records() do r.line = big end`,
		"set":     `for i = 1, #batch do batch:set(i, "line", big) end`,
		"again":   `for i = 1, 100 do batch[1].line = big .. i end`,
		"meta":    `for r in batch:records() do r.metadata.a = big:sub(1, 60000) end`,
		"label":   `batch:set_label("a", big:sub(1, 60000))`,
		"emit":    `for i = 1, 100 do ctx.emit { line = big } end`,
	} {
		n := newHarness(t)
		n.save(`return weir.transform { logs = function(batch, ctx) local big = ("x"):rep(100000) `+edit+` end }`, block)
		got := n.sendLines(in)
		if h := n.Health(); h.State != component.Unhealthy || !strings.Contains(h.Message, "script.limits.output") {
			t.Errorf("%s: got health %+v", name, h)
		}
		if len(got) > 6<<20 {
			t.Errorf("%s: %d bytes came", name, len(got))
		}
	}
	n := newHarness(t)
	n.save(`return weir.transform { logs = function(batch, ctx) local big = ("x"):rep(1000000) ctx.log.info(big, { field = big }) error(big) end }`, block)
	n.sendLines("{} a\n")
	if h := n.Health(); len(h.Message) > 20_000 || len(n.Logs()) > 60_000 {
		t.Errorf("the health has %d bytes, the log %d", len(h.Message), len(n.Logs()))
	}
}
