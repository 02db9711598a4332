package node_test

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
)

// own are the script's own metrics in text form, sorted.
func (n *harness) own() string {
	n.t.Helper()
	families, err := n.Registry.Gather()
	if err != nil {
		n.t.Fatal(err)
	}
	var b strings.Builder
	for _, f := range families {
		if strings.HasPrefix(f.GetName(), "weir_script_custom_") {
			if _, err := expfmt.MetricFamilyToText(&b, f); err != nil {
				n.t.Fatal(err)
			}
		}
	}
	return strings.ReplaceAll(strings.ReplaceAll(b.String(), `component_id="a.b.default",`, ""), `{component_id="a.b.default"}`, "")
}

func TestOwnMetricsOfScripts(t *testing.T) {
	n := newHarness(t)
	n.save(`return weir.transform { metrics = function(batch, ctx)
		ctx.metrics.counter("seen", { job = batch[1].labels.job, n = 5, yes = true }, "What was seen."):add(#batch)
		local c = ctx.metrics.counter("calls_total")
		c:add()
		c:add(0.5)
		ctx.metrics.gauge("size"):set(3)
		ctx.metrics:gauge("size", {}):add(-1)
		assert(tostring(c) == "weir_script_custom_calls_total")
	end }`, `script { concurrency = "single" }`)
	same(t, n.own(), "")
	n.send(text(t, 1, "a{job=\"x\"} 1\nb 2\n"))
	n.send(text(t, 1, "a{job=\"y\"} 1\n"))
	const want = `# HELP weir_script_custom_calls_total A metric defined by the script.
# TYPE weir_script_custom_calls_total counter
weir_script_custom_calls_total 3
# HELP weir_script_custom_refused_total Updates of series of ctx.metrics that were ignored because the limit of 1000 series or 200 metrics was reached.
# TYPE weir_script_custom_refused_total counter
weir_script_custom_refused_total 0
# HELP weir_script_custom_seen_total What was seen.
# TYPE weir_script_custom_seen_total counter
weir_script_custom_seen_total{job="x",n="5",yes="true"} 2
weir_script_custom_seen_total{job="y",n="5",yes="true"} 1
# HELP weir_script_custom_series Series that the script has in ctx.metrics.
# TYPE weir_script_custom_series gauge
weir_script_custom_series 4
# HELP weir_script_custom_size A metric defined by the script.
# TYPE weir_script_custom_size gauge
weir_script_custom_size 2
`
	same(t, n.own(), want)

	// They go on over a reload, and are forgotten when no version uses them.
	n.save(`return weir.transform { metrics = function(batch, ctx) ctx.metrics.counter("calls"):add(10) end }`, "")
	same(t, n.own(), want)
	n.send(text(t, 1, "a 1\n"))
	if got := gathered(t, n.Registry, "weir_script_custom_calls_total"); got != 13 {
		t.Errorf("got %v calls, want 13", got)
	}
	advanceUntil(t, n, time.Minute, func() bool { return gathered(t, n.Registry, "weir_script_custom_series") <= 1 })
	if got := gathered(t, n.Registry, "weir_script_custom_calls_total"); got != 13 {
		t.Errorf("got %v calls, want 13: this version uses it", got)
	}
}

// An invalid metric is an error in the call that creates it.
func TestOwnMetricsRefused(t *testing.T) {
	n := newHarness(t)
	f := func(use, want string) {
		t.Helper()
		n.save("return weir.transform { metrics = function(batch, ctx) ctx.metrics.gauge('g', { a = 'b' }) "+use+" end }", "")
		n.send(text(t, 1, "a 1\n"))
		got, _, _ := strings.Cut(strings.TrimPrefix(n.Health().Message, "scripts/a/b.lua:2: in metrics: "), "\n")
		if got != want {
			t.Errorf("%s: got %s, want %s", use, got, want)
		}
	}
	f(`ctx.metrics.counter("Bad")`, `cannot call counter: argument name must consist of lower-case letters, digits and underscores, begin with a letter and have at most 100 characters, unlike "Bad"`)
	f(`ctx.metrics.gauge("g", { component_id = "x" })`, `cannot call gauge: argument labels cannot have the label "component_id"`)
	f(`ctx.metrics.gauge("g", { ["a-b"] = "x" })`, `cannot call gauge: argument labels cannot have the label "a-b"`)
	f(`ctx.metrics.gauge("g", { a = ("x"):rep(257) })`, `cannot call gauge: argument labels cannot have a label value of 257 bytes: the limit is 256`)
	f(`ctx.metrics.gauge("g")`, `cannot call gauge: argument labels must be the labels of the first use: [a], not []`)
	f(`ctx.metrics.histogram("g", { a = "b" })`, `cannot call histogram: argument name is already used by a gauge`)
	f(`ctx.metrics.counter("c"):add(-1)`, `cannot call add: argument n must not be negative: a counter only goes up`)
	f(`ctx.metrics.counter("long", {}, ("x"):rep(1001))`, `cannot call counter: argument help cannot have 1001 bytes: the limit is 1000`)
	f(`local t = {} for i = 1, 100000 do t["l" .. i] = "v" end ctx.metrics.counter("wide", t)`, `cannot call counter: argument labels cannot have 100000 labels: the limit is 10`)
	f(`ctx.metrics.gauge("g", { [("x"):rep(101)] = "v" })`, `cannot call gauge: argument labels cannot have the label "`+strings.Repeat("x", 101)+`"`)
	f(`ctx.metrics.nonsense()`, `ctx.metrics has no "nonsense"`)

	// Too many series do nothing, and nothing else.
	n.save(`return weir.transform { metrics = function(batch, ctx)
		for i = 1, 1100 do ctx.metrics.histogram("many", { i = i }):observe(i) end
	end }`, "")
	n.send(text(t, 1, "a 1\n"))
	if got := n.Health().Message; got != "" {
		t.Errorf("got %s", got)
	}
	if got := gathered(t, n.Registry, "weir_script_custom_series"); got != 1000 {
		t.Errorf("got %v series, want 1000", got)
	}
	if got := gathered(t, n.Registry, "weir_script_custom_refused_total"); got != 102 { // c and g are there
		t.Errorf("got %v refused, want 102", got)
	}
}

// Too many names are refused like too many series.
func TestOwnMetricsNames(t *testing.T) {
	n := newHarness(t)
	n.save(`return weir.transform { metrics = function(batch, ctx)
		for i = 1, 300 do ctx.metrics.counter("n" .. i, nil, ("x"):rep(1000)):add() end
	end }`, "")
	n.send(text(t, 1, "a 1\n"))
	if got := gathered(t, n.Registry, "weir_script_custom_series"); got != 200 {
		t.Errorf("got %v series, want 200", got)
	}
	if got := gathered(t, n.Registry, "weir_script_custom_refused_total"); got != 100 {
		t.Errorf("got %v refused, want 100", got)
	}
}
