package node_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/host"
	"github.com/weir-run/weir/scripting/internal/registrytest"
	"github.com/weir-run/weir/scripting/lua"
	"github.com/weir-run/weir/scripting/registry"
	"github.com/weir-run/weir/stdlib"
)

// endpoint answers what scripts post, without a network, and keeps it.
type endpoint struct {
	mu      sync.Mutex
	answer  func(body string) (status int) // nil: 200
	posts   []string
	headers []http.Header
	hangs   bool // until the request is given up
}

func (e *endpoint) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	e.posts = append(e.posts, string(body))
	e.headers = append(e.headers, r.Header)
	answer, hangs := e.answer, e.hangs
	e.mu.Unlock()
	if hangs {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	status := http.StatusOK
	if answer != nil {
		status = answer(string(body))
	}
	return &http.Response{
		StatusCode: status, Status: fmt.Sprint(status), Header: http.Header{"Retry-After": {"7"}}, Request: r,
		Body: io.NopCloser(strings.NewReader("said " + fmt.Sprint(status))), ProtoMajor: 1, ProtoMinor: 1,
	}, nil
}

func (e *endpoint) set(answer func(string) int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.answer = answer
}

func (e *endpoint) hang(hangs bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.hangs = hangs
}

func status(n int) func(string) int { return func(string) int { return n } }

// takeBodies returns the bodies posted since the last call.
func (e *endpoint) takeBodies() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	got := e.posts
	e.posts = nil
	return got
}

// sinkNode is a node whose script is a sink, in a synctest bubble: its clock
// stands still while anybody works.
type sinkNode struct {
	*harness
	e *endpoint
}

const sinkAttrs = `
batch { max_wait = "0s" }
script {
	limits { time = "10s" }
	allow { http = ["https://hook.example/*"] }
}`

// poster posts what it gets as text, and asks for a retry unless that works.
const poster = `
return weir.sink { needs = { http = { "https://hook.example/*" } }, send = function(batch, ctx)
	local answer, err = ctx.http.post("https://hook.example/v1", batch:text(), { headers = { ["Idempotency-Key"] = ctx.batch_id(), ["X-Attempt"] = tostring(ctx.attempt()) } })
	if not answer then return ctx.retry { reason = err } end
	if answer.status >= 500 then return ctx.retry { reason = answer.body } end
	if answer.status >= 400 then return ctx.reject(answer.body) end
end }`

// onSink runs a test of a sink.
func onSink(t *testing.T, test func(t *testing.T, n *sinkNode)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		n := &sinkNode{newHarness(t), &endpoint{}}
		n.sink, n.real = nil, true
		n.gate.SetAccepts(batch.SignalMetrics | batch.SignalLogs)
		n.open(t)
		test(t, n)
		if n.stop != nil {
			n.stop()
		}
	})
}

// open makes the node one of a new process.
func (n *sinkNode) open(t *testing.T) {
	t.Helper()
	var err error
	n.c, n.replace = nil, nil
	n.cat, err = registry.NewCatalog(registry.Options{
		Languages: []scripting.Language{lua.New()}, UserDir: n.f.Dir, Modules: stdlib.Modules(), Outside: host.Outside{HTTP: n.e},
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (n *sinkNode) accept(b *batch.Metrics) {
	n.t.Helper()
	if err := n.gate.ConsumeMetrics(context.Background(), b); err != nil {
		n.t.Fatal(err)
	}
}

// after returns what was posted once so much time has gone by.
func (n *sinkNode) after(d time.Duration) []string {
	pass(d)
	return n.e.takeBodies()
}

func figures(t *testing.T, n *harness, name string) map[string]float64 {
	t.Helper()
	families, err := n.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			var key []string
			for _, l := range m.GetLabel() {
				if l.GetName() != "component_id" && l.GetName() != "endpoint" {
					key = append(key, l.GetValue())
				}
			}
			if v := m.GetCounter().GetValue() + m.GetGauge().GetValue(); v != 0 {
				got[strings.Join(key, ",")] = v
			}
		}
	}
	return got
}

func lost(t *testing.T, n *sinkNode) map[string]float64 {
	t.Helper()
	return figures(t, n.harness, "weir_script_sink_records_dropped_total")
}

func equal[T any](t *testing.T, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

const everyKind = `# TYPE h histogram
# HELP h Help.
h{a="b"} {count:3,sum:1.5,schema:1,positive_spans:[0:2],positive_buckets:[1,2]} 1000 st@500
c_total 5 1000 st@3 # {trace="x"} 2 999
g stale 1000
g NaN(0x7ff8000000000000) 1001
`

// A sink gets the accepted records.
func TestSinkSends(t *testing.T) {
	onSink(t, func(t *testing.T, n *sinkNode) {
		n.save(poster, sinkAttrs)
		b := text(t, batch.NewSource(), everyKind)
		n.accept(b)
		equal(t, n.after(time.Second), []string{string(batch.AppendText(nil, b))})
		equal(t, figures(t, n.harness, "weir_script_sink_records_sent_total"), map[string]float64{"": 4})
		equal(t, lost(t, n), map[string]float64{})
		if h := n.Health(); h.State != component.Healthy {
			t.Errorf("got %+v", h)
		}
	})
}

func TestSinkSendsLogs(t *testing.T) {
	onSink(t, func(t *testing.T, n *sinkNode) {
		n.save(strings.Replace(poster, "weir.sink {", `weir.sink { accepts = { "metrics", "logs" },`, 1), sinkAttrs)
		const lines = "{app=\"api\"} @2025-01-01T00:00:00.000000001Z {trace_id=\"a1\"} started\n{app=\"api\"} @2025-01-01T00:00:00.000000002Z \"two\\nlines\"\n"
		logs, err := batch.ParseLogsText(lines, batch.TextOptions{Source: batch.NewSource()})
		if err != nil {
			t.Fatal(err)
		}
		if err := n.gate.ConsumeLogs(t.Context(), logs); err != nil {
			t.Fatal(err)
		}
		n.accept(text(t, batch.NewSource(), "a 1 5\n"))
		got := n.after(time.Second)
		slices.Sort(got)
		equal(t, got, []string{"a 1 5\n", lines})
	})
}

// Batches of a source are joined up to the bounds, and cut where they are larger.
func TestSinkJoinsAndCuts(t *testing.T) {
	onSink(t, func(t *testing.T, n *sinkNode) {
		n.save(strings.Replace(poster, "weir.sink {", `weir.sink { batch = { max_records = 3, max_wait = "5s" },`, 1),
			strings.Replace(sinkAttrs, `max_wait = "0s"`, "", 1))
		source := batch.NewSource()
		n.accept(text(t, source, "a 1 1\n"))
		equal(t, n.after(4*time.Second), nil) // accepted, and waits for more
		n.accept(text(t, source, "b 1 2\n"))
		equal(t, n.after(time.Second), []string{"a 1 1\nb 1 2\n"})
		n.accept(text(t, source, "c 1 1\nd 1 1\n"))
		n.accept(text(t, source, "e 1 2\nf 1 2\n"))
		equal(t, n.after(0), []string{"c 1 1\nd 1 1\ne 1 2\n"})
		equal(t, n.after(5*time.Second), []string{"f 1 2\n"})
		n.accept(text(t, source, "a 1 1\nb 1 1\nc 1 1\nd 1 1\ne 1 1\nf 1 1\ng 1 1\n"))
		equal(t, n.after(0), []string{"a 1 1\nb 1 1\nc 1 1\n", "d 1 1\ne 1 1\nf 1 1\n"})
		n.save(poster, `
batch {
	max_bytes = "1KiB"
	max_wait  = "1s"
}
`+strings.Replace(sinkAttrs, `batch { max_wait = "0s" }`, "", 1))
		equal(t, n.after(time.Second), []string{"g 1 1\n"})
		long := strings.Repeat("x", 400)
		n.accept(text(t, source, `a{x="`+long+`"} 1 1`+"\n"+`b{x="`+long+`"} 1 1`+"\n"+`c{x="`+long+`"} 1 1`+"\n"))
		var rows []int
		for _, p := range n.after(time.Second) {
			rows = append(rows, strings.Count(p, "\n"))
		}
		equal(t, rows, []int{2, 1})
	})
}

// Records that were not delivered are sent again, in order, with the same ID,
// until they are delivered; ctx.retry sets the time.
func TestSinkRetries(t *testing.T) {
	onSink(t, func(t *testing.T, n *sinkNode) {
		n.save(poster, sinkAttrs)
		source := batch.NewSource()
		n.e.set(status(503))
		n.accept(text(t, source, "a 1 1\n"))
		equal(t, n.after(500*time.Millisecond), []string{"a 1 1\n"})
		n.accept(text(t, source, "a 2 2\n"))
		equal(t, len(n.after(800*time.Millisecond)), 1) // a second after the first, and a little
		n.after(20 * time.Second)
		if h := n.Health(); h.State != component.Unhealthy || !strings.Contains(h.Message, "cannot send since 2000-01-01T00:00:00Z: said 503") {
			t.Errorf("got %+v", h)
		}
		n.e.set(nil)
		got := n.after(30 * time.Second)
		equal(t, got, []string{"a 1 1\n", "a 2 2\n"})
		keys, attempts := map[string]bool{}, []string{}
		for _, h := range n.e.headers[:len(n.e.headers)-1] {
			keys[h.Get("Idempotency-Key")] = true
			attempts = append(attempts, h.Get("X-Attempt"))
		}
		if len(keys) != 1 || attempts[0] != "1" || attempts[len(attempts)-1] != fmt.Sprint(len(attempts)) {
			t.Errorf("got keys %v, attempts %v", keys, attempts)
		}
		if last := n.e.headers[len(n.e.headers)-1]; keys[last.Get("Idempotency-Key")] || last.Get("X-Attempt") != "1" {
			t.Errorf("the second batch went as %v", last)
		}
		if h := n.Health(); h.State != component.Healthy {
			t.Errorf("got %+v", h)
		}
		equal(t, strings.Count(n.Logs(), "cannot send; records wait"), 1)
		equal(t, strings.Count(n.Logs(), "the sink sends again"), 1)
		equal(t, figures(t, n.harness, "weir_script_sink_records_retried_total")[""], float64(len(attempts)-1))
	})
}

func TestSinkWaitsAsLongAsItSays(t *testing.T) {
	onSink(t, func(t *testing.T, n *sinkNode) {
		n.e.set(status(429))
		n.save(strings.Replace(poster, "if answer.status >= 500", `if answer.status == 429 then return ctx.retry { after = answer.headers["retry-after"] .. "s" } end
	if answer.status >= 500`, 1), sinkAttrs)
		n.accept(text(t, batch.NewSource(), "a 1 1\n"))
		equal(t, len(n.after(6*time.Second)), 1)
		n.e.set(nil)
		equal(t, len(n.after(2*time.Second)), 1) // 7 s, and an eighth of that at most
	})
}

// Rejected records are lost, counted and reported once. A single record can be
// rejected independently of the rest of its batch.
func TestSinkRejects(t *testing.T) {
	onSink(t, func(t *testing.T, n *sinkNode) {
		n.save(poster, sinkAttrs)
		source := batch.NewSource()
		n.e.set(status(400))
		n.accept(text(t, source, "a 1 1\nb 1 1\n"))
		n.accept(text(t, source, "a 2 2\n"))
		n.after(time.Second)
		equal(t, lost(t, n), map[string]float64{"rejected": 3})
		n.after(5 * time.Second)
		if h := n.Health(); h.State != component.Unhealthy || !strings.Contains(h.Message, "the sink rejects records: rejected by the script: said 400") {
			t.Errorf("got %+v", h)
		}
		equal(t, strings.Count(n.Logs(), "the sink rejects records"), 1)
		n.e.set(status(503))
		n.save(strings.Replace(poster, "local answer,", `for m in batch:records() do
		if m.name == "bad" then ctx.reject(m, "it is bad") end
	end
	local answer,`, 1), sinkAttrs)
		n.accept(text(t, source, "a 3 3\nbad 3 3\nb 3 3\n"))
		equal(t, n.after(0), []string{"a 3 3\nbad 3 3\nb 3 3\n"})
		n.e.set(nil)
		equal(t, n.after(time.Second), []string{"a 3 3\nb 3 3\n"})
		equal(t, lost(t, n), map[string]float64{"rejected": 4})
		equal(t, figures(t, n.harness, "weir_script_sink_records_sent_total"), map[string]float64{"": 2})
	})
}

// A pcall or an error cannot undo ctx.retry and ctx.reject.
func TestSinkCannotSwallowWhatItSaid(t *testing.T) {
	f := func(body string, posts int, want map[string]float64) {
		t.Helper()
		onSink(t, func(t *testing.T, n *sinkNode) {
			n.save(`return weir.sink { needs = { http = { "https://hook.example/*" } }, send = function(batch, ctx)
				ctx.http.post("https://hook.example/v1", batch:text())
				if ctx.attempt() > 1 then return end
				`+body+`
			end }`, sinkAttrs)
			n.accept(text(t, batch.NewSource(), "a 1 1\n"))
			equal(t, len(n.after(2*time.Second)), posts)
			equal(t, lost(t, n), want)
		})
	}
	none := map[string]float64{}
	f(`pcall(function() ctx.retry() end)`, 2, none)
	f(`pcall(ctx.retry, {})  return "delivered"`, 2, none)
	f(`ctx.retry{ after = 1 }  error("and an error")`, 2, none)
	f(`pcall(function() ctx.reject("no") end)`, 1, map[string]float64{"rejected": 1})
	f(`ctx.reject("no")  error("and an error")`, 1, map[string]float64{"rejected": 1})
	f(`ctx.reject(batch[1])  ctx.retry()`, 1, map[string]float64{"rejected": 1})
	// Invalid calls have no effect.
	f(`ctx.retry{ after = "soon" }`, 2, none)
	f(`ctx.reject(12)`, 2, none)
	f(`batch:drop_where("true")`, 1, map[string]float64{"script": 1})
}

// An error is what on_error says; what each failed on is a record alone.
func TestSinkErrors(t *testing.T) {
	const each = `
return weir.sink { needs = { http = { "https://hook.example/*" } }, send = function(batch, ctx)
	local out = {}
	batch:each(function(m)
		if m.name == "bad" then error("it is bad") end
		table.insert(out, m.name)
	end)
	ctx.http.post("https://hook.example/v1", table.concat(out, " "))
end }`
	const whole = `
return weir.sink { needs = { http = { "https://hook.example/*" } }, send = function(batch, ctx)
	ctx.http.post("https://hook.example/v1", tostring(#batch))
	error("it is broken")
end }`
	f := func(src, on string, posts []string, want map[string]float64, pending float64) {
		t.Helper()
		onSink(t, func(t *testing.T, n *sinkNode) {
			n.save(src, strings.Replace(sinkAttrs, "script {", "script {\n"+on, 1))
			n.accept(text(t, batch.NewSource(), "a 1 1\nbad 1 1\nc 1 1\n"))
			equal(t, n.after(1500*time.Millisecond), posts)
			equal(t, lost(t, n), want)
			equal(t, figures(t, n.harness, "weir_script_sink_records_pending")[""], pending)
			if h := n.Health(); h.State != component.Unhealthy || !strings.Contains(h.Message, "a/b.lua:") {
				t.Errorf("got %+v", h)
			}
		})
	}
	f(each, "", []string{"a c"}, map[string]float64{}, 0)
	f(each, `on_error = "drop"`, []string{"a c"}, map[string]float64{"script_error": 1}, 0)
	f(each, `on_error = "quarantine"`, []string{"a c"}, map[string]float64{}, 0)
	f(whole, "", []string{"3", "1", "2", "1", "1", "1", "1", "1"}, map[string]float64{}, 3)
	f(whole, `on_error = "drop"`, []string{"3"}, map[string]float64{"script_error": 3}, 0)
	f(whole, `on_error = "quarantine"`, []string{"3"}, map[string]float64{}, 0)
}

// A save that repairs the script is tried at once, with what waited, in order.
func TestSinkGoesOnAfterASave(t *testing.T) {
	onSink(t, func(t *testing.T, n *sinkNode) {
		n.save(`return weir.sink { send = function() error("not yet") end }`, sinkAttrs[:strings.Index(sinkAttrs, "allow")]+"}")
		source := batch.NewSource()
		var want string
		for i := range 5 {
			n.accept(text(t, source, fmt.Sprintf("a %d %d\n", i, i)))
			want += fmt.Sprintf("a %d %d\n", i, i)
		}
		n.after(time.Minute) // a record that fails for longer is blamed
		n.save(poster, sinkAttrs)
		equal(t, strings.Join(n.after(0), ""), want)
	})
}

// Reloads under load lose nothing and keep the order of each source.
func TestSinkReloadsUnderLoad(t *testing.T) {
	onSink(t, func(t *testing.T, n *sinkNode) {
		n.save(poster, sinkAttrs)
		var wg sync.WaitGroup
		const sources, rounds = 3, 200
		for src := range sources {
			id := batch.NewSource()
			wg.Go(func() {
				for i := range rounds {
					n.accept(text(t, id, fmt.Sprintf("s%d %d %d\n", src, i, i)))
					time.Sleep(10 * time.Millisecond) // the bubble's
				}
			})
		}
		reloads := 100
		if testing.Short() {
			reloads = 20
		}
		modes := []string{"", `concurrency = "single"`, `concurrency = "parallel"`, "concurrency = \"partition\"\nby = [\"__name__\"]"}
		for i := range reloads {
			n.save(fmt.Sprintf("-- %d\n", i)+poster, strings.Replace(sinkAttrs, "script {", "script {\n"+modes[i/5%4], 1))
			pass(20 * time.Millisecond)
		}
		wg.Wait()
		pass(10 * time.Second)
		next := map[string]int{}
		for _, p := range n.e.takeBodies() {
			for line := range strings.Lines(p) {
				var name string
				var v, at int
				if _, err := fmt.Sscanf(line, "%s %d %d", &name, &v, &at); err != nil || v != next[name] {
					t.Fatalf("got %q, want %d", line, next[name])
				}
				next[name]++
			}
		}
		equal(t, next, map[string]int{"s0": rounds, "s1": rounds, "s2": rounds})
	})
}

// Accepted records outlive the process. At shutdown, offers in flight are
// delivered.
func TestSinkStops(t *testing.T) {
	onSink(t, func(t *testing.T, n *sinkNode) {
		n.save(poster, strings.Replace(sinkAttrs, "0s", "1h", 1))
		source := batch.NewSource()
		n.accept(text(t, source, "a 1 1\n"))
		equal(t, n.after(time.Minute), nil)
		n.stop()
		equal(t, n.e.takeBodies(), []string{"a 1 1\n"})
		// In an outage it is out within 5 s, and loses nothing.
		n.open(t)
		n.e.hang(true)
		n.save(poster, sinkAttrs)
		n.accept(text(t, source, "b 1 1\n"))
		equal(t, n.after(time.Second), []string{"b 1 1\n"})
		began := time.Now()
		n.stop()
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("it took %s to stop", took)
		}
		if err := n.gate.ConsumeMetrics(t.Context(), text(t, source, "c 1 1\n")); !errors.Is(err, flow.ErrStopped) {
			t.Errorf("got %v", err)
		}
		n.open(t)
		n.e.hang(false)
		n.e.takeBodies()
		n.save(poster, sinkAttrs)
		equal(t, n.after(time.Second), []string{"b 1 1\n"})
	})
}

func TestSinkDefinition(t *testing.T) {
	f := func(src, attrs, want string) {
		t.Helper()
		fo := registrytest.NewFolder(t)
		fo.Write("a/b.lua", "local weir = require \"weir\"\n"+src)
		r, _ := fo.Catalog(nil).Lookup("a.b")
		err := r.Err
		if err == nil {
			args := r.NewArgs()
			if err = registrytest.Evaluate(args, attrs, nil); err == nil {
				for _, e := range r.Check(args, func(string) bool { return true }) {
					err = errors.Join(err, fmt.Errorf("%s: %w", e.Path, e.Err))
				}
			}
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
	const ok = "return weir.sink { send = function() end }"
	f("return weir.sink {}", "", "cannot use a sink without the hook send: write send = function(batch, ctx) … end")
	f("return weir.sink { send = function() end, metrics = function() end }", "", `cannot use "metrics" in weir.sink: there is args, send, accepts, batch`)
	f("return weir.sink { send = function() end, batch = { max_recods = 3 } }", "", `cannot use "max_recods" in batch: there is max_records, max_bytes, max_wait, in_flight`)
	f("return weir.sink { send = function() end, batch = { max_records = 0 } }", "", "cannot use batch.max_records = 0: it must be between 1 and 1000000")
	f(`return weir.sink { send = function() end, batch = { max_wait = "x" } }`, "", `cannot use this batch.max_wait`)
	f(`return weir.sink { send = function() end, args = { journal = weir.arg.string{} } }`, "", `cannot name an argument "journal": the name is reserved`)
	f(ok, "batch { in_flight = 9 }", "cannot use batch.in_flight = 9: it must be between 1 and 8")
	f(ok, `journal { max_size = "1KiB" }`, "max_size must be at least 1MiB")
	f(ok, `script { on_error = "pass" }`, `script.on_error: cannot use on_error = "pass": a.b is a sink, which passes nothing on; there is "hold", "drop" or "quarantine"`)
	f(ok, `script { on_reload = "shadow" }`, `script.on_reload: cannot use on_reload = "shadow": a.b is a sink, and only the results of a transform can be compared without external systems; use "test"`)
	f(ok, "script {\nshadow {\nmax_new_series = 1\n}\n}", `script.shadow: the block shadow has no effect without on_reload = "shadow"`)
	f(`return weir.source { poll = function() end, interval = "1m", sends = { "metrics" } }`, "forward_to = []\nscript { on_reload = \"shadow\" }", `script.on_reload: cannot use on_reload = "shadow": a.b is a source, and`)
	f(ok, "forward_to = []", `unrecognized attribute name "forward_to"`)
}
