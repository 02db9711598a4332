package node_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/scripting/internal/registrytest"
)

// candidate is a saved version during its trial.
type candidate struct {
	n         *harness
	reg       component.Registration
	attrs     string
	steps     []string
	cancel    context.CancelFunc
	done      chan struct{}
	rejection *component.Rejection // once done is closed
}

// try saves a version and begins its trial.
func (n *harness) try(src, attrs string) *candidate {
	n.t.Helper()
	n.cat.Refresh([]string{n.f.Write("a/b.lua", "local weir = require \"weir\"\n"+src)})
	return n.tryAgain(registrytest.Lookup(n.t, n.cat, "a.b"), attrs)
}

// tryAgain begins the trial of a version, as the engine does when it is saved and when
// its arguments change.
func (n *harness) tryAgain(r component.Registration, attrs string) *candidate {
	n.t.Helper()
	if r.Err != nil {
		n.t.Fatal(r.Err)
	}
	args := r.NewArgs()
	if err := registrytest.Decode(args, attrs, n.sink); err != nil {
		n.t.Fatal(err)
	}
	c := &candidate{n: n, reg: r, attrs: attrs, done: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	c.cancel = cancel
	running := n.c
	go func() {
		defer close(c.done)
		c.rejection = r.Trial(ctx, component.Trial{Node: n.ID, Args: args, Running: running, Begin: func(step string) { c.steps = append(c.steps, step) }})
	}()
	n.t.Cleanup(func() {
		cancel()
		<-c.done
	})
	if n.real {
		synctest.Wait()
	}
	return c
}

func (c *candidate) running() bool {
	select {
	case <-c.done:
		return false
	default:
		return true
	}
}

// wantPromoted waits for the end of the trial and swaps as the engine does.
func (c *candidate) wantPromoted() {
	c.n.t.Helper()
	<-c.done
	if c.rejection != nil {
		c.n.t.Fatalf("got a rejection in step %s: %v", c.rejection.Step, c.rejection.Err)
	}
	c.n.swap(c.reg, c.attrs)
}

// wantRefused waits for the end of the trial, which says want.
func (c *candidate) wantRefused(want string) {
	c.n.t.Helper()
	<-c.done
	if c.rejection == nil || c.rejection.Step != component.StepCanary {
		c.n.t.Fatalf("got %+v, want a rejection by the canary", c.rejection)
	}
	if got := c.rejection.Err.Error(); !strings.Contains(got, want) {
		c.n.t.Errorf("got %q, want %q in it", got, want)
	}
}

func (c *candidate) wantCanary() {
	c.n.t.Helper()
	if !c.running() {
		c.n.t.Fatalf("the trial has ended: %+v", c.rejection)
	}
	if len(c.steps) != 1 || c.steps[0] != component.StepCanary {
		c.n.t.Errorf("got steps %q", c.steps)
	}
}

// canaryAttrs are the attributes of a block with a canary.
func canaryAttrs(canary, script string) string {
	return fmt.Sprintf("script {\n%s\ncanary {\n%s\n}\n}", script, canary)
}

// many is a batch of n series with a value each.
func many(t testing.TB, source uint64, n int) *batch.Metrics {
	t.Helper()
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "m{i=\"%d\",k=\"%d\"} %d\n", i, i%10, i)
	}
	return text(t, source, b.String())
}

// versions is the version that has processed each row of a batch.
func versionsOf(b *batch.Metrics) map[string]string {
	out := map[string]string{}
	for i, s := range b.Series {
		if !batch.IsStale(b.V[i]) {
			out[s.Label("i")] = s.Label("v")
		}
	}
	return out
}

const each = `return weir.transform { metrics = function(batch) batch:each(function(r) r.labels.v = "%s" end) end }`

// A canary gets its share of the series, always the same ones, whatever the mode is
// and however the hooks are made; every record is processed once, by one version.
func TestCanaryShare(t *testing.T) {
	for _, mode := range []string{`concurrency = "ordered"`, `concurrency = "parallel"`, `concurrency = "single"`, "concurrency = \"partition\"\nby = [\"i\"]"} {
		for name, script := range map[string]string{"series": label, "metrics": each} {
			for _, share := range []float64{0.05, 0.5, 0.9} {
				timed(t, func(t *testing.T, n *harness) {
					attrs := canaryAttrs(fmt.Sprintf("share = %v", share), mode)
					n.save(fmt.Sprintf(script, "1"), attrs)
					const rows = 10_000
					b := many(t, 1, rows)
					n.send(b)
					c := n.try(fmt.Sprintf(script, "2"), attrs)
					c.wantCanary()
					var first map[string]string
					for i := range 3 {
						n.sink.Forget()
						n.send(at(b, int64(i+2)*1000))
						if len(n.sink.Batches()) != 1 {
							t.Fatalf("%d batches left, want 1", len(n.sink.Batches()))
						}
						out := n.sink.Last()
						got := versionsOf(out)
						if len(got) != rows {
							t.Fatalf("%s: %d series left, want %d", mode, len(got), rows)
						}
						for i, s := range out.Series {
							if !batch.IsStale(out.V[i]) && fmt.Sprint(out.V[i]) != s.Label("i") {
								t.Fatalf("%s has value %v", s, out.V[i])
							}
						}
						second := 0
						for series, v := range got {
							if v == "2" {
								second++
							}
							if first != nil && first[series] != v {
								t.Fatalf("series %s met version %s, and version %s before", series, v, first[series])
							}
						}
						if want := share * rows; float64(second) < want-300 || float64(second) > want+300 {
							t.Errorf("%s, %s: %d of %d series met the new version, want about %v", name, mode, second, rows, want)
						}
						first = got
					}
				})
			}
		}
	}
}

// In mode partition, records of one key meet one version.
func TestCanaryPartition(t *testing.T) {
	timed(t, func(t *testing.T, n *harness) {
		attrs := canaryAttrs("share = 0.5", "concurrency = \"partition\"\nby = [\"k\"]")
		n.save(fmt.Sprintf(each, "1"), attrs)
		n.try(fmt.Sprintf(each, "2"), attrs).wantCanary()
		n.send(many(t, 1, 1000))
		byKey := map[string]string{}
		for _, s := range n.sink.Last().Series {
			k, v := s.Label("k"), s.Label("v")
			if before, ok := byKey[k]; ok && before != v {
				t.Fatalf("key %s met both versions", k)
			}
			byKey[k] = v
		}
	})
}

// A log stream meets one version, and its lines stay in order.
func TestCanaryOfLogs(t *testing.T) {
	const script = `return weir.transform { logs = function(batch) for r in batch:records() do r.metadata.v = "%s" end end }`
	for _, mode := range []string{`concurrency = "ordered"`, `concurrency = "parallel"`, `concurrency = "single"`, "concurrency = \"partition\"\nby = [\"app\"]"} {
		timed(t, func(t *testing.T, n *harness) {
			attrs := canaryAttrs("share = 0.5", mode)
			n.save(fmt.Sprintf(script, "1"), attrs)
			n.try(fmt.Sprintf(script, "2"), attrs).wantCanary()
			const rows, streams = 10_000, 200
			in := numbered(t, 1, rows, streams)
			if err := n.gate.ConsumeLogs(t.Context(), in); err != nil {
				t.Fatal(err)
			}
			out := n.sink.LastLogs()
			if out.Len() != rows || len(n.sink.Logs()) != 1 {
				t.Fatalf("%d lines left in %d batches, want %d in one", out.Len(), len(n.sink.Logs()), rows)
			}
			next, by, second := map[string]int{}, map[string]string{}, 0
			for i, s := range out.Stream {
				app, v := s.Label("app"), out.Meta[i][0].Value
				if want := fmt.Sprint(next[app]); out.Line[i] != want {
					t.Fatalf("stream %s: line %s came instead of %s", app, out.Line[i], want)
				}
				next[app]++
				if by[app] == "" && v == "2" {
					second++
				}
				if by[app] != "" && by[app] != v {
					t.Fatalf("stream %s met both versions", app)
				}
				by[app] = v
			}
			if second < 60 || second > 140 {
				t.Errorf("%d of %d streams met the new version", second, streams)
			}
		})
	}
}

const half = "share = 0.5\nfor = \"1m\""

// A version whose guards hold takes over after its time, and series that only one
// version makes end when the canary begins, and when the new version takes over.
func TestCanaryPromoted(t *testing.T) {
	timed(t, func(t *testing.T, n *harness) {
		attrs := canaryAttrs(half, "")
		n.save(fmt.Sprintf(label, "1"), attrs)
		b := many(t, 1, 100)
		n.send(b)
		c := n.try(fmt.Sprintf(label, "2"), attrs)
		got := n.send(at(b, 2000))
		second := strings.Count(got, `v="2"`)
		if stale := strings.Count(got, " stale\n"); second == 0 || second == 100 || stale != second {
			t.Fatalf("%d series met the new version and %d ended", second, stale)
		}
		if got := n.send(at(b, 3000)); strings.Contains(got, "stale") {
			t.Errorf("series ended again:\n%s", got)
		}
		pass(59 * time.Second)
		c.wantCanary()
		pass(2 * time.Second)
		<-c.done
		// Until the new version takes over, the canary goes on.
		if got := n.send(at(b, 4000)); strings.Count(got, `v="2"`) != second || strings.Contains(got, "stale") {
			t.Errorf("the canary has changed:\n%s", got)
		}
		c.wantPromoted()
		got = n.send(at(b, 5000))
		if stale := strings.Count(got, " stale\n"); strings.Count(got, `v="2"`) != 100 || stale != 100-second {
			t.Errorf("the new version has not taken over, or %d series ended, want %d:\n%s", stale, 100-second, got)
		}
		if !strings.Contains(n.Logs(), "a canary begins") || !strings.Contains(n.Logs(), "the canary is promoted") {
			t.Errorf("logged %s", n.Logs())
		}
	})
}

// A user ends a canary; the rest of the API says what goes on.
func TestCanaryByHand(t *testing.T) {
	timed(t, func(t *testing.T, n *harness) {
		attrs := canaryAttrs(half, "")
		n.save(fmt.Sprintf(label, "1"), attrs)
		b := many(t, 1, 100)
		n.send(b)
		for _, decision := range []string{"promote", "rollback"} {
			if got := control(t, n.c, "POST", "/canary/"+decision, 409); got != "there is no canary of a.b.default\n" {
				t.Errorf("got %q", got)
			}
		}
		control(t, n.c, "POST", "/canary/nonsense", 404)
		c := n.try(fmt.Sprintf(label, "2"), attrs)
		n.send(at(b, 2000))
		text, err := json.Marshal(n.c.(component.Debugger).DebugInfo())
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{`"canary":{"running":"`, `"version":"` + c.reg.Version, `"share":0.5,"by":"series"`, `"max_drop_increase":0.5`, `"failed_calls":0`} {
			if !strings.Contains(string(text), want) {
				t.Errorf("got %s, want %s in it", text, want)
			}
		}
		var debug struct{ Reports []struct{ Name, Text string } }
		if err := json.Unmarshal(text, &debug); err != nil || len(debug.Reports) != 1 {
			t.Fatalf("got %+v, %v", debug, err)
		}
		report := strings.NewReplacer(component.ShortVersion(c.reg.Version), "NEW").Replace(debug.Reports[0].Text)
		report = regexp.MustCompile(` +`).ReplaceAllString(regexp.MustCompile(`running [0-9a-f]{7}|[0-9]+`).ReplaceAllString(report, "…"), " ")
		want := `version NEW processes … % of the series since …-…-… …:…:… UTC and takes over at …-…-… …:…:… UTC unless a guard fails
 … canary NEW
 calls … …
 failed calls … …
 records in … …
 records sent … …
 records dropped … …
 ns per record … …
 output series … …`
		if diff := cmp.Diff(want, report); diff != "" {
			t.Errorf("the report (-want +got):\n%s", diff)
		}
		if got := gathered(t, n.Registry, "weir_script_version_series"); got != 100 {
			t.Errorf("the versions make %v series, want 100", got)
		}
		if got := gathered(t, n.Registry, "weir_script_version_calls_total"); got != 3 {
			t.Errorf("got %v calls, want 2 of the running version and 1 of the canary", got)
		}
		short := component.ShortVersion(c.reg.Version)
		if got := control(t, n.c, "POST", "/canary/rollback", 200); got != "rolled back version "+short+" of a.b.default\n" {
			t.Errorf("got %q", got)
		}
		c.wantRefused("it was rolled back with 'weir rollback'")
		if got := n.send(at(b, 3000)); strings.Count(got, `v="1"`) != 100 || !strings.Contains(got, "stale") {
			t.Errorf("the running version has not got its share back:\n%s", got)
		}
		c = n.try(fmt.Sprintf(label, "3"), attrs)
		if got := control(t, n.c, "POST", "/canary/promote", 200); !strings.HasPrefix(got, "promoted version ") {
			t.Errorf("got %q", got)
		}
		control(t, n.c, "POST", "/canary/rollback", 409)
		c.wantPromoted()
		if got := n.send(at(b, 4000)); strings.Count(got, `v="3"`) != 100 {
			t.Errorf("the promoted version has not taken over:\n%s", got)
		}
	})
}

// A version that fails, or drops everything, is rolled back at once, and on_error
// decides about its share: nothing is lost beyond that.
func TestCanaryRolledBack(t *testing.T) {
	for _, v := range []struct{ name, on, script, want string }{
		{"error", "pass", `return weir.transform { metrics = function(batch) error("broken") end }`, "1 of 1 calls failed (100 %; the running version: 0 %), the limit is script.canary.max_errors = 0.01: scripts/a/b.lua:2: in metrics: broken"},
		{"error", "drop", `return weir.transform { metrics = function(batch) error("broken") end }`, "1 of 1 calls failed"},
		{"error", "quarantine", `return weir.transform { metrics = function(batch) error("broken") end }`, "1 of 1 calls failed"},
		{"error", "hold", `return weir.transform { metrics = function(batch) error("broken") end }`, "1 of 1 calls failed"},
		{"labels", "hold", `return weir.transform { series = function() error("broken") end }`, "1 of 1 calls failed"},
		{"drop", "pass", `return weir.transform { metrics = function(batch) batch:each(function(r) r:drop() end) end }`, "records (100 %; the running version: 0 %), the limit is script.canary.max_drop_increase = 0.5"},
	} {
		t.Run(v.name+" "+v.on, func(t *testing.T) {
			timed(t, func(t *testing.T, n *harness) {
				attrs := canaryAttrs(half, fmt.Sprintf("on_error = %q", v.on))
				n.save(fmt.Sprintf(each, "1"), attrs)
				b := many(t, 1, 1000)
				n.send(b)
				c := n.try(v.script, attrs)
				began := time.Now()
				got := n.send(at(b, 2000))
				c.wantRefused(v.want)
				if waited := time.Since(began); waited > 0 {
					t.Errorf("the batch waited %s for the end of the canary", waited)
				}
				first := strings.Count(got, `v="1"`) - strings.Count(got, "stale")
				rest := 1000 - first
				switch {
				case v.on == "hold":
					if first != 1000 {
						t.Errorf("%d records met the running version, want all: they were held", first)
					}
				case v.on == "pass" && v.name == "error":
					if all := strings.Count(got, "m{"); all-strings.Count(got, "stale") != 1000 {
						t.Errorf("%d records passed", all)
					}
				default:
					if dropped := n.Stats.Dropped(); v.on == "drop" && dropped["script_error"] != uint64(rest) || v.name == "drop" && dropped["script"] != uint64(rest) {
						t.Errorf("got %v dropped, want %d", dropped, rest)
					}
				}
				if v.on == "quarantine" {
					if got := gathered(t, n.Registry, "weir_script_quarantined_samples_total"); got != float64(rest) {
						t.Errorf("%v records are in quarantine, want %d", got, rest)
					}
				}
				if got := n.send(at(b, 3000)); strings.Count(got, `v="1"`) != 1000 {
					t.Errorf("the running version has not got its share back:\n%s", got)
				}
				if n.Health().State != component.Healthy {
					t.Errorf("the node is %v: %s", n.Health().State, n.Health().Message)
				}
			})
		})
	}
}

// A version that never returns is stopped by its limit and rolled back.
func TestCanaryThatLoops(t *testing.T) {
	n := newHarness(t)
	attrs := canaryAttrs(half, `limits { time = "10ms" }`)
	n.save(fmt.Sprintf(each, "1"), attrs)
	b := many(t, 1, 100)
	n.send(b)
	c := n.try(`return weir.transform { metrics = function(batch) while true do end end }`, attrs)
	until(t, func() bool { return strings.Contains(n.Logs(), "a canary begins") })
	n.send(at(b, 2000))
	c.wantRefused("calls failed")
	if got := n.send(at(b, 3000)); strings.Count(got, `v="1"`) != 100 {
		t.Errorf("the running version has not got its share back:\n%s", got)
	}
}

// A version that fails no more than the one that runs may take over.
func TestCanaryFailsAsBefore(t *testing.T) {
	timed(t, func(t *testing.T, n *harness) {
		attrs := canaryAttrs(half, "")
		const script = `return weir.transform { metrics = function(batch) batch:each(function(r) if r.value %% 10 == 0 then error("ten") end r.labels.v = "%s" end) end }`
		n.save(fmt.Sprintf(script, "1"), attrs)
		b := many(t, 1, 1000)
		n.send(b)
		c := n.try(fmt.Sprintf(script, "2"), attrs)
		n.send(at(b, 2000))
		pass(time.Hour)
		c.wantPromoted()
	})
}

// Without something to compare with, a version takes over at once.
func TestNoCanary(t *testing.T) {
	f := func(name string, prepare func(t *testing.T, n *harness), attrs string) {
		t.Run(name, func(t *testing.T) {
			timed(t, func(t *testing.T, n *harness) {
				prepare(t, n)
				c := n.try(fmt.Sprintf(label, "2"), attrs)
				if c.running() {
					t.Fatal("there is a canary")
				}
				c.wantPromoted()
				if len(c.steps) != 0 {
					t.Errorf("got steps %q", c.steps)
				}
			})
		})
	}
	attrs := canaryAttrs(half, `on_error = "hold"`)
	f("no block", func(_ *testing.T, n *harness) { n.save(fmt.Sprintf(label, "1"), "") }, "")
	f("nothing runs", func(*testing.T, *harness) {}, attrs)
	f("same version", func(_ *testing.T, n *harness) { n.save(fmt.Sprintf(label, "2"), "") }, attrs)
	f("setup fails", func(_ *testing.T, n *harness) {
		n.save(`return weir.transform { setup = function() error("no") end, metrics = function() end }`, attrs)
	}, attrs)
	f("batches are held", func(t *testing.T, n *harness) {
		n.save(`return weir.transform { metrics = function() error("no") end }`, attrs)
		sent := make(chan error, 1)
		go func() { sent <- n.gate.ConsumeMetrics(context.Background(), many(t, 1, 10)) }()
		synctest.Wait()
		t.Cleanup(func() {
			if err := <-sent; err != nil {
				t.Error(err)
			}
		})
	}, attrs)
}

// Versions whose state or outputs differ cannot have a canary, and it says what to do.
func TestCanaryThatCannotBegin(t *testing.T) {
	f := func(before, after, attrs, want string) {
		t.Helper()
		timed(t, func(t *testing.T, n *harness) {
			n.save(before, canaryAttrs(half, "")+attrs)
			c := n.try(after, canaryAttrs(half, "")+attrs)
			c.wantRefused(want)
			if !strings.HasSuffix(c.rejection.Err.Error(), "to let it take over without a canary, remove the block canary from the block script") {
				t.Errorf("got %v", c.rejection.Err)
			}
		})
	}
	const same = "the new version declares its state in another way than the running version"
	f(counting("counter{}", addOne, "1"), counting("counter{ max = 7 }", addOne, "2"), "", same)
	f(counting("counter{}", addOne, "1"), fmt.Sprintf(label, "2"), "", same)
	f(counting("counter{}", addOne, "1"), strings.Replace(counting("counter{}", addOne, "2"), "state =", "version = 2, state =", 1), "", same)
}

// Both versions use one state, and a call of one does not overlap a call of the other
// in mode single.
func TestCanarySharesState(t *testing.T) {
	timed(t, func(t *testing.T, n *harness) {
		const script = `return weir.transform {
			state = { n = weir.state.counter{}, busy = weir.state.map{} },
			metrics = function(batch, ctx)
				if ctx.state.busy:get("x") then error("overlap") end
				ctx.state.busy:set("x", true)
				batch:each(function(r) r.value = ctx.state.n:add("all", 1) end)
				ctx.sleep(0.01)
				ctx.state.busy:delete("x")
			end,
		} -- %s`
		attrs := canaryAttrs("share = 0.5\nfor = \"1h\"", `concurrency = "single"`)
		n.save(fmt.Sprintf(script, "1"), attrs)
		c := n.try(fmt.Sprintf(script, "2"), attrs)
		const sources, batches, rows = 4, 5, 100
		var wg sync.WaitGroup
		for s := range sources {
			b := many(t, uint64(s+1), rows)
			wg.Go(func() {
				for i := range batches {
					if err := n.gate.ConsumeMetrics(context.Background(), at(b, int64(i+2)*1000)); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		c.wantCanary()
		if got, want := control(t, n.c, "GET", "/state/n?key=all", 200), fmt.Sprintf("%d\n", sources*batches*rows); got != want {
			t.Errorf("counted %s, want %s", got, want)
		}
		c.cancel()
		<-c.done
		n.send(at(many(t, 1, rows), 9000))
	})
}

// setup of a canary runs before it gets data, its timers do not, and teardown runs
// when it is rolled back. A setup that fails refuses the version.
func TestCanaryLifecycle(t *testing.T) {
	timed(t, func(t *testing.T, n *harness) {
		const script = `
			local ready = false
			return weir.transform {
				setup = function(ctx) ctx.log.info("setup %[1]s") ready = true end,
				metrics = function(batch) batch:each(function(r) r.labels.v = "%[1]s" end) end,
				every = { ["10s"] = function(ctx) ctx.log.info("tick %[1]s") end },
				teardown = function(ctx) ctx.log.info("teardown %[1]s") end,
			}`
		attrs := canaryAttrs("share = 0.5\nfor = \"1h\"", "")
		n.save(fmt.Sprintf(script, "1"), attrs)
		c := n.try(fmt.Sprintf(script, "2"), attrs)
		c.wantCanary()
		pass(time.Minute)
		logs := n.Logs()
		for text, want := range map[string]bool{"setup 2": true, "tick 1": true, "tick 2": false, "teardown 1": false, "teardown 2": false} {
			if got := strings.Contains(logs, text); got != want {
				t.Errorf("%q in the log: %t, want %t", text, got, want)
			}
		}
		c.cancel() // another version is wanted
		c.wantRefused("context canceled")
		if logs := n.Logs(); !strings.Contains(logs, "teardown 2") || strings.Contains(logs, "teardown 1") {
			t.Errorf("logged %s", logs)
		}
		n.try(strings.Replace(fmt.Sprintf(script, "3"), "ready = true", `error("no")`, 1), attrs).wantRefused("in setup: no")
		n.send(many(t, 1, 10))
		if got := versionsOf(n.sink.Last()); got["1"] != "1" {
			t.Errorf("got %v", got)
		}
	})
}

// A change of arguments during a canary moves it to the next instance of the running
// version.
func TestCanaryMoves(t *testing.T) {
	timed(t, func(t *testing.T, n *harness) {
		attrs := canaryAttrs("share = 0.5\nfor = \"1h\"", "")
		n.save(fmt.Sprintf(label, "1"), attrs)
		first := registrytest.Lookup(t, n.cat, "a.b")
		b := many(t, 1, 100)
		n.send(b)
		c := n.try(fmt.Sprintf(label, "2"), attrs)
		n.send(at(b, 2000))
		before := versionsOf(n.sink.Last())

		// The engine ends the trial, begins another and updates the running version.
		other := canaryAttrs("share = 0.5\nfor = \"2h\"", "")
		c.cancel()
		moved := n.tryAgain(c.reg, other)
		n.swap(first, other)
		synctest.Wait()
		moved.wantCanary()
		n.send(at(b, 3000))
		after := versionsOf(n.sink.Last())
		for series, v := range before {
			if after[series] != v {
				t.Errorf("series %s met version %s, then version %s", series, v, after[series])
			}
		}
		pass(3 * time.Hour)
		moved.wantPromoted()
		if got := n.send(at(b, 4000)); strings.Count(got, `v="2"`) != 100 {
			t.Errorf("the new version has not taken over:\n%s", got)
		}
	})
}

// Another version that is saved ends a canary that is promoted and has not taken over.
func TestCanaryReplacedByAnother(t *testing.T) {
	timed(t, func(t *testing.T, n *harness) {
		attrs := canaryAttrs(half, "")
		n.save(fmt.Sprintf(label, "1"), attrs)
		first := registrytest.Lookup(t, n.cat, "a.b")
		b := many(t, 1, 100)
		c := n.try(fmt.Sprintf(label, "2"), attrs)
		pass(time.Minute)
		<-c.done
		if n.tryAgain(first, attrs).running() {
			t.Error("the running version has a canary")
		}
		if got := n.send(b); strings.Count(got, `v="1"`) != 100 {
			t.Errorf("the canary goes on:\n%s", got)
		}
	})
}

// A canary that is promoted ends if the new version does not take over, for example
// because it cannot be built.
func TestCanaryPromotedInVain(t *testing.T) {
	timed(t, func(t *testing.T, n *harness) {
		attrs := canaryAttrs(half, "")
		n.save(fmt.Sprintf(label, "1"), attrs)
		b := many(t, 1, 100)
		c := n.try(fmt.Sprintf(label, "2"), attrs)
		pass(time.Minute)
		<-c.done
		if got := n.send(b); !strings.Contains(got, `v="2"`) {
			t.Error("the canary has ended at once")
		}
		pass(3 * time.Minute)
		if got := n.send(at(b, 2000)); strings.Count(got, `v="1"`) < 100 {
			t.Errorf("the canary goes on:\n%s", got)
		}
	})
}

// A batch that is refused, because a receiver does, is not acknowledged.
func TestCanaryRefusedBelow(t *testing.T) {
	timed(t, func(t *testing.T, n *harness) {
		attrs := canaryAttrs(half, "")
		n.save(fmt.Sprintf(label, "1"), attrs)
		n.try(fmt.Sprintf(label, "2"), attrs).wantCanary()
		refused := errors.New("refused")
		n.sink.Refuse(refused)
		if err := n.gate.ConsumeMetrics(t.Context(), many(t, 1, 100)); !errors.Is(err, refused) {
			t.Errorf("got %v", err)
		}
	})
}
