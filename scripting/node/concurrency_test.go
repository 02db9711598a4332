package node_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-run/weir/engine/batch"
)

// Each key meets one VM, whatever batch and source it comes from: the locals of
// the script's file count without a gap.
func TestPartitionMeetsOneVM(t *testing.T) {
	n := newHarness(t)
	n.save(`
		local seen = {}
		return weir.transform { metrics = function(batch)
			for m in batch:records() do
				local key = m.labels.job .. m.labels.zone
				seen[key] = (seen[key] or 0) + 1
				m.value = seen[key]
			end
		end }`, `script {
			concurrency = "partition"
			by          = ["job", "zone"]
		}`)
	const sources, batches, jobs = 4, 50, 20
	var wg sync.WaitGroup
	for s := range sources {
		var in strings.Builder
		for j := range jobs {
			fmt.Fprintf(&in, "m{s=\"%d\",job=\"%d\",zone=\"%c\"} 0\n", s, j, 'a'+rune(j%3))
		}
		b := text(t, uint64(s+1), in.String())
		wg.Go(func() {
			for i := range batches {
				if err := n.gate.ConsumeMetrics(context.Background(), at(b, int64(i))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	counts := map[string][]float64{}
	last := map[string]float64{}
	for _, b := range n.sink.Batches() {
		if b.Len() != jobs {
			t.Fatalf("a batch of %d records", b.Len())
		}
		for i, s := range b.Series {
			key := s.Label("job")
			counts[key] = append(counts[key], b.V[i])
			series := s.String()
			if b.V[i] <= last[series] {
				t.Errorf("%s went from %v to %v", series, last[series], b.V[i])
			}
			last[series] = b.V[i]
		}
	}
	for key, got := range counts {
		slices.Sort(got)
		for i, v := range got {
			if v != float64(i+1) {
				t.Errorf("job %s: counted %v as number %d of %d", key, v, i+1, len(got))
				break
			}
		}
	}
	if len(counts) != jobs {
		t.Errorf("got %d jobs, want %d", len(counts), jobs)
	}
}

// large is a batch that is split in mode parallel.
func large(t testing.TB, source uint64, rows int) *batch.Metrics {
	t.Helper()
	var in strings.Builder
	for i := range rows {
		fmt.Fprintf(&in, "m{i=\"%d\"} %d\n", i, i)
		if i == rows-1 {
			in.WriteString("h {count:3,sum:1.5,schema:3,positive_spans:[0:2],positive_buckets:[1,2]}\n")
			in.WriteString("c 1 st@1600000000000 # {trace_id=\"t\"} 1 1699999999000\n")
		}
	}
	return text(t, source, in.String())
}

// The results of the parts of a batch are sent as one batch, in order.
func TestParallelJoinsInOrder(t *testing.T) {
	n := newHarness(t)
	n.save(`return weir.transform { metrics = function(batch, ctx)
		ctx.emit { name = "part", value = #batch, labels = { first = batch[1].labels.i } }
		batch:each(function(m)
			if m.name == "m" and m.value % 100 == 7 then return m:drop() end
			m.labels.k = "v"
		end)
	end }`, `script { concurrency = "parallel" }`)
	const rows = 5000
	b := large(t, 1, rows)
	n.send(b)
	out := n.sink.Last()
	next, parts := 0, 0.0
	for i, s := range out.Series {
		switch s.Name() {
		case "part":
			parts += out.V[i]
		case "m":
			for next%100 == 7 {
				next++
			}
			if out.V[i] != float64(next) || s.Label("i") != fmt.Sprint(next) || s.Label("k") != "v" {
				t.Fatalf("row %d: got %s %v, want number %d", i, s, out.V[i], next)
			}
			next++
		}
	}
	if next != rows || parts != rows+2 || out.Len() != rows+2-rows/100+3 {
		t.Errorf("got %d rows up to number %d, parts of %v together", out.Len(), next, parts)
	}
	if len(out.Histograms) != 1 || out.Series[out.Histograms[0].Row].Name() != "h" || len(out.Exemplars) != 1 || out.Series[out.Exemplars[0].Row].Name() != "c" ||
		len(out.Starts) != 1 || out.Series[out.Starts[0].Row].Name() != "c" {
		t.Errorf("got histograms %v, exemplars %v, starts %v", out.Histograms, out.Exemplars, out.Starts)
	}
	if out.Source != b.Source || out.Way == b.Way {
		t.Errorf("got source %d way %d of %d, %d", out.Source, out.Way, b.Source, b.Way) // the way is the sink's
	}
}

// In each mode that splits, a repeated column gives the same output columns,
// and an unchanged batch is sent as the same batch.
func TestSplitKeepsColumns(t *testing.T) {
	for _, mode := range []string{`concurrency = "parallel"`, "concurrency = \"partition\"\nby = [\"i\"]"} {
		n := newHarness(t)
		n.save(`return weir.transform { metrics = function() end }`, "script {\n"+mode+"\n}")
		b := large(t, 1, 5000)
		n.send(b)
		if got := n.sink.Last(); !batch.SameColumn(got.Series, b.Series) || &got.V[0] != &b.V[0] {
			t.Errorf("%s: an untouched batch has other columns", mode)
		}
		n.save(`return weir.transform { metrics = function(batch) batch:set_label("k", "v") batch:drop_where("labels.i == '7'") end }`, "script {\n"+mode+"\n}")
		var column []*batch.Series
		for i := range 5 {
			n.send(at(b, int64(i)))
			got := n.sink.Last().Series
			if i > 2 && !batch.SameColumn(got, column) {
				t.Errorf("%s: batch %d has another column", mode, i)
			}
			column = got
		}
		if got := len(column); got != 5001 {
			t.Errorf("%s: %d rows", mode, got)
		}
	}
}

// A part that fails costs that part, and its source is unhealthy.
func TestParallelPartFails(t *testing.T) {
	n := newHarness(t)
	n.save(`return weir.transform { metrics = function(batch)
		if batch[1].labels.i == "0" then error("boom") end
		batch:set_label("k", "v")
	end }`, "script {\nconcurrency = \"parallel\"\non_error = \"drop\"\n}")
	n.send(large(t, 1, 4998))
	if got := n.sink.Last().Len(); got != 4999 {
		t.Errorf("%d rows, want all but one", got)
	}
	if got := n.Health().Message; !strings.Contains(got, "boom") {
		t.Errorf("got %q", got)
	}
	if got := n.Stats.Dropped()["script_error"]; got != 1 {
		t.Errorf("%d dropped, want 1", got)
	}
}

// No sample is lost, doubled or out of order while the script is saved, in any
// mode.
func TestReloadsInEachMode(t *testing.T) {
	for _, mode := range []string{"ordered", "parallel", "single", "partition\"\nby = [\"i\"]\n//"} {
		t.Run(strings.Fields(strings.ReplaceAll(mode, `"`, " "))[0], func(t *testing.T) {
			n := newHarness(t)
			script := func(i int) string {
				return fmt.Sprintf(`return weir.transform {
					setup = function(ctx) ctx.sleep(0) end,
					teardown = function() end,
					every = { ["1h"] = function() end },
					metrics = function(batch) batch:set_label("v", "%d") batch:each(function(m) m.value = m.value + 1 end) end,
				}`, i)
			}
			block := "script {\nconcurrency = \"" + mode + "\"\n}"
			n.save(script(0), block)
			stop := make(chan struct{})
			var wg sync.WaitGroup
			sent := make([]int, 4)
			for s := range sent {
				b := text(t, uint64(s+1), fmt.Sprintf("a{i=\"1\",s=\"%d\"} 1\nb{i=\"2\",s=\"%d\"} 2\n", s, s))
				wg.Go(func() {
					for i := 1; ; i++ {
						select {
						case <-stop:
							return
						default:
						}
						if err := n.gate.ConsumeMetrics(context.Background(), at(b, int64(i)*1000)); err != nil {
							t.Error(err)
							return
						}
						sent[s] = i
						runtime.Gosched()
					}
				})
			}
			for i := range 40 {
				n.save(script(i%3), block)
				n.Clock.Advance(2 * time.Minute)
			}
			close(stop)
			wg.Wait()
			rows := map[string][]int64{}
			for _, b := range n.sink.Batches() {
				for i, s := range b.Series {
					if !batch.IsStale(b.V[i]) {
						rows[s.Name()+s.Label("s")] = append(rows[s.Name()+s.Label("s")], b.T[i])
						if want := map[string]float64{"a": 2, "b": 3}[s.Name()]; b.V[i] != want {
							t.Fatalf("%s: got %v, want %v", s, b.V[i], want)
						}
					}
				}
			}
			for s := range sent {
				for _, name := range []string{"a", "b"} {
					got := rows[fmt.Sprintf("%s%d", name, s)]
					if len(got) != sent[s] {
						t.Errorf("%s of source %d: %d samples, want %d", name, s, len(got), sent[s])
						continue
					}
					for i, ts := range got {
						if ts != int64(i+1)*1000 {
							t.Errorf("%s of source %d: sample %d has time %d", name, s, i, ts)
							break
						}
					}
				}
			}
		})
	}
}

// In single, calls of two versions do not overlap, and the second waits for the
// first.
func TestSingleWaitsForTheRunningCall(t *testing.T) {
	timed(t, func(t *testing.T, n *harness) {
		const script = `return weir.transform { metrics = function(batch, ctx)
			ctx.log.info("in %[1]s") ctx.sleep(5) ctx.log.info("out %[1]s")
		end }`
		const block = `script { concurrency = "single" }`
		send := func(source uint64) {
			go func() {
				if err := n.gate.ConsumeMetrics(context.Background(), text(t, source, "a 1\n")); err != nil {
					t.Error(err)
				}
			}()
			pass(time.Second)
		}
		n.save(fmt.Sprintf(script, "old"), block)
		send(1)
		send(2)
		n.save(fmt.Sprintf(script, "new"), block)
		send(3)
		pass(time.Minute)
		var got []string
		for line := range strings.Lines(n.Logs()) {
			if _, msg, ok := strings.Cut(line, `msg="`); ok {
				msg, _, _ = strings.Cut(msg, `"`)
				got = append(got, msg)
			}
		}
		same(t, strings.Join(got, ", "), "in old, out old, in old, out old, in new, out new")
	})
}

// A full pool makes callers wait within their context.
func TestFullPool(t *testing.T) {
	timed(t, func(t *testing.T, n *harness) {
		n.save(`return weir.transform { metrics = function(batch, ctx) ctx.sleep(5) end }`, `script { concurrency = "single" }`)
		errs := make(chan error, 3)
		send := func(ctx context.Context, source uint64) {
			b := text(t, source, "a 1\n")
			go func() { errs <- n.gate.ConsumeMetrics(ctx, b) }()
			pass(time.Millisecond)
		}
		send(context.Background(), 1)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		send(ctx, 2)
		send(context.Background(), 3)
		start := time.Now()
		if err := <-errs; !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "cannot get a free VM") {
			t.Errorf("got %v, want a caller that waits no longer", err)
		}
		for range 2 {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
		if took := time.Since(start).Round(time.Second); took != 10*time.Second {
			t.Errorf("two calls took %s, want 10s", took)
		}
		if got := len(n.sink.Batches()); got != 2 {
			t.Errorf("%d batches, want 2", got)
		}
	})
}

// While VMs wait for the outside there are more of them, up to a limit, and
// afterwards fewer again.
func TestPoolGrowsWhileVMsWait(t *testing.T) {
	timed(t, func(t *testing.T, n *harness) {
		n.save(`return weir.transform { metrics = function(batch, ctx) assert(ctx.sleep(5) == nil) end }`, "script {\nlimits {\n time = \"10ms\"\n}\n}")
		burst := func(calls int, want time.Duration) {
			t.Helper()
			start := time.Now()
			var wg sync.WaitGroup
			for s := range calls {
				b := text(t, uint64(s+1), "a 1\n")
				wg.Go(func() {
					if err := n.gate.ConsumeMetrics(context.Background(), b); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			if took := time.Since(start); took != want {
				t.Errorf("%d calls took %s, want %s", calls, took, want)
			}
		}
		most := 2*runtime.GOMAXPROCS(0) + 64
		burst(most, 5*time.Second)
		if got := gathered(t, n.Registry, "weir_script_vms"); got != float64(most) {
			t.Errorf("%v VMs, want %d", got, most)
		}
		burst(most+1, 10*time.Second)
		pass(3 * time.Minute) // sweeps
		burst(1, 5*time.Second)
		if got, want := gathered(t, n.Registry, "weir_script_vms"), float64(2*runtime.GOMAXPROCS(0)); got > want+1 {
			t.Errorf("%v VMs after a while, want %v", got, want)
		}
		if got := n.Health().Message; got != "" {
			t.Errorf("got %s", got)
		}
	})
}

// A wait that is longer than script.limits.wait is an error in the script, and
// so is one whose caller has given up.
func TestWaitLimit(t *testing.T) {
	timed(t, func(t *testing.T, n *harness) {
		n.save(`return weir.transform { metrics = function(batch, ctx)
			local ok, err = ctx.sleep(60)
			batch:set_label("err", err)
		end }`, "script {\nlimits {\n wait = \"2s\"\n}\n}")
		start := time.Now()
		same(t, n.send(text(t, 1, "a 1\n")), "a{err=\"limit exceeded: it waited longer than 2s, the limit is script.limits.wait\"} 1\n")
		if took := time.Since(start); took != 2*time.Second {
			t.Errorf("it took %s", took)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		start = time.Now()
		_ = n.gate.ConsumeMetrics(ctx, text(t, 2, "a 1\n"))
		if took := time.Since(start); took != time.Second {
			t.Errorf("it took %s", took)
		}
		// Without a limit on the number of waits, the time stands still in each.
		n.save(`return weir.transform { metrics = function(batch, ctx) for _ = 1, 20 do ctx.sleep(1) end end }`, "script {\nlimits {\n wait = \"2s\"\n time = \"10ms\"\n}\n}")
		same(t, n.send(text(t, 3, "a 1\n")), "a 1\n")
		if got := n.Health().Message; got != "" {
			t.Errorf("got %s", got)
		}
	})
}

func TestHealth(t *testing.T) {
	n := newHarness(t)
	n.save(`return weir.transform { metrics = function(batch, ctx)
		local state, message = batch[1].labels.state, batch[1].labels.message
		if state == "error" then error(message) end
		ctx.health(state, message)
	end }`, `script { concurrency = "single" }`)
	f := func(state, message, want string) {
		t.Helper()
		n.send(text(t, 1, fmt.Sprintf("a{state=%q,message=%q} 1\n", state, message)))
		got := n.Health()
		line, _, _ := strings.Cut(got.Message, "\n")
		if s := got.State.String() + ": " + line; s != want {
			t.Errorf("%s %s: got %s, want %s", state, message, s, want)
		}
	}
	f("healthy", "", "healthy: ")
	f("degraded", "half of it", "healthy: degraded: half of it")
	f("unhealthy", "all of it", "unhealthy: all of it")
	f("error", "boom", "unhealthy: scripts/a/b.lua:4: in metrics: boom")
	f("healthy", "again", "healthy: again")
	f("wrong", "x", `unhealthy: scripts/a/b.lua:5: in metrics: cannot call health: argument state must be "healthy", "degraded" or "unhealthy"`)
}

// Reloads leave nothing behind that runs.
func TestManyReloadsOfTimers(t *testing.T) {
	timed(t, func(t *testing.T, n *harness) {
		save := func(i int) {
			n.save(fmt.Sprintf(`return weir.transform {
				setup = function() if %d %% 7 == 0 then error("no") end end,
				teardown = function() end,
				every = { ["1s"] = function(ctx) ctx.sleep(0.5) end, ["2s"] = function(ctx) ctx.emit { name = "x", value = 1 } end },
				metrics = function() end,
			}`, i), fmt.Sprintf(`script { concurrency = "%s" }`, []string{"ordered", "single"}[i%2]))
			pass(1300 * time.Millisecond)
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
		if after := runtime.NumGoroutine(); after > before+10 {
			t.Errorf("%d goroutines before, %d after", before, after)
		}
	})
}
