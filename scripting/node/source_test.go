package node_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow/flowtest"
)

// A poll comes at once and then every interval, whatever it emits is of the time
// when it began, and a series that is not emitted again ends.
func TestPoll(t *testing.T) {
	timed(t, func(t *testing.T, n *harness) {
		start := time.Now()
		const script = `
			local n = 0
			return weir.source {
				interval = "10s",
				poll = function(ctx)
					n = n + 1
					ctx.emit { name = "polls", value = n }
					ctx.sleep(2)
					ctx.emit { name = "poll", labels = { n = tostring(n), v = "%d" }, value = 1 }
				end,
			}`
		n.save(fmt.Sprintf(script, 1), "")
		pass(time.Second)
		same(t, n.emitted(start), "") // it is sent when it returns
		pass(time.Second)
		same(t, n.emitted(start), "0s: polls 1\npoll{n=\"1\",v=\"1\"} 1\n")
		pass(10 * time.Second)
		same(t, n.emitted(start), "10s: polls 2\npoll{n=\"2\",v=\"1\"} 1\npoll{n=\"1\",v=\"1\"} stale\n")

		// A save keeps the phase, and what the version before emitted last ends.
		n.save(fmt.Sprintf(script, 2), `interval = "5s"`)
		pass(2 * time.Second)
		same(t, n.emitted(start), "")
		pass(3 * time.Second)
		same(t, n.emitted(start), "15s: polls 1\npoll{n=\"1\",v=\"2\"} 1\npoll{n=\"2\",v=\"1\"} stale\n")
		if got := n.Health(); got.State != component.Healthy {
			t.Errorf("got %+v", got)
		}

		// All that is left ends when the node is removed.
		n.remove()
		same(t, n.emitted(start), "17s: polls stale\npoll{n=\"1\",v=\"2\"} stale\n")
	})
}

// When weir stops, no series ends: the next process polls again.
func TestPollWhenWeirStops(t *testing.T) {
	timed(t, func(t *testing.T, n *harness) {
		start := time.Now()
		n.save(`return weir.source { interval = "10s", poll = function(ctx) ctx.emit { name = "x", value = 1 } end }`, "")
		pass(time.Second)
		same(t, n.emitted(start), "0s: x 1\n")
		n.stop()
		same(t, n.emitted(start), "")
	})
}

// A poll that fails drops what it emitted and ends what it had emitted, makes
// the node unhealthy until it works, and is tried again before a long interval
// is over.
func TestPollThatFails(t *testing.T) {
	timed(t, func(t *testing.T, n *harness) {
		start := time.Now()
		const script = `return weir.source { interval = "10m", poll = function(ctx)
			ctx.emit { name = "x", value = 1 }
			if ctx.now() %% 3600000 >= 600000 and ctx.now() %% 3600000 < 700000 then error("boom%s") end
		end }`
		n.save(fmt.Sprintf(script, ""), "")
		pass(10*time.Minute + time.Second)
		same(t, n.emitted(start), "0s: x 1\n10m0s: x stale\n")
		if got := n.Health(); got.State != component.Unhealthy || !strings.Contains(got.Message, "in poll: boom") {
			t.Errorf("got %+v", got)
		}
		pass(30 * time.Second)
		same(t, n.emitted(start), "")
		pass(60 * time.Second) // the next try, at 11m30s, still fails; the one after does not
		if got := n.Stats.Dropped()["script_error"]; got != 3 {
			t.Errorf("%d dropped, want 3", got)
		}
		// A save is tried at once.
		n.save(`return weir.source { interval = "10m", poll = function(ctx) ctx.emit { name = "y", value = 1 } end }`, "")
		pass(time.Second)
		same(t, n.emitted(start), "11m31s: y 1\n")
		if got := n.Health(); got.State != component.Healthy {
			t.Errorf("got %+v", got)
		}
		pass(9 * time.Minute)
		same(t, n.emitted(start), "20m0s: y 1\n") // the phase is kept
	})
}

// Records of a poll are retried until the next poll is due, and are then lost.
// A reload in between loses nothing.
func TestPollRefused(t *testing.T) {
	timed(t, func(t *testing.T, n *harness) {
		start := time.Now()
		const script = `return weir.source { interval = "1m", poll = function(ctx) ctx.emit { name = "x", value = ctx.now() %% 3600000 / 1000, labels = { v = "%d" } } end }`
		n.sink.Refuse(flowtest.ErrRefused)
		n.save(fmt.Sprintf(script, 1), "")
		pass(30 * time.Second)
		n.save(fmt.Sprintf(script, 2), "")
		n.sink.Refuse(nil)
		pass(10 * time.Second)
		same(t, n.emitted(start), "0s: x{v=\"1\"} 0\n")
		n.sink.Refuse(flowtest.ErrRefused)
		pass(25 * time.Second)
		n.save(fmt.Sprintf(script, 3), "")
		pass(54 * time.Second)
		if got := n.Stats.Dropped()["refused"]; got != 0 {
			t.Errorf("%d dropped before the next poll", got)
		}
		pass(2 * time.Second)
		if got := n.Stats.Dropped()["refused"]; got != 2 { // with the marker of v="1"
			t.Errorf("%d dropped, want 2", got)
		}
		n.sink.Refuse(nil)
		pass(10 * time.Second)
		same(t, n.emitted(start), "2m0s: x{v=\"3\"} 120\nx{v=\"1\"} stale\nx{v=\"2\"} stale\n")
		n.sink.Refuse(flowtest.ErrRefused)
	})
}

// A poll that takes longer than its interval never overlaps itself.
func TestSlowPoll(t *testing.T) {
	timed(t, func(t *testing.T, n *harness) {
		start := time.Now()
		n.save(`return weir.source { interval = "1s", poll = function(ctx) ctx.emit { name = "x", value = 1 } ctx.sleep(2.5) end }`, "")
		pass(6 * time.Second)
		same(t, n.emitted(start), "0s: x 1\n3s: x 1\n")
		if got := gathered(t, n.Registry, "weir_script_ticks_skipped_total"); got != 4 {
			t.Errorf("%v skipped, want 4", got)
		}
	})
}

// A source of logs.
func TestPollLogs(t *testing.T) {
	timed(t, func(t *testing.T, n *harness) {
		n.save(`return weir.source { interval = "1m", sends = { "logs" }, poll = function(ctx) ctx.emit { line = "hello", labels = { app = "a" } } end }`, "")
		pass(61 * time.Second)
		if got := len(n.sink.Logs()); got != 2 {
			t.Errorf("%d batches of lines, want 2", got)
		}
		if got := n.sink.Batches(); len(got) != 0 {
			t.Errorf("got samples %v", got)
		}
	})
}

// Routed records of a source are sent to its outputs.
func TestPollRoutes(t *testing.T) {
	timed(t, func(t *testing.T, n *harness) {
		start := time.Now()
		const script = `return weir.source { interval = "1m", outputs = { "large" }, poll = function(ctx)
			ctx.emit { name = "a", value = 1 }
			ctx.route("large", { name = "b", value = 100 })
		end }`
		n.save(script, "routes {\nlarge = [sink]\n}")
		pass(time.Second)
		same(t, n.emitted(start), "0s: a 1\nb 100\n")
		n.save(script, "routes {\nlarge = []\n}")
		pass(time.Minute)
		same(t, n.emitted(start), "1m0s: a 1\nb stale\n")
		if got := gathered(t, n.Registry, "weir_script_samples_routed_total"); got != 2 {
			t.Errorf("%v routed, want 2", got)
		}
		if got := n.Stats.Dropped()["no_receiver"]; got != 1 {
			t.Errorf("%d dropped, want 1", got)
		}
	})
}

// Records of run are sent when it waits. It ends before the next version
// begins, and nothing is lost.
func TestRun(t *testing.T) {
	timed(t, func(t *testing.T, n *harness) {
		start := time.Now()
		const script = `return weir.source {
			state = { torn = weir.state.counter {} },
			run = function(ctx)
				local i = 0
				while true do
					i = i + 1
					ctx.emit { name = "i", labels = { v = "%d" }, value = i }
					local _, err = ctx.sleep(10)
					if err then
						ctx.emit { name = "last", value = i }
						return
					end
				end
			end,
			teardown = function(ctx) ctx.state.torn:add("n") ctx.log.info("torn down") end,
		}`
		n.save(fmt.Sprintf(script, 1), "")
		pass(11 * time.Second)
		same(t, n.emitted(start), "0s: i{v=\"1\"} 1\n10s: i{v=\"1\"} 2\n")
		n.save(fmt.Sprintf(script, 2), "")
		pass(0)
		same(t, n.emitted(start), "10s: last 2\n11s: i{v=\"2\"} 1\n")
		if got := strings.Count(n.Logs(), "torn down"); got != 1 {
			t.Errorf("torn down %d times", got)
		}

		// Refused: it waits, and a save sends it on.
		n.sink.Refuse(flowtest.ErrRefused)
		pass(25 * time.Second)
		same(t, n.emitted(start), "")
		n.save(fmt.Sprintf(script, 3), "")
		pass(time.Second)
		n.sink.Refuse(nil)
		pass(15 * time.Second)
		same(t, n.emitted(start), "21s: i{v=\"2\"} 2\n21s: last 2\n37.5s: i{v=\"3\"} 1\n47.5s: i{v=\"3\"} 2\n")
	})
}

// A test that sets the clock can wait until all due work has been done.
func TestRunSettles(t *testing.T) {
	n := newHarness(t)
	n.save(`return weir.source { interval = "1m", poll = function(ctx) ctx.emit { name = "poll", value = 1 } end, run = function(ctx)
		for i = 1, 3 do ctx.emit { name = "i", value = i } ctx.sleep(10) end
	end }`, "")
	want := 0
	for i := range 10 {
		switch { // the first poll is at once
		case i == 0:
			want = 2
		case i < 3 || i == 6:
			want++
		}
		awaitIdle(t, n)
		if got := len(n.sink.Batches()); got != want {
			t.Errorf("%d batches after %d s, want %d", got, 10*i, want)
		}
		n.Clock.Advance(10 * time.Second)
	}
	awaitIdle(t, n)
}

// A run that fails is called again, later each time; one that never waits is
// stopped; one that returns is done.
func TestRunAgain(t *testing.T) {
	timed(t, func(t *testing.T, n *harness) {
		start := time.Now()
		n.save(`return weir.source { run = function(ctx) ctx.emit { name = "x", value = 1 } error("boom") end }`, "")
		pass(time.Second - time.Millisecond)
		same(t, n.emitted(start), "0s: x 1\n") // what came before the error stands
		if got := n.Health(); got.State != component.Unhealthy || !strings.Contains(got.Message, "in run: boom") {
			t.Errorf("got %+v", got)
		}
		pass(3 * time.Second)
		same(t, n.emitted(start), "1s: x 1\n3s: x 1\n")
		n.save(`return weir.source { run = function(ctx) ctx.emit { name = "y", value = 1 } end }`, "")
		pass(0)
		if got := n.Health(); got.State != component.Exited || got.Message != "run has returned" {
			t.Errorf("got %+v", got)
		}
		pass(time.Hour)
		same(t, n.emitted(start), "3.999s: y 1\n")
	})
}

// A run that never waits is stopped by its limit, and so is one that does not
// want to end.
func TestRunIsLimited(t *testing.T) {
	n := newHarness(t)
	n.save(`return weir.source { run = function(ctx) while true do end end }`, "script {\nlimits { time = \"100ms\" }\n}")
	until(t, func() bool { // the VM goes after the health has said why
		return strings.Contains(n.Health().Message, "the call ran longer than 100ms") && gathered(t, n.Registry, "weir_script_vms_discarded_total") == 1
	})
	n.save(`return weir.source { run = function(ctx) while true do ctx.sleep(1) end end }`, "script {\nlimits { time = \"100ms\" }\n}")
	n.stop() // which ends
}

// until waits for something that takes as long as a busy machine takes.
func until(t *testing.T, ok func() bool) {
	t.Helper()
	deadline := time.After(2 * time.Minute)
	for !ok() {
		select {
		case <-deadline:
			t.Fatal("it does not come")
		case <-time.After(time.Millisecond):
		}
	}
}

// Saves lose nothing of what a run emits, and leave nothing behind, while
// receivers refuse now and then.
func TestManyReloadsOfSources(t *testing.T) {
	timed(t, func(t *testing.T, n *harness) {
		save := func(i int) {
			n.save(fmt.Sprintf(`return weir.source {
				state   = { seq = weir.state.counter {} },
				exports = { n = weir.arg.int {} },
				sends   = { "metrics" },
				setup   = function() if %d %% 7 == 0 then error("no") end end,
				poll    = function(ctx) ctx.emit { name = "poll", value = %d } ctx.export { n = %d } end,
				every   = { ["700ms"] = function(ctx) ctx.sleep(0.1) ctx.emit { name = "every", value = 1 } end },
				run     = function(ctx)
					repeat
						for i = 1, 3 do ctx.emit { name = "seq", value = ctx.state.seq:add("n") } end
						local _, err = ctx.sleep(0.3)
					until err
				end,
			}`, i, i, i), `interval = "400ms"`)
			if i%3 == 0 {
				n.sink.Refuse(flowtest.ErrRefused)
			} else {
				n.sink.Refuse(nil)
			}
			pass(500 * time.Millisecond)
		}
		save(1)
		before := runtime.NumGoroutine()
		reloads := 1000
		if testing.Short() || raceDetector {
			reloads = 100
		}
		for i := range reloads {
			save(i)
		}
		save(1)
		pass(time.Minute)
		if after := runtime.NumGoroutine(); after > before+10 {
			t.Errorf("%d goroutines before, %d after", before, after)
		}
		n.stop()
		last, polls := 0.0, 0
		for _, b := range n.sink.Batches() {
			for i, s := range b.Series {
				if s.Name() == "poll" {
					polls++
				}
				if s.Name() != "seq" {
					continue
				}
				if b.V[i] != last+1 {
					t.Fatalf("got %v after %v", b.V[i], last)
				}
				last = b.V[i]
			}
		}
		if last < float64(reloads) || polls < reloads/2 {
			t.Errorf("got %v numbers and %d polls in %d reloads", last, polls, reloads)
		}
	})
}

// Records that a poll, a timer or run could not send yet are not lost if a
// reload removes these hooks, or if the source is removed while it waits for
// its setup.
func TestWhatIsLeftOfHooksThatAreGone(t *testing.T) {
	const script = `return weir.source {
		interval = "10m", poll = function(ctx) ctx.emit { name = "polled", value = 1 } end,
		run = function(ctx) ctx.emit { name = "ran", value = 1 } ctx.sleep(1) end,
		every = { ["10m"] = function(ctx) end },
	}`
	f := func(name, ended string, then func(n *harness)) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			timed(t, func(t *testing.T, n *harness) {
				start := time.Now()
				n.sink.Refuse(flowtest.ErrRefused)
				n.save(script, "")
				pass(10 * time.Second)
				then(n)
				pass(time.Minute)
				got := strings.Split(strings.TrimSpace(n.emitted(start)), "\n")
				slices.SortStableFunc(got, func(a, b string) int { return strings.Compare(strings.Fields(a)[1], strings.Fields(b)[1]) })
				same(t, strings.Join(got[:min(len(got), 2)], "\n"), "0s: polled 1\n"+ended+": polled stale")
				if !slices.Contains(got, "0s: ran 1") || len(got) != 3 {
					t.Errorf("got %q", got)
				}
				if got := n.Stats.Dropped()["refused"]; got != 0 {
					t.Errorf("%d dropped", got)
				}
			})
		})
	}
	f("another source", "11.5s", func(n *harness) {
		n.save(`return weir.source { every = { ["1h"] = function(ctx) end } }`, "")
		pass(time.Second)
		n.sink.Refuse(nil)
	})
	f("two saves", "11.5s", func(n *harness) {
		n.save(`return weir.source { every = { ["1h"] = function(ctx) end } }`, "")
		n.save(`return weir.source { every = { ["2h"] = function(ctx) end } }`, "")
		pass(time.Second)
		n.sink.Refuse(nil)
	})
	f("gone before its setup", "10s", func(n *harness) {
		n.save(`return weir.source { setup = function(ctx) error("no") end, interval = "10m", poll = function(ctx) end }`, "")
		n.sink.Refuse(nil)
		n.remove()
	})
}
