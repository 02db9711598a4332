package node_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow/flowtest"
)

// timed runs f in a bubble, whose clock goes on when all goroutines wait.
func timed(t *testing.T, f func(t *testing.T, n *harness)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		n := newHarness(t)
		n.real = true
		f(t, n)
		n.stop()
	})
}

// pass lets time go by.
func pass(d time.Duration) {
	time.Sleep(d) // the bubble's
	synctest.Wait()
}

// emitted are the batches that came since the last call, with the seconds since
// start.
func (n *harness) emitted(start time.Time) string {
	var b strings.Builder
	for _, m := range n.sink.Batches() {
		fmt.Fprintf(&b, "%v: %s", time.UnixMilli(m.T[0]).Sub(start.Truncate(time.Millisecond)), batch.AppendTextAt(nil, m, m.T[0]))
	}
	n.sink.Forget()
	return b.String()
}

// Timers ring in phase, whatever else runs, go on in phase after a reload, and
// what they emitted ends when it comes no more.
func TestTimers(t *testing.T) {
	timed(t, func(t *testing.T, n *harness) {
		const script = `
			return weir.transform {
				metrics = function() end,
				every = { %s },
			}`
		const ten = `["10s"] = function(ctx) ctx.emit { name = "ten", labels = { v = "%s" }, value = ctx.now() %% 60000 } end,`
		start := time.Now()
		n.save(fmt.Sprintf(script, fmt.Sprintf(ten, "1")+`["25s"] = function(ctx) ctx.emit { name = "other", value = 1 } end`), "")
		pass(9 * time.Second)
		same(t, n.emitted(start), "")
		pass(22 * time.Second)
		same(t, n.emitted(start), "10s: ten{v=\"1\"} 10000\n20s: ten{v=\"1\"} 20000\n25s: other 1\n30s: ten{v=\"1\"} 30000\n")
		sources := map[uint64]bool{}

		// Saved at 31s: the timer goes on in phase, the one that is gone ends.
		n.save(fmt.Sprintf(script, fmt.Sprintf(ten, "2")), "")
		pass(10 * time.Second)
		for _, b := range n.sink.Batches() {
			sources[b.Source] = true
		}
		if len(sources) != 2 || sources[0] {
			t.Errorf("got sources %v, want one a timer", sources)
		}
		same(t, n.emitted(start), "31s: other stale\n40s: ten{v=\"2\"} 40000\nten{v=\"1\"} stale\n")
		// Another interval is another timer.
		n.save(fmt.Sprintf(script, strings.Replace(fmt.Sprintf(ten, "3"), "10s", "15s", 1)), "")
		pass(15 * time.Second)
		same(t, n.emitted(start), "41s: ten{v=\"2\"} stale\n56s: ten{v=\"3\"} 56000\n")
	})
}

// A timer never overlaps itself: what it misses is counted, and it goes on in
// phase.
func TestSlowTimer(t *testing.T) {
	timed(t, func(t *testing.T, n *harness) {
		start := time.Now()
		n.save(`return weir.transform { metrics = function() end, every = { ["1s"] = function(ctx)
			ctx.emit { name = "tick", value = 1 }
			ctx.sleep(2.5)
		end } }`, "")
		pass(9 * time.Second)
		same(t, n.emitted(start), "1s: tick 1\n4s: tick 1\n") // emitted when the hook has returned
		if got := gathered(t, n.Registry, "weir_script_ticks_skipped_total"); got != 4 {
			t.Errorf("%v skipped, want 4", got)
		}
		// A reload does not make it overlap.
		n.save(`return weir.transform { metrics = function() end, every = { ["1s"] = function(ctx) ctx.emit { name = "new", value = 1 } end } }`, "")
		pass(3 * time.Second)
		same(t, n.emitted(start), "7s: tick 1\n10s: new 1\ntick stale\n11s: new 1\n12s: new 1\n")
	})
}

// A timer that fails makes the node unhealthy until it works again, and what it
// emitted is dropped.
func TestTimerThatFails(t *testing.T) {
	timed(t, func(t *testing.T, n *harness) {
		n.save(`return weir.transform { metrics = function() end, every = { ["10s"] = function(ctx)
			ctx.emit { name = "x", value = 1 }
			if ctx.now() % 60000 < 30000 then error("boom") end
		end } }`, "")
		pass(20 * time.Second)
		if got := n.Health(); got.State != component.Unhealthy || !strings.Contains(got.Message, "in every: boom") {
			t.Errorf("got %+v", got)
		}
		if got := n.Stats.Dropped()["script_error"]; got != 2 {
			t.Errorf("%d dropped, want 2", got)
		}
		pass(10 * time.Second)
		if got := n.Health(); got.State != component.Healthy {
			t.Errorf("got %+v", got)
		}
		if got := len(n.sink.Batches()); got != 1 {
			t.Errorf("%d batches, want 1", got)
		}
		if got := gathered(t, n.Registry, "weir_script_errors_total"); got != 2 {
			t.Errorf("%v errors, want 2", got)
		}
	})
}

// Refused records are retried until the timer fires again.
func TestTimerThatIsRefused(t *testing.T) {
	timed(t, func(t *testing.T, n *harness) {
		n.save(`local i = 0 return weir.transform { metrics = function() end, every = { ["10s"] = function(ctx)
			i = i + 1
			ctx.emit { name = "x", value = i }
		end } }`, `script { concurrency = "single" }`)
		n.sink.Refuse(flowtest.ErrRefused)
		pass(15 * time.Second)
		n.sink.Refuse(nil)
		pass(4 * time.Second)
		if got := n.sink.Batches(); len(got) != 1 || got[0].V[0] != 1 {
			t.Errorf("got %v, want what was emitted first", got)
		}
		n.sink.Refuse(flowtest.ErrRefused)
		pass(11 * time.Second)
		n.sink.Refuse(nil)
		pass(time.Minute)
		if got := n.sink.Batches(); got[1].V[0] != 3 {
			t.Errorf("got %v, want the third", got[1].V)
		}
		if got := n.Stats.Dropped()["refused"]; got != 1 {
			t.Errorf("%d refused, want 1", got)
		}
	})
}

// In single, a timer and the hooks meet one VM, one after the other.
func TestTimerInSingle(t *testing.T) {
	timed(t, func(t *testing.T, n *harness) {
		n.save(`local seen = 0 return weir.transform {
			metrics = function(batch, ctx) seen = seen + #batch ctx.sleep(3) end,
			every = { ["1s"] = function(ctx) ctx.emit { name = "seen", value = seen } seen = 0 end },
		}`, `script { concurrency = "single" }`)
		start := time.Now()
		go func() {
			_ = n.gate.ConsumeMetrics(context.Background(), at(text(t, 1, "a 1\nb 2\n"), start.UnixMilli()))
		}()
		pass(3500 * time.Millisecond)
		if got := n.emitted(start); !strings.Contains(got, "3s: seen 2\n") || !strings.Contains(got, "0s: a 1\nb 2\n") { // in any order
			t.Errorf("got %s", got)
		}
	})
}
