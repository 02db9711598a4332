package node_test

import (
	"testing"

	"github.com/weir-run/weir/engine/component"
)

// A call that takes longer than it may is a reason of its own, until a call works,
// and calls are operations that end.
func TestTimeoutIsAReason(t *testing.T) {
	n := newHarness(t)
	n.save(`return weir.transform { metrics = function(batch) while true do end end }`, "script {\nlimits {\ntime = \"20ms\"\n}\n}")
	n.send(text(t, 1, "a 1\n"))
	n.Wait(t, func() bool { return n.Problem(component.ReasonTimeout).State == component.Unhealthy })
	n.save(`return weir.transform { metrics = function(batch) end }`, "")
	n.send(text(t, 1, "a 2\n"))
	n.Wait(t, func() bool { return n.Health().State == component.Healthy }) // Run may be the one that reports it
	if calls := n.Watch.All(); len(calls) > 0 {
		t.Errorf("calls have not ended: %v", calls)
	}
}
