package node_test

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/scripting/internal/registrytest"
)

// A component that was built before another and runs after it, since the machine
// is slow and saves are fast, takes nothing from that one.
func TestRunsBeginInAnotherOrder(t *testing.T) {
	for _, concurrency := range []string{"single", "partition\"\nby = [\"i\"]\n//", "ordered"} {
		n := newHarness(t)
		build := func(version string, previous component.Component) component.Component {
			t.Helper()
			r := n.lookup(`return weir.transform { metrics = function(batch) batch:set_label("v", "` + version + `") end }`)
			args := r.NewArgs()
			if err := registrytest.Decode(args, "script {\nconcurrency = \""+concurrency+"\"\n}", n.sink); err != nil {
				t.Fatal(err)
			}
			o := n.Options()
			o.Registerer = prometheus.NewRegistry()
			c, err := r.Build(o, args, previous)
			if err != nil {
				t.Fatal(err)
			}
			return c
		}
		older := build("1", nil)
		newer := build("2", older)
		n.Run(t, newer)
		n.Wait(t, func() bool { return n.Health().State == component.Healthy }) // it runs
		n.Run(t, older)()                                                       // and has returned
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		if err := newer.(flow.MetricsConsumer).ConsumeMetrics(ctx, text(t, 1, "a 1\n")); err != nil {
			t.Errorf("%.9s: %v", concurrency, err)
		} else if got := n.sink.Last().Series[0].Label("v"); got != "2" {
			t.Errorf("%.9s: version %s had the batch", concurrency, got)
		}
		cancel()
	}
}
