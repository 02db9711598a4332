package node_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/node"
)

// A replay sends the entries in a sink's quarantine. An entry stays unless all
// of it is delivered.
func TestSinkReplay(t *testing.T) {
	const source = `return weir.sink { needs = { http = { "https://hook.example/*" } }, accepts = { "metrics", "logs" }, send = function(batch, ctx)
		%s
		local answer = ctx.http.post("https://hook.example/v1", batch:text())
		if answer.status >= 500 then return ctx.retry { reason = answer.body } end
		if answer.status >= 400 then ctx.reject(answer.body) end
	end }`
	attrs := strings.Replace(sinkAttrs, "script {", "script {\non_error = \"quarantine\"", 1)
	onSink(t, func(t *testing.T, n *sinkNode) {
		n.save(fmt.Sprintf(source, `error("not yet")`), attrs)
		n.accept(text(t, batch.NewSource(), everyKind))
		logs, err := batch.ParseLogsText("{app=\"api\"} @2025-01-01T00:00:00.000000001Z started\n", batch.TextOptions{Source: batch.NewSource()})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if err := n.gate.ConsumeLogs(t.Context(), logs); err != nil {
			t.Fatal(err)
		}
		equal(t, n.after(time.Second), nil)
		backlog := func() component.Backlog { return n.c.(component.Queuer).Backlog() }
		equal(t, lost(t, n), map[string]float64{})
		equal(t, backlog(), component.Backlog{Journal: true, Quarantined: 5})
		replay := func(req node.QuarantineRequest) string {
			t.Helper()
			results, problem := askQuarantine(t, n.harness, "/quarantine/replay", req)
			for _, r := range results {
				problem += fmt.Sprintf("%d passed=%v gone=%v %s\n", r.ID, r.Passed, r.Gone, r.Error)
			}
			return problem
		}
		equal(t, strings.Count(replay(node.QuarantineRequest{}), "passed=false gone=false it was not sent: scripts/a/b.lua:"), 2)
		n.save(fmt.Sprintf(source, ""), attrs)
		n.e.set(status(503))
		equal(t, strings.Count(replay(node.QuarantineRequest{}), "passed=false gone=false it was not sent: said 503"), 2)
		n.e.set(status(400))
		equal(t, replay(node.QuarantineRequest{IDs: []uint64{1}}), "1 passed=false gone=false the sink rejects 4 of 4 records: rejected by the script: said 400\n")
		with := &scripting.File{Name: "fixed.lua", Text: "local weir = require \"weir\"\n" + fmt.Sprintf(source, "")}
		equal(t, replay(node.QuarantineRequest{IDs: []uint64{2}, With: with}), "2 passed=false gone=false cannot show what a sink would send without sending it: say --send\n")
		n.e.set(nil)
		n.e.takeBodies()
		equal(t, replay(node.QuarantineRequest{IDs: []uint64{2}, With: with, Send: true}), "2 passed=true gone=true \n")
		equal(t, replay(node.QuarantineRequest{}), "1 passed=true gone=true \n")
		equal(t, n.e.takeBodies(), []string{string(batch.AppendLogsText(nil, logs)), string(batch.AppendText(nil, text(t, 1, everyKind)))})
		equal(t, replay(node.QuarantineRequest{}), "")
		equal(t, backlog(), component.Backlog{Journal: true})
		equal(t, []uint64{n.Stats.Out.Load(), n.Stats.LinesOut.Load()}, []uint64{4, 1})
		equal(t, len(n.Stats.Dropped())+len(n.Stats.DroppedLines()), 0)
		equal(t, n.after(time.Hour), nil) // nothing of a replay is in the journal
	})
}

// A sink has everything that a script has in addition to send: setup, teardown,
// state with migrations, and timers.
func TestSinkHooks(t *testing.T) {
	const source = `
	local greeting
	return weir.sink {
		version = %d,
		needs = { http = { "https://hook.example/*" } },
		state = { %s = weir.state.counter{ scope = "persistent" } },
		migrate = function(old, version, ctx) ctx.state.records:add("all", 100 + old.batches:get("all")) end,
		setup = function(ctx) greeting = "hello" end,
		teardown = function(ctx) ctx.log.warn("farewell") end,
		every = { ["10s"] = function(ctx) ctx.http.post("https://hook.example/tick", "tick " .. tostring(ctx.state.%[2]s:get("all"))) end },
		send = function(batch, ctx)
			local answer = ctx.http.post("https://hook.example/v1", greeting .. " " .. batch:text())
			if answer.status ~= 200 then return ctx.retry() end
			ctx.state.%[2]s:add("all", #batch)
		end,
	}`
	onSink(t, func(t *testing.T, n *sinkNode) {
		n.save(fmt.Sprintf(source, 1, "batches"), sinkAttrs)
		b := batch.NewSource()
		n.accept(text(t, b, "a 1 1\nb 1 1\n"))
		equal(t, n.after(time.Second), []string{"hello a 1 1\nb 1 1\n"})
		equal(t, n.after(10*time.Second), []string{"tick 2"})
		n.save(fmt.Sprintf(source, 2, "records"), sinkAttrs)
		synctest.Wait()
		equal(t, strings.Count(n.Logs(), "farewell"), 1)
		n.accept(text(t, b, "a 2 2\n"))
		equal(t, n.after(time.Second), []string{"hello a 2 2\n"})
		equal(t, n.after(10*time.Second), []string{"tick 103"})
		n.stop()
		n.e.takeBodies()
		equal(t, strings.Count(n.Logs(), "farewell"), 2)
		n.open(t)
		n.save(fmt.Sprintf(source, 2, "records"), sinkAttrs)
		equal(t, n.after(10*time.Second), []string{"tick 103"})
	})
}

// 1,000 saves of a sink under load leave nothing behind, and lose nothing.
func TestSinkLeaksNothing(t *testing.T) {
	reloads := 1000
	if testing.Short() || raceDetector {
		reloads = 100
	}
	onSink(t, func(t *testing.T, n *sinkNode) {
		measure := func() (heap uint64, goroutines int) {
			runtime.GC()
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return m.HeapAlloc, runtime.NumGoroutine()
		}
		source := batch.NewSource()
		arrived := 0
		var heap uint64
		var goroutines int
		for i := range reloads + 20 {
			if i == 20 {
				n.e.takeBodies()
				heap, goroutines = measure()
			}
			n.e.set(nil)
			if i%5 == 2 {
				n.e.set(status(503)) // a pause is under way at the next save
			}
			n.save(fmt.Sprintf("-- %d\n", i)+poster, sinkAttrs)
			n.accept(text(t, source, fmt.Sprintf("a %d %d\n", i, i)))
			for _, p := range n.after(100 * time.Millisecond) {
				for line := range strings.Lines(p) {
					if i%5 != 2 && line == fmt.Sprintf("a %d %d\n", arrived, arrived) {
						arrived++
					}
				}
			}
		}
		n.e.set(nil)
		equal(t, arrived, reloads+20)
		n.e.takeBodies()
		n.e.headers = nil
		heapAfter, goroutinesAfter := measure()
		if goroutinesAfter > goroutines+10 { // some may be about to end
			t.Errorf("%d goroutines before, %d after", goroutines, goroutinesAfter)
		}
		grown := int64(heapAfter) - int64(heap)
		t.Logf("the heap grew by %d KiB in %d reloads", grown>>10, reloads)
		if grown > int64(reloads)*4<<10 {
			t.Error("that is too much")
		}
	})
}

// Records in the journal are counted as waiting, by signal, including the rest
// of a partly delivered offer. They are still counted after a restart.
func TestSinkBacklog(t *testing.T) {
	const source = `return weir.sink { needs = { http = { "https://hook.example/*" } }, accepts = { "metrics", "logs" }, batch = { max_records = 2 }, send = function(batch, ctx)
		if string.find(batch:text(), "bad") then
			for r in batch:records() do
				if r.line == "bad" then ctx.reject(r, "bad") end
			end
		end
		local answer, err = ctx.http.post("https://hook.example/v1", batch:text())
		if not answer then return ctx.retry { reason = err } end
		if answer.status >= 500 then return ctx.retry { reason = answer.body } end
	end }`
	onSink(t, func(t *testing.T, n *sinkNode) {
		n.e.set(status(503))
		n.save(source, sinkAttrs)
		accepted := time.Now()
		figures := func(samples, lines int64, out, linesOut uint64, rejected uint64) {
			t.Helper()
			equal(t, n.c.(component.Queuer).Backlog(), component.Backlog{Journal: true, Samples: samples, Lines: lines, Oldest: accepted})
			equal(t, []uint64{n.Stats.Out.Load(), n.Stats.LinesOut.Load(), n.Stats.DroppedLines()["rejected"]}, []uint64{out, linesOut, rejected})
			equal(t, len(n.Stats.Dropped()), 0)
		}
		n.accept(text(t, batch.NewSource(), "a 1 1\nb 1 1\nc 1 1\n"))
		logs, err := batch.ParseLogsText("{app=\"api\"} @2025-01-01T00:00:00Z bad\n{app=\"api\"} @2025-01-01T00:00:01Z good\n", batch.TextOptions{Source: batch.NewSource()})
		if err != nil {
			t.Fatal(err)
		}
		if err := n.gate.ConsumeLogs(t.Context(), logs); err != nil {
			t.Fatal(err)
		}
		n.after(time.Minute)
		figures(3, 1, 0, 0, 1)
		n.e.set(func(body string) int { // the first two samples only
			if strings.HasPrefix(body, "a ") {
				return 200
			}
			return 503
		})
		n.after(time.Minute)
		figures(1, 1, 2, 0, 1)
		n.stop()

		n.open(t)
		n.save(source, sinkAttrs)
		n.after(time.Second)
		equal(t, n.c.(component.Queuer).Backlog().Samples, 1)
		n.e.set(nil)
		n.after(time.Minute)
		equal(t, n.c.(component.Queuer).Backlog(), component.Backlog{Journal: true})
	})
}

// A save during an outage does not make the sink healthy: it still delivers
// nothing, since the outage began.
func TestSinkOutageLastsOverASave(t *testing.T) {
	onSink(t, func(t *testing.T, n *sinkNode) {
		n.e.set(status(503))
		n.save(poster, sinkAttrs)
		n.accept(text(t, batch.NewSource(), "a 1 1\n"))
		n.after(time.Minute)
		sick := func() {
			t.Helper()
			if h := n.Health(); h.State != component.Unhealthy || !strings.Contains(h.Message, "cannot send since 2000-01-01T00:00:00Z: said 503") {
				t.Errorf("got %+v", h)
			}
		}
		sick()
		n.save("-- saved\n"+poster, sinkAttrs)
		sick()
		n.after(time.Minute)
		sick()
		n.e.set(nil)
		n.after(time.Minute)
		if h := n.Health(); h.State != component.Healthy {
			t.Errorf("got %+v", h)
		}
	})
}
