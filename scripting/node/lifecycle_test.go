package node_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
)

// setup runs before the first batch is let in, again and again until it works;
// teardown once, after the last call.
func TestSetupAndTeardown(t *testing.T) {
	n := newHarness(t)
	n.save(`
		local tries = 0
		return weir.transform {
			setup = function(ctx)
				tries = tries + 1
				ctx.log.info("setup", { try = tries })
				if tries < 3 then error("not yet") end
			end,
			metrics = function(batch, ctx) batch:set_label("tries", tostring(tries)) end,
			teardown = function(ctx) ctx.log.info("teardown") end,
		}`, `script { concurrency = "single" }`) // one VM, so that tries is one variable
	sent := make(chan error, 1)
	go func() { sent <- n.gate.ConsumeMetrics(context.Background(), text(t, 1, "a 1\n")) }()
	n.Wait(t, func() bool { return n.Health().State == component.Unhealthy })
	if got := n.Health().Message; !strings.Contains(got, "in setup: not yet") || !strings.Contains(got, "no batch is let in") {
		t.Errorf("got %s", got)
	}
	advanceUntil(t, n, 100*time.Millisecond, func() bool { return n.Health().State == component.Healthy })
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
	if got := n.sink.Last().Series[0].Label("tries"); got != "3" {
		t.Errorf("the batch met try %s", got)
	}
	if got := strings.Count(n.Logs(), "msg=teardown"); got != 0 {
		t.Errorf("teardown ran %d times while the node runs", got)
	}
	n.stop()
	if s, d := strings.Count(n.Logs(), "msg=setup"), strings.Count(n.Logs(), "msg=teardown"); s != 3 || d != 1 {
		t.Errorf("setup ran %d times, teardown %d times, want 3 and 1", s, d)
	}
}

// advanceUntil moves the node's clock by step, again and again, until ok is
// true. It waits for no timer: what sleeps may be done before it is seen to.
func advanceUntil(t *testing.T, n *harness, step time.Duration, ok func() bool) {
	t.Helper()
	until(t, func() bool {
		if ok() {
			return true
		}
		n.Clock.Advance(step)
		return false
	})
}

// A batch that waits for a setup that never works meets the version that is
// saved next; who stops waiting is told.
func TestSetupThatNeverWorks(t *testing.T) {
	n := newHarness(t)
	n.save(`return weir.transform { setup = function() error("no") end, metrics = function() end, teardown = function(ctx) ctx.log.info("teardown") end }`, "")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := n.gate.ConsumeMetrics(ctx, text(t, 1, "a 1\n")); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want a batch that is not accepted", err)
	}
	sent := make(chan error, 1)
	go func() { sent <- n.gate.ConsumeMetrics(context.Background(), text(t, 1, "a 1\n")) }()
	n.Wait(t, func() bool { return n.Health().State == component.Unhealthy })
	n.save(fmt.Sprintf(label, "1"), "")
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
	same(t, n.send(text(t, 1, "b 1\n")), "b{v=\"1\"} 1\n")
	if strings.Contains(n.Logs(), "msg=teardown") {
		t.Error("teardown ran without setup")
	}

	// A node that leaves the graph refuses what waited.
	n.save(`return weir.transform { setup = function() error("no") end, metrics = function() end }`, "")
	go func() {
		sent <- n.c.(flow.MetricsConsumer).ConsumeMetrics(context.Background(), text(t, 1, "a 1\n"))
	}()
	n.stop()
	if err := <-sent; !errors.Is(err, flow.ErrStopped) {
		t.Errorf("got %v, want %v", err, flow.ErrStopped)
	}
}

// Each instance is set up and torn down once, in any order of reloads.
func TestTeardownOncePerGeneration(t *testing.T) {
	n := newHarness(t)
	const instances = 30
	for i := range instances {
		n.save(fmt.Sprintf(`return weir.transform {
			setup = function(ctx) ctx.log.warn("up %[1]d") end,
			teardown = function(ctx) ctx.sleep(0) ctx.log.warn("down %[1]d") end,
			every = { ["1s"] = function(ctx) ctx.emit { name = "tick", value = 1 } end },
			metrics = function() end }`, i), "")
		n.send(text(t, 1, "a 1\n"))
		n.Clock.Advance(5 * time.Second) // log lines are limited by the second
	}
	n.stop()
	for i := range instances {
		for _, what := range []string{"up", "down"} {
			if got := strings.Count(n.Logs(), fmt.Sprintf("msg=\"%s %d\"", what, i)); got != 1 {
				t.Errorf("%s %d: %d times, want 1", what, i, got)
			}
		}
	}
}

// teardown ends when it is over its time, and its error is in the log.
func TestTeardownThatFails(t *testing.T) {
	n := newHarness(t)
	n.save(`return weir.transform { metrics = function() end, teardown = function(ctx) while true do end end }`, "script {\nlimits { time = \"100ms\" }\n}")
	n.stop()
	if got := n.Logs(); !strings.Contains(got, "the call ran longer than 100ms") || !strings.Contains(got, "hook=teardown") {
		t.Errorf("the log says:\n%s", got)
	}
}
