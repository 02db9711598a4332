package node_test

import (
	"context"
	"runtime"
	"strings"
	"testing"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/files/filestest"
)

// TestEndlessCall: while a call of a script does not return, the component answers
// questions about itself.
func TestEndlessCall(t *testing.T) {
	n := newHarness(t)
	n.save(`return weir.transform {
		state   = { seen = weir.state.counter{ scope = "persistent" } },
		metrics = function(_, ctx) ctx.state.seen:add(1) ctx.log.info("begun") while true do end end,
	}`, "script {\nlimits {\ntime = \"1m\"\n}\n}")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- n.gate.ConsumeMetrics(ctx, text(t, 1, "a 1\n")) }()
	for !strings.Contains(n.Logs(), "begun") {
		runtime.Gosched()
	}
	filestest.Within(t, "a question", func() {
		n.c.(component.Debugger).DebugInfo()
		n.c.(component.Queuer).Backlog()
		n.c.(component.Sourced).Sourced()
	})
	cancel()
	<-done
}
