package node_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/scripting/internal/registrytest"
	"github.com/weir-run/weir/scripting/state"
)

// counts counts the records of each source and makes the count their value.
const counts = `return weir.transform {
	%s
	state = { n = weir.state.%s },
	metrics = function(batch, ctx)
		batch:each(function(r) r.value = ctx.state.n:%s end)
	end,
} -- %s`

func counting(kind, op, mark string) string { return fmt.Sprintf(counts, "", kind, op, mark) }

const (
	addOne    = `add(r.labels.s, 1)`
	updateOne = `update(r.labels.s, function(old) return (old or 0) + 1 end)`
)

// TestStateSurvivesReload saves while batches come: every one is counted, by
// add and by update.
func TestStateSurvivesReload(t *testing.T) {
	reloads := 100
	if testing.Short() || raceDetector {
		reloads = 30
	}
	f := func(name, kind, op string) {
		t.Run(name, func(t *testing.T) {
			n := newHarness(t)
			n.save(counting(kind, op, "first"), "")
			stop := make(chan struct{})
			var wg sync.WaitGroup
			sent := make([]int, 4)
			for s := range sent {
				// Two sources share a key.
				b := text(t, uint64(s+1), fmt.Sprintf("a{s=\"%d\"} 1\nb{s=\"%d\"} 2\n", s/2, s/2))
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
						sent[s] += 2
						runtime.Gosched()
					}
				})
			}
			var heap uint64
			goroutines := 0
			for i := range reloads {
				n.save(counting(kind, op, fmt.Sprint(i)), "")
				n.Clock.Advance(2 * time.Minute)
				n.sink.Forget()
				if i == reloads/2 {
					heap, goroutines = measured()
				}
			}
			close(stop)
			wg.Wait()
			n.sink.Forget()
			for key := range 2 {
				want := fmt.Sprintf("%d\n", sent[2*key]+sent[2*key+1])
				if got := control(t, n.c, "GET", fmt.Sprintf("/state/n?key=%d", key), 200); got != want {
					t.Errorf("key %d: got %s, want %s", key, got, want)
				}
			}
			if h, g := measured(); h > heap+16<<20 || g > goroutines+20 {
				t.Errorf("%d bytes and %d goroutines in the middle, %d and %d at the end", heap, goroutines, h, g)
			}
		})
	}
	f("add", "counter{}", addOne)
	f("update", "map{}", updateOne)
	f("persistent", `counter{ scope = "persistent" }`, addOne)
}

func measured() (heap uint64, goroutines int) {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc, runtime.NumGoroutine()
}

// control asks what `weir state` asks.
func control(t testing.TB, c component.Component, method, path string, want int) string {
	t.Helper()
	w := httptest.NewRecorder()
	c.(component.Controller).Control().ServeHTTP(w, httptest.NewRequest(method, path, nil))
	if w.Code != want {
		t.Errorf("%s %s: got %d %s, want %d", method, path, w.Code, w.Body, want)
	}
	return w.Body.String()
}

// restart is the process's end and start.
func (n *harness) restart(src, attrs string) {
	n.t.Helper()
	n.stop()
	n.c, n.stop = nil, nil
	n.save(src, attrs)
}

func TestPersistentState(t *testing.T) {
	n := newHarness(t)
	persistent := counting(`counter{ scope = "persistent" }`, addOne, "")
	b := text(t, 1, "a{s=\"x\"} 0\n")
	n.save(persistent, "")
	same(t, n.send(b), "a{s=\"x\"} 1\n")
	same(t, n.send(b), "a{s=\"x\"} 2\n")
	n.restart(persistent, "")
	same(t, n.send(b), "a{s=\"x\"} 3\n")

	// State that is not persistent is lost.
	n.save(counting("counter{}", addOne, "instance"), "")
	same(t, n.send(b), "a{s=\"x\"} 4\n")
	n.restart(persistent, "")
	same(t, n.send(b), "a{s=\"x\"} 1\n")

	// Nor does a node see what another keeps.
	other := newHarness(t)
	other.ID, other.StoragePath = "a.b.other", n.StoragePath
	other.save(persistent, "")
	same(t, other.send(b), "a{s=\"x\"} 1\n")
	n.restart(persistent, "")
	same(t, n.send(b), "a{s=\"x\"} 2\n")
	if got := gathered(t, n.Registry, "weir_script_state_written_bytes_total"); got == 0 {
		t.Error("nothing was counted as written")
	}
}

// TestStateOnBrokenDisk holds that batches go on, that the node stays healthy
// but says what is wrong, and that all is written once the disk is back.
func TestStateOnBrokenDisk(t *testing.T) {
	n := newHarness(t)
	persistent := counting(`counter{ scope = "persistent" }`, addOne, "")
	blocked := filepath.Join(n.StoragePath, "state")
	if err := os.WriteFile(blocked, []byte("in the way"), 0o600); err != nil {
		t.Fatal(err)
	}
	n.save(persistent, "")
	n.Wait(t, func() bool { return n.Health().State == component.Unhealthy })
	if got := n.Health().Message; !strings.Contains(got, "cannot read the persistent state") || !strings.Contains(got, "no batch is let in") {
		t.Errorf("got %q", got)
	}
	if err := os.Remove(blocked); err != nil {
		t.Fatal(err)
	}
	advanceUntil(t, n, 100*time.Millisecond, func() bool { return n.Health().State == component.Healthy })
	b := text(t, 1, "a{s=\"x\"} 0\n")
	same(t, n.send(b), "a{s=\"x\"} 1\n")

	// Other limits make another file, which cannot be made.
	if err := os.RemoveAll(blocked); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(blocked, []byte("in the way"), 0o600); err != nil {
		t.Fatal(err)
	}
	larger := counting(`counter{ scope = "persistent", max = 20000 }`, addOne, "")
	n.save(larger, "")
	n.Wait(t, func() bool { return strings.Contains(n.Health().Message, "degraded: cannot write persistent state") })
	if got := n.Health().State; got != component.Healthy {
		t.Errorf("the node is %s", got)
	}
	same(t, n.send(b), "a{s=\"x\"} 2\n")
	if err := os.Remove(blocked); err != nil {
		t.Fatal(err)
	}
	advanceUntil(t, n, 100*time.Millisecond, func() bool { return n.Health().Message == "" })
	n.restart(larger, "")
	same(t, n.send(b), "a{s=\"x\"} 3\n")
}

func TestMigrate(t *testing.T) {
	const source = `return weir.transform {
	version = %d,
	state = { %s },
	migrate = function(old, version, ctx)
		%s
	end,
	metrics = function(batch, ctx) %s end,
}`
	n := newHarness(t)
	b := text(t, 1, "a 0\n")
	n.save(fmt.Sprintf(source, 1, "last = weir.state.map{}, gone = weir.state.set{}", `error("nothing to migrate")`,
		`ctx.state.last:set("x", "7") ctx.state.last:set("y", "8") ctx.state.gone:add("z")`), "")
	n.send(b)

	// Text becomes numbers, a set that goes becomes entries of a map.
	migrate := `
		assert(version == 1)
		assert(ctx.state.last:get("x") == "7") -- what fits is there already
		for k, v in pairs(old.last:entries()) do ctx.state.last:set(k, tonumber(v)) end
		for _, k in ipairs(old.gone:entries()) do ctx.state.last:set(k, old.gone:size()) end
		assert(not pcall(function() old.last:set("x", 1) end))
		local ok, err = pcall(pairs, old.last)
		assert(not ok and tostring(err):find("write pairs(x:entries())", 1, true), tostring(err))`
	read := `local sum = 0
		for _, v in pairs(ctx.state.last:entries()) do sum = sum + v end
		batch:map_value(function() return sum end)`
	// A migration that fails leaves the old version, and what it has.
	r := n.lookup(fmt.Sprintf(source, 2, "last = weir.state.map{}", `ctx.state.last:set("x", 1) error("no")`, read))
	if _, err := n.build(r); err == nil || !strings.Contains(err.Error(), "cannot migrate the state of version 1") || !strings.Contains(err.Error(), "in migrate: no") {
		t.Errorf("got %v, want that migrate failed", err)
	}
	if got := control(t, n.c, "GET", "/state/last", 200); got != "{\n  \"x\": \"7\",\n  \"y\": \"8\"\n}\n" {
		t.Errorf("the old version has %s", got)
	}
	n.save(fmt.Sprintf(source, 2, "last = weir.state.map{}", migrate, read), "")
	same(t, n.send(b), "a 16\n")

	// Limits alone are no reason to migrate.
	n.save(fmt.Sprintf(source, 2, "last = weir.state.map{ max = 2 }", `error("called")`, read), "")
	same(t, n.send(b), "a 9\n")
	if !strings.Contains(n.Logs(), "the oldest entries are dropped") {
		t.Error("the log does not say that entries are dropped")
	}

	// Without migrate, another kind starts empty.
	n.save(strings.Replace(fmt.Sprintf(source, 2, "last = weir.state.set{}", "", `batch:map_value(function() return ctx.state.last:size() end)`),
		"migrate = function(old, version, ctx)\n\t\t\n\tend,", "", 1), "")
	same(t, n.send(b), "a 0\n")
	if !strings.Contains(n.Logs(), "state is declared as another kind") {
		t.Error("the log does not say that state is lost")
	}
}

// lookup writes a script and returns what it means now.
func (n *harness) lookup(src string) component.Registration {
	n.t.Helper()
	n.cat.Refresh([]string{n.f.Write("a/b.lua", "local weir = require \"weir\"\n"+src)})
	r, _ := n.cat.Lookup("a.b")
	if r.Err != nil {
		n.t.Fatal(r.Err)
	}
	return r
}

// build builds a version that may not be swapped in.
func (n *harness) build(r component.Registration) (component.Component, error) {
	n.t.Helper()
	args := r.NewArgs()
	if err := registrytest.Decode(args, "", n.sink); err != nil {
		n.t.Fatal(err)
	}
	o := n.Options()
	o.Registerer = prometheus.NewRegistry()
	return r.Build(o, args, n.c)
}

// TestMigrateAtStart holds that a script that changed while nothing ran
// migrates what is on disk, and that no batch is let in before it could.
func TestMigrateAtStart(t *testing.T) {
	const source = `local tries = 0
return weir.transform {
	version = %d,
	state = { n = weir.state.counter{ scope = "persistent" } },
	migrate = function(old, version, ctx)
		tries = tries + 1
		if tries < 3 then error("not yet") end
		ctx.state.n:set("x", 100 * version)
	end,
	metrics = function(batch, ctx) batch:each(function(r) r.value = ctx.state.n:add("x") end) end,
}`
	n := newHarness(t)
	b := text(t, 1, "a 0\n")
	n.save(fmt.Sprintf(source, 1), `script { concurrency = "single" }`)
	same(t, n.send(b), "a 1\n")
	n.restart(fmt.Sprintf(source, 2), `script { concurrency = "single" }`)
	sent := make(chan string, 1)
	go func() { sent <- n.send(b) }()
	n.Wait(t, func() bool { return n.Health().State == component.Unhealthy })
	if got := n.Health().Message; !strings.Contains(got, "cannot migrate the state of version 1") {
		t.Errorf("got %q", got)
	}
	advanceUntil(t, n, 100*time.Millisecond, func() bool { return n.Health().State == component.Healthy })
	same(t, <-sent, "a 101\n")
	n.restart(fmt.Sprintf(source, 2), "")
	same(t, n.send(b), "a 102\n")
}

func TestStateControl(t *testing.T) {
	n := newHarness(t)
	n.save(`return weir.transform {
	state = {
		c = weir.state.counter{ doc = "Counts." }, m = weir.state.map{ ttl = "1h" }, s = weir.state.set{}, l = weir.state.lru{}, q = weir.state.queue{},
	},
	metrics = function(batch, ctx)
		ctx.state.c:add("a/b c", 2.5)
		ctx.state.m:set("k", { b = { 1, "zwei", false }, a = {} })
		ctx.state.s:add("ü")
		ctx.state.q:push({ x = 1 })
		ctx.state.q:push(2)
	end,
}`, "")
	n.send(text(t, 1, "a 0\n"))
	f := func(method, path string, status int, want string) {
		t.Helper()
		same(t, control(t, n.c, method, path, status), want)
	}
	f("GET", "/state/c?key=a%2Fb+c", 200, "2.5\n")
	f("GET", "/state/m?key=k", 200, `{"b":[1,"zwei",false],"a":{}}`+"\n")
	f("GET", "/state/s", 200, "[\n  \"ü\"\n]\n")
	f("GET", "/state/q", 200, "[\n  {\n    \"x\": 1\n  },\n  2\n]\n")
	f("GET", "/state/l", 200, "{}\n")
	f("GET", "/state/x", 404, "cannot find state \"x\" of a.b.default: did you mean c or l or m?\n")
	f("GET", "/state/c?key=no", 404, "cannot find key \"no\" in state c of a.b.default\n")
	f("PUT", "/state/c?key=n&value=3", 200, "")
	f("PUT", "/state/c?key=n&value=%22x%22", 400, "cannot set key \"n\" of c to \"x\": a counter has numbers\n")
	f("PUT", "/state/c?key=n&value=x", 400, "cannot read \"x\" as JSON: invalid character 'x' looking for beginning of value; text is written in quotes\n")
	f("PUT", "/state/m?key=n&value=[9007199254740993,null,[]]", 200, "")
	f("GET", "/state/m?key=n", 200, "[9007199254740993,null,[]]\n")
	f("PUT", "/state/s?key=n&value=1", 400, "cannot set a value in s: a set has only keys\n")
	f("PUT", "/state/s?key=n", 200, "")
	f("PUT", "/state/q?key=7", 200, "")
	f("PUT", "/state/q?key=7&value=8", 400, "cannot set a key of q: a queue has none, only a value can be added to it\n")
	f("DELETE", "/state/m?key=n", 200, "")
	f("DELETE", "/state/m?key=n", 404, "cannot find key \"n\" in state m of a.b.default\n")
	f("DELETE", "/state/s", 200, "")
	f("GET", "/state-export", 200, `{"state":"c","kind":"counter","key":"a/b c","value":2.5,"written":"2025-01-01T00:00:00.000Z"}
{"state":"c","kind":"counter","key":"n","value":3,"written":"2025-01-01T00:00:00.000Z"}
{"state":"m","kind":"map","key":"k","value":{"b":[1,"zwei",false],"a":{}},"written":"2025-01-01T00:00:00.000Z"}
{"state":"q","kind":"queue","value":{"x":1},"written":"2025-01-01T00:00:00.000Z"}
{"state":"q","kind":"queue","value":2,"written":"2025-01-01T00:00:00.000Z"}
{"state":"q","kind":"queue","value":7,"written":"2025-01-01T00:00:00.000Z"}
`)
	var list []struct {
		Name, TTL string
		Entries   int
	}
	if err := json.Unmarshal([]byte(control(t, n.c, http.MethodGet, "/state", 200)), &list); err != nil || len(list) != 5 || list[0].Entries != 2 || list[2].TTL != "1h0m0s" {
		t.Errorf("got %+v, %v", list, err)
	}
	// The same on the page and in the metrics.
	debug, err := json.Marshal(n.c.(component.Debugger).DebugInfo())
	if err != nil || !strings.Contains(string(debug), `{"name":"c","kind":"counter","scope":"instance","entries":2,`) {
		t.Errorf("got %s, %v", debug, err)
	}
	if got := gathered(t, n.Registry, "weir_script_state_entries"); got != 6 {
		t.Errorf("%v entries are counted, want 6", got)
	}

	// Stored state can be read while nothing runs.
	n.save(counting(`counter{ scope = "persistent" }`, addOne, ""), "")
	n.send(text(t, 1, "a{s=\"x\"} 0\n"))
	n.stop()
	cols, err := state.Read(n.StoragePath, n.ID)
	if err != nil || len(cols) != 1 || cols[0].Get("x", 0).Float() != 1 {
		t.Errorf("got %v, %v from the disk", cols, err)
	}
}

func TestStateInHooks(t *testing.T) {
	f := func(src, want string) {
		t.Helper()
		n := newHarness(t)
		n.save(src, "")
		n.send(text(t, 1, "a 0\n"))
		if got := n.Health().Message; !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q", src, got, want)
		}
	}
	in := func(decl, body string) string {
		return "return weir.transform { state = { x = weir.state." + decl + " }, metrics = function(batch, ctx) " + body + " end }"
	}
	// Functions on which the cached result of series would depend.
	f(`local kept
return weir.transform { state = { x = weir.state.set{} },
	metrics = function(batch, ctx) kept = ctx.state.x end,
	series = function(s) if kept then kept:add("k") end end }`, "")
	n := newHarness(t)
	n.save(`local kept
return weir.transform { state = { x = weir.state.set{} },
	metrics = function(batch, ctx) kept = ctx.state.x end,
	series = function(s) if kept then kept:add("k") end end }`, `script { concurrency = "single" }`)
	n.send(text(t, 1, "a 0\n"))
	n.send(text(t, 1, "b 0\n"))
	if got := n.Health().Message; !strings.Contains(got, "cannot use ctx.state in series") {
		t.Errorf("got %q", got)
	}
	// Values that cannot be stored, and invalid keys.
	f(in("map{}", `ctx.state.x:set("k", ctx.state.x)`), "cannot keep a state.map in state")
	f(in("map{}", `ctx.state.x:set(nil, 1)`), "argument key is missing")
	f(in("map{}", `ctx.state.x:update("k", function() error("boom") end)`), "boom")
	f(in("counter{}", `ctx.state.x:update("k", function() return "no" end)`), "must return a number, not a string")
	f(in("queue{}", `ctx.state.x:push(nil)`), "argument value is missing")
	f(in("set{}", `ctx.state.x:entries(-1)`), "must not be negative")
	f(in("set{ max = 1 }", `ctx.state.x:add("a") local ok, err = ctx.state.x:add("b") error(err)`), "cannot add to state x: it has all of its 1 entries (max)")
	f(in("map{ max_value = 10 }", `local ok, err = ctx.state.x:set("k", ("x"):rep(20)) error(err)`), "cannot add 21 bytes to state x")
	f(in("map{}", `ctx.state.x:ad("k")`), `state.map has no method "ad"`)
}

// TestDefineState holds what is said about declarations that are wrong.
func TestDefineState(t *testing.T) {
	f := func(decl, want string) {
		t.Helper()
		fo := registrytest.NewFolder(t)
		fo.Write("a/b.lua", "local weir = require \"weir\"\nreturn weir.transform {\n  metrics = function() end,\n  "+decl+"\n}")
		r, _ := fo.Catalog(nil).Lookup("a.b")
		if r.Err == nil || !strings.Contains(r.Err.Error(), want) {
			t.Errorf("%s: got %v, want %q", decl, r.Err, want)
		}
	}
	f(`state = 1`, `a/b.lua:4: cannot use 1 as state: it must be a table such as { seen = weir.state.set{} }`)
	f(`state = { x = 1 }`, `a/b.lua:4: cannot use 1 as state "x": write weir.state.map{} or another kind`)
	f(`state = { ["x y"] = weir.state.set{} }`, `a/b.lua:4: cannot name state "x y": it must be an identifier`)
	f(`state = { x = weir.state.sett{} }`, `a/b.lua:4: there is no state of the kind "sett": there is counter, map, set, lru, queue (did you mean set?)`)
	f(`state = { x = weir.state.set{ maxx = 1 } }`, `a/b.lua:4: cannot use "maxx" in weir.state.set: did you mean max?`)
	f(`state = { x = weir.state.set{ max = 0 } }`, `cannot use 0 as "max" of weir.state.set: it must be a whole number from 1 to 10000000`)
	f(`state = { x = weir.state.set{ ttl = "soon" } }`, `cannot use "soon" as "ttl" of weir.state.set: it must be a duration such as "1h"`)
	f(`state = { x = weir.state.set{ on_full = "drop" } }`, `cannot use "drop" as "on_full" of weir.state.set: it must be "refuse" or "evict"`)
	f(`state = { x = weir.state.lru{ on_full = "evict" } }`, `cannot use "on_full" in weir.state.lru: it always evicts`)
	f(`state = { x = weir.state.set{ scope = "global" } }`, `cannot use "global" as "scope" of weir.state.set: it must be "instance" or "persistent"`)
	f(`state = { x = weir.state.set{ max_bytes = -1 } }`, `it must be a size such as "8MiB"`)
	f(`state = { x = weir.state.map{ max_value = "33MiB" } }`, `cannot use "33MiB" as "max_value" of weir.state.map: it must be 32MiB at most`)
	f(`state = { x = weir.state.set("x") }`, `cannot use weir.state.set(string): write weir.state.set { max = … }`)
	f(`version = 1.5`, `a/b.lua:4: cannot use 1.5 as version: it must be a whole number from 1 on`)
	f(`on_error = "ignore"`, `a/b.lua:4: cannot use "ignore" as on_error: it must be "pass" or "drop" or "quarantine" or "hold"`)
	f(`on_error = 1`, `a/b.lua:4: cannot use 1 as on_error: it must be "pass"`)
	f(`migrate = 1`, `a/b.lua:4: cannot use 1 as hook migrate: it must be a function`)
}
