package filter_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/component/componenttest"
	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/flow/flowtest"
	"github.com/weir-run/weir/natives/expr/filter"
	"github.com/weir-run/weir/natives/expr/internal/clause"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/lua"
	"github.com/weir-run/weir/scripting/registry"
)

func parseLines(t testing.TB, text string) *batch.Logs {
	t.Helper()
	b, err := batch.ParseLogsText(text, batch.TextOptions{Source: 1})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func sendLines(t testing.TB, c any, b *batch.Logs) {
	t.Helper()
	if err := c.(flow.LogsConsumer).ConsumeLogs(t.Context(), b); err != nil {
		t.Fatal(err)
	}
}

// linesOf returns the lines of all batches in a sink.
func linesOf(sink *flowtest.Sink) (lines []string) {
	for _, b := range sink.Logs() {
		lines = append(lines, b.Line...)
	}
	return lines
}

func TestLines(t *testing.T) {
	const in = `
{app="api"} @2025-01-01T00:00:01Z {trace="t1"} level=error msg=a
{app="api"} @2025-01-01T00:00:02Z level=info msg=b
{app="web"} @2025-01-01T00:00:03Z level=error msg=c
{app="web"} @2025-01-01T00:00:04Z {trace="t2"} level=debug msg=d`
	f := func(kind string, src clause.Predicate, want ...string) {
		t.Helper()
		sink := flowtest.NewSink("sink")
		n := componenttest.New(t, "expr.filter.f")
		c := build(t, n, arguments(sink.Receiver(), kind, src))
		b := parseLines(t, in)
		b.Ack = batch.NewAck(nil)
		sendLines(t, c, b)
		var got []string
		for _, line := range linesOf(sink) {
			got = append(got, line[len(line)-1:])
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s %s (-want +got):\n%s", kind, src, diff)
		}
		for _, out := range sink.Logs() {
			if out.Source != b.Source || out.Ack != b.Ack {
				t.Errorf("%s %s: the source or the acknowledgement is another", kind, src)
			}
			if len(want) == b.Len() && &out.Line[0] != &b.Line[0] {
				t.Errorf("%s %s: nothing is dropped, and the batch is copied", kind, src)
			}
		}
		if got := n.Stats.DroppedLines()["filter"]; got != uint64(b.Len()-len(want)) {
			t.Errorf("%s %s: %d counted as dropped", kind, src, got)
		}
	}
	f("drop", `false`, "a", "b", "c", "d")
	f("drop", `true`)
	f("keep", `true`, "a", "b", "c", "d")
	f("keep", `false`)
	f("drop", `labels.app == "api"`, "c", "d")
	f("keep", `labels.app == "api"`, "a", "b")
	f("drop", `line contains "error"`, "b", "d")
	f("keep", `line matches "level=(info|debug)"`, "b", "d")
	f("drop", `labels.app == "web" && line contains "error"`, "a", "b", "d")
	f("keep", `labels.app == "web" || line endsWith "=a"`, "a", "c", "d")
	f("drop", `meta.trace == "t1"`, "b", "c", "d")
	f("keep", `"trace" in meta`, "a", "d")
	f("drop", `time >= 1735689603000`, "a", "b")
	f("drop", `labels.nope != ""`, "a", "b", "c", "d")
}

// TestLineFailures: a line on which the expression fails is kept.
func TestLineFailures(t *testing.T) {
	sink := flowtest.NewSink("sink")
	n := componenttest.New(t, "expr.filter.f")
	c := build(t, n, arguments(sink.Receiver(), "keep", `int(line) >= 500 || labels.app == "x"`))
	sendLines(t, c, parseLines(t, "{app=\"a\"} 500\n{app=\"a\"} oops\n{app=\"a\"} 200\n"))
	if diff := cmp.Diff([]string{"500", "oops"}, linesOf(sink)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if h := n.Health(); h.State != component.Unhealthy || !strings.HasSuffix(h.Message, `in a line of {app="a"}`) {
		t.Errorf("got health %+v", h)
	}
	want := `
# HELP weir_expr_errors_total Samples and log lines on which an expression failed, by the argument it is in. They were forwarded unchanged.
# TYPE weir_expr_errors_total counter
weir_expr_errors_total{argument="drop",component_id="expr.filter.f"} 0
weir_expr_errors_total{argument="keep",component_id="expr.filter.f"} 1
`
	if err := testutil.GatherAndCompare(n.Registry, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
	sendLines(t, c, parseLines(t, "{app=\"a\"} 500\n"))
	if h := n.Health(); h.State != component.Healthy {
		t.Errorf("got health %+v when nothing fails any more", h)
	}
}

// TestBothSignals: an expression that only reads labels filters samples and lines
// in one block. An expression for the other signal keeps rows that are still in
// flight.
func TestBothSignals(t *testing.T) {
	sink := flowtest.NewSink("sink")
	c := build(t, componenttest.New(t, "expr.filter.f"), arguments(sink.Receiver(), "drop", `labels.x == "1"`))
	samples, lines := parse(t, "a{x=\"1\"} 1\na{x=\"2\"} 1"), parseLines(t, "{x=\"1\"} one\n{x=\"2\"} two\n")
	send(t, c, samples)
	sendLines(t, c, lines)
	if got := text(sink.Last()); got != `a{x="2"} 1` {
		t.Errorf("got samples %s", got)
	}
	if got := linesOf(sink); len(got) != 1 || got[0] != "two" {
		t.Errorf("got lines %q", got)
	}
	f := func(src clause.Predicate, want [2]int) {
		t.Helper()
		before := len(linesOf(sink))
		if err := c.Update(arguments(sink.Receiver(), "drop", src)); err != nil {
			t.Fatal(err)
		}
		sendLines(t, c, lines)
		send(t, c, parse(t, "a 1\na 1"))
		live := 0
		for _, v := range sink.Last().V {
			if !batch.IsStale(v) {
				live++
			}
		}
		if got := [2]int{live, len(linesOf(sink)) - before}; got != want {
			t.Errorf("%s: got %v samples and lines, want %v", src, got, want)
		}
	}
	f(`line == "one"`, [2]int{2, 1})
	f(`value == 1`, [2]int{0, 2})
}

// TestPasses: the accepted signals follow from the expression.
func TestPasses(t *testing.T) {
	f := func(kind string, src clause.Predicate, want batch.Signals, why string) {
		t.Helper()
		s, got := filter.Registration().Passes(arguments(nil, kind, src))
		if s != want || got != why {
			t.Errorf("%s %s: got %s, %q", kind, src, s, got)
		}
	}
	f("drop", `labels.x == "1"`, batch.SignalMetrics|batch.SignalLogs, "")
	f("drop", `value > 3`, batch.SignalMetrics, "drop: a log line has no value")
	f("keep", `line == ""`, batch.SignalLogs, "keep: a sample has no line")
	if s, why := filter.Registration().Passes(&filter.Arguments{}); s != batch.SignalMetrics|batch.SignalLogs || why != "" {
		t.Errorf("of an expression that is not known yet: got %s, %q", s, why)
	}
}

// TestAgainstDropWhere compares with drop_where and keep_where of a script for
// random lines.
func TestAgainstDropWhere(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 13))
	pick := func(ss ...string) string { return ss[r.IntN(len(ss))] }
	var clauseOf func(d int) string
	clauseOf = func(d int) string {
		if d > 0 && r.IntN(3) > 0 {
			return "(" + clauseOf(d-1) + pick(" && ", " || ") + clauseOf(d-1) + ")"
		}
		return pick("", "!") + "(" + pick(`labels.app == "a"`, `labels.app in ["b", "c"]`, `line contains "warn"`, `line startsWith "{"`, `labels.zone != ""`,
			`len(line) > 20`, `line matches "(?i)error|warn"`, `meta.trace == "t1"`, `"trace" in meta`, `time % 2 == 0`, `meta.trace != labels.app`,
			`lower(line) contains labels.app`, `labels.app matches "^[ab]$"`, `indexOf(line, "level") >= 0`) + ")"
	}
	in := &batch.Logs{Source: 1}
	var streams []*batch.Stream
	for _, app := range []string{"a", "b", "c", "dd"} {
		for _, zone := range []string{"", "z"} {
			var ls batch.Builder
			ls.Set("app", app)
			ls.Set("zone", zone)
			streams = append(streams, ls.Series(nil))
		}
	}
	for range 300 {
		in.Stream = append(in.Stream, streams[r.IntN(len(streams))])
		in.T = append(in.T, r.Int64N(4e9)-2e9)
		in.Line = append(in.Line, pick(`{"level":"warn"}`, "level=error msg=x", "Error: b", "", "a", "plain text that is rather long", "WARN c"))
		var meta []batch.Label
		if v := pick("", "t1", "t2"); v != "" {
			meta = []batch.Label{{Name: "trace", Value: v}}
		}
		in.Meta = append(in.Meta, meta)
	}
	scripts := scriptCatalog(t)
	for i := range 100 {
		src, kind := clauseOf(4), pick("drop", "keep")
		run := func(c any, sink *flowtest.Sink) string {
			sendLines(t, c, in)
			sendLines(t, c, in) // from the cache
			var out []byte
			for _, b := range sink.Logs() {
				out = batch.AppendLogsText(out, b)
			}
			return string(out)
		}
		sink := flowtest.NewSink("sink")
		got := run(build(t, componenttest.New(t, "expr.filter.f"), arguments(sink.Receiver(), kind, clause.Predicate(src))), sink)
		sink = flowtest.NewSink("sink")
		want := run(script(t, scripts, kind, src, fmt.Sprint("c", i), sink.Receiver()), sink)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%s %s (-%s_where +expr.filter):\n%s", kind, src, kind, diff)
		}
	}
}

// scriptCatalog contains the components logs.drop and logs.keep, which take an
// expression.
func scriptCatalog(t *testing.T) component.Catalog {
	files := fstest.MapFS{}
	for _, kind := range []string{"drop", "keep"} {
		files["logs/"+kind+".lua"] = &fstest.MapFile{Data: []byte(`local weir = require "weir"
return weir.transform {
	args = { clause = weir.arg.string {} },
	logs = function(batch, ctx) batch:` + kind + `_where(ctx.args.clause) end,
}`)}
	}
	c, err := registry.NewCatalog(registry.Options{Languages: []scripting.Language{lua.New()}, Embedded: files})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func script(t *testing.T, scripts component.Catalog, kind, src, label string, to *flow.Receiver) component.Component {
	t.Helper()
	r, _ := scripts.Lookup("logs." + kind)
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	c, ds := config.Parse(map[string]string{"c.alloy": fmt.Sprintf("logs.%s %q {\nclause = %q\nforward_to = [to.x.receiver]\nscript {\nlimits {\ntime = \"10s\"\n}\n}\n}\n", kind, label, src)})
	if len(ds) > 0 {
		t.Fatal(ds)
	}
	scope := c.NewScope("v0.0.0")
	scope.Set("to.x", struct {
		Receiver *flow.Receiver `alloy:"receiver,attr"`
	}{to})
	args := r.NewArgs()
	if ds := c.Blocks[0].Decode(scope, args); ds.HasErrors() {
		t.Fatal(ds)
	}
	return componenttest.New(t, "logs."+kind+".x").Build(t, r, args)
}
