package filter_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	exprlang "github.com/expr-lang/expr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/component/componenttest"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/flow/flowtest"
	"github.com/weir-run/weir/natives/expr/filter"
	"github.com/weir-run/weir/natives/expr/internal/clause"
)

func arguments(to *flow.Receiver, kind string, src clause.Predicate) *filter.Arguments {
	a := &filter.Arguments{Drop: &src, ForwardTo: []*flow.Receiver{to}}
	if kind == "keep" {
		a.Drop, a.Keep = nil, &src
	}
	return a
}

type node interface {
	component.Component
	component.Updater
	flow.MetricsConsumer
}

func build(t testing.TB, n *componenttest.Node, a *filter.Arguments) node {
	t.Helper()
	return n.Build(t, filter.Registration(), a).(node)
}

func parse(t testing.TB, text string) *batch.Metrics {
	t.Helper()
	b, err := batch.ParseText(text, batch.TextOptions{})
	if err != nil {
		t.Fatal(err)
	}
	b.Source = 1
	return b
}

func send(t testing.TB, c node, b *batch.Metrics) {
	t.Helper()
	if err := c.ConsumeMetrics(t.Context(), b); err != nil {
		t.Fatal(err)
	}
}

func text(b *batch.Metrics) string {
	if b == nil {
		return ""
	}
	return strings.TrimSpace(string(batch.AppendTextAt(nil, b, 0)))
}

func TestFilter(t *testing.T) {
	const in = `
# TYPE up gauge
up{job="a"} 1
up{job="b"} 0
up{job="c"} stale
# TYPE lat histogram
lat{job="a"} {count:3,sum:4}
lat{job="b"} {count:3,sum:4}`
	f := func(kind string, src clause.Predicate, want ...string) {
		t.Helper()
		sink := flowtest.NewSink("sink")
		n := componenttest.New(t, "expr.filter.f")
		c := build(t, n, arguments(sink.Receiver(), kind, src))
		b := parse(t, in)
		send(t, c, b)
		var got []string
		if out := sink.Last(); out != nil {
			for _, s := range out.Series {
				got = append(got, s.String())
			}
			if out.Source != b.Source {
				t.Errorf("%s %s: the source became %d", kind, src, out.Source)
			}
			if len(want) == b.Len() && &out.Series[0] != &b.Series[0] {
				t.Errorf("%s %s: nothing is dropped, and the batch is copied", kind, src)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s %s (-want +got):\n%s", kind, src, diff)
		}
		if got := n.Stats.Dropped()["filter"]; got != uint64(b.Len()-len(want)) {
			t.Errorf("%s %s: %d counted as dropped", kind, src, got)
		}
	}
	const a, b, c, ha, hb = `up{job="a"}`, `up{job="b"}`, `up{job="c"}`, `lat{job="a"}`, `lat{job="b"}`
	f("drop", `false`, a, b, c, ha, hb)
	f("drop", `true`)
	f("keep", `true`, a, b, c, ha, hb)
	f("keep", `false`)
	f("drop", `labels.job == "a"`, b, c, hb)
	f("keep", `labels.job == "a"`, a, ha)
	f("drop", `name == "lat"`, a, b, c)
	f("keep", `type == "histogram"`, ha, hb)
	f("drop", `labels.nope != ""`, a, b, c, ha, hb)
	// An expression about values affects neither markers nor histograms.
	f("drop", `value == 0`, a, c, ha, hb)
	f("keep", `value == 0`, b, c, ha, hb)
	f("drop", `labels.job in ["b", "c"] && value >= 0`, a, ha)
	f("keep", `labels.job in ["b", "c"] && value > 0`, c, hb)
	f("drop", `value > 0 || labels.job == "b"`, c, ha)
}

func TestEveryColumnStays(t *testing.T) {
	sink := flowtest.NewSink("sink")
	c := build(t, componenttest.New(t, "expr.filter.f"), arguments(sink.Receiver(), "drop", `labels.x == "1"`))
	b := parse(t, `# TYPE a_total counter
a_total{x="0"} 1 10 st@5 # {t="1"} 1
a_total{x="1"} 2 10
a_total{x="2"} NaN(0x7ff8000000000123) 11
# TYPE h histogram
h{x="1"} {count:1,sum:2} 12
h{x="3"} {count:3,sum:4} 13`)
	send(t, c, b)
	want := string(batch.AppendText(nil, b.Rows([]int{0, 2, 4})))
	if diff := cmp.Diff(want, string(batch.AppendText(nil, sink.Last()))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestColumnAgain: a source sends the same column of series with other values,
// then another column, like scrapes.
func TestColumnAgain(t *testing.T) {
	f := func(src clause.Predicate, drop func(job string, v float64) bool, sharesColumn bool) {
		t.Helper()
		sink := flowtest.NewSink("sink")
		n := componenttest.New(t, "expr.filter.f")
		c := build(t, n, arguments(sink.Receiver(), "drop", src))
		dropped := uint64(0)
		check := func(b *batch.Metrics) *batch.Metrics {
			t.Helper()
			var rows []int
			for i, s := range b.Series {
				if drop(s.Label("job"), b.V[i]) {
					dropped++
				} else {
					rows = append(rows, i)
				}
			}
			send(t, c, b)
			want := string(batch.AppendText(nil, b.Rows(rows)))
			if diff := cmp.Diff(want, string(batch.AppendText(nil, sink.Last()))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", src, diff)
			}
			if got := n.Stats.Dropped()["filter"]; got != dropped {
				t.Errorf("%s: %d dropped, want %d", src, got, dropped)
			}
			return sink.Last()
		}
		b := parse(t, "up{job=\"a\"} 0\nup{job=\"b\"} 0\nup{job=\"c\"} 0\nup{job=\"d\"} 0\n")
		first := check(b)
		for round := range 4 {
			next := *b
			next.V = []float64{0, float64(round), 2, float64(round % 2 * 3)}
			if out := check(&next); sharesColumn && &out.Series[0] != &first.Series[0] {
				t.Errorf("%s: another column of series", src)
			}
		}
		gone := *b
		gone.Series = []*batch.Series{b.Series[1], b.Series[0], b.Series[3], b.Series[2]}
		gone.V = []float64{0, 2, 1, 0}
		check(&gone)
	}
	f(`labels.job in ["a", "d"]`, func(job string, _ float64) bool { return job == "a" || job == "d" }, true)
	f(`value > 1`, func(_ string, v float64) bool { return v > 1 }, false)
	f(`labels.job in ["b", "d"] && value > 1`, func(job string, v float64) bool { return (job == "b" || job == "d") && v > 1 }, false)
	f(`labels.job == "b" || value > 1`, func(job string, v float64) bool { return job == "b" || v > 1 }, false)
	f(`labels.job == "x"`, func(string, float64) bool { return false }, true)
}

// TestFailures: a sample on which the expression fails is not changed.
func TestFailures(t *testing.T) {
	sink := flowtest.NewSink("sink")
	n := componenttest.New(t, "expr.filter.f")
	c := build(t, n, arguments(sink.Receiver(), "drop", `int(labels.code) >= 500`))
	bad := parse(t, "a{code=\"500\"} 1\na{code=\"x\"} 1\na{code=\"y\"} 1\na{code=\"200\"} 1")
	send(t, c, bad)
	if diff := cmp.Diff("a{code=\"x\"} 1\na{code=\"y\"} 1\na{code=\"200\"} 1", text(sink.Last())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	h := n.Health()
	if h.State != component.Unhealthy || !strings.Contains(h.Message, `drop: `) || !strings.Contains(h.Message, `a{code="x"}`) {
		t.Errorf("got health %+v", h)
	}
	send(t, c, bad)
	if got := strings.Count(n.Logs(), "expression failed"); got != 1 {
		t.Errorf("got %d lines in the log, want 1:\n%s", got, n.Logs())
	}
	want := `
# HELP weir_expr_errors_total Samples and log lines on which an expression failed, by the argument it is in. They were forwarded unchanged.
# TYPE weir_expr_errors_total counter
weir_expr_errors_total{argument="drop",component_id="expr.filter.f"} 4
weir_expr_errors_total{argument="keep",component_id="expr.filter.f"} 0
`
	if err := testutil.GatherAndCompare(n.Registry, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
	// Another source has no failures while this one still fails; then it does not
	// fail any more.
	fine := parse(t, `a{code="200"} 1`)
	fine.Source = 2
	send(t, c, fine)
	if n.Health().State != component.Unhealthy {
		t.Error("healthy while a source fails")
	}
	fine = parse(t, `a{code="200"} 1`)
	send(t, c, fine)
	if n.Health().State != component.Healthy {
		t.Errorf("got health %+v after the last failing source mended", n.Health())
	}
}

func TestChangeEndsSeries(t *testing.T) {
	sink := flowtest.NewSink("sink")
	n := componenttest.New(t, "expr.filter.f")
	c := build(t, n, arguments(sink.Receiver(), "drop", `labels.x == "1"`))
	b := parse(t, "a{x=\"1\"} 1\na{x=\"2\"} 1")
	send(t, c, b)
	if err := c.Update(arguments(sink.Receiver(), "drop", `labels.x == "2"`)); err != nil {
		t.Fatal(err)
	}
	send(t, c, b)
	if diff := cmp.Diff("a{x=\"1\"} 1\na{x=\"2\"} stale", text(sink.Last())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	send(t, c, b)
	if diff := cmp.Diff("a{x=\"1\"} 1", text(sink.Last())); diff != "" {
		t.Errorf("one batch later (-want +got):\n%s", diff)
	}
	// The same expression in another component is not a change.
	n.Previous = c
	next := build(t, n, arguments(sink.Receiver(), "drop", `labels.x == "2"`))
	send(t, next, b)
	if diff := cmp.Diff("a{x=\"1\"} 1", text(sink.Last())); diff != "" {
		t.Errorf("after a rebuild (-want +got):\n%s", diff)
	}
	// drop and keep with the same expression differ.
	if err := next.Update(arguments(sink.Receiver(), "keep", `labels.x == "2"`)); err != nil {
		t.Fatal(err)
	}
	send(t, next, b)
	if diff := cmp.Diff("a{x=\"2\"} 1\na{x=\"1\"} stale", text(sink.Last())); diff != "" {
		t.Errorf("after keep (-want +got):\n%s", diff)
	}
}

// TestAgainstExprLang compares with expr-lang's own machine.
func TestAgainstExprLang(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 7))
	pick := func(ss ...string) string { return ss[r.IntN(len(ss))] }
	var atom func(d int) string
	atom = func(d int) string {
		if d > 0 && r.IntN(3) > 0 {
			return "(" + atom(d-1) + pick(" && ", " || ") + atom(d-1) + ")"
		}
		return pick("", "!") + "(" + pick(`labels.job == "a"`, `labels.job in ["b", "c"]`, `name startsWith "u"`, `value > 1`, `value < time`,
			`labels.zone != ""`, `len(labels.job) > value`, `type == "gauge"`, `labels.job matches "^[ab]$"`, `time % 2 == 0`,
			`max(value, 1) > 2`, `value / 2 == 1`) + ")"
	}
	var lines []string
	for _, name := range []string{"up", "down", "u"} {
		for _, job := range []string{"a", "b", "c", "dd"} {
			for _, zone := range []string{"", `,zone="z"`} {
				lines = append(lines, name+`{job="`+job+`"`+zone+`} `+pick("0", "1", "2", "3.5", "-1", "NaN")+" "+pick("1", "2", "1000"))
			}
		}
	}
	b := parse(t, strings.Join(lines, "\n"))
	for range 300 {
		src := atom(4)
		for _, kind := range []string{"drop", "keep"} {
			sink := flowtest.NewSink("sink")
			c := build(t, componenttest.New(t, "expr.filter.f"), arguments(sink.Receiver(), kind, clause.Predicate(src)))
			send(t, c, b)
			send(t, c, b) // from the cache
			var want []*batch.Series
			for i, s := range b.Series {
				env := map[string]any{"name": s.Name(), "value": b.V[i], "time": int(b.T[i]), "type": "unknown"}
				ls := map[string]string{}
				for n, v := range s.Labels() {
					if n != "__name__" {
						ls[n] = v
					}
				}
				env["labels"] = ls
				prog, err := exprlang.Compile(src, exprlang.Env(env))
				if err != nil {
					t.Fatalf("%s: %v", src, err)
				}
				out, err := exprlang.Run(prog, env)
				if err != nil {
					t.Fatalf("%s: %v", src, err)
				}
				if out.(bool) == (kind == "keep") {
					want = append(want, s)
				}
			}
			var got []*batch.Series
			for _, out := range sink.Batches() {
				got = append(got, out.Series...)
			}
			want = append(want, want...)
			if !cmp.Equal(want, got, cmp.Comparer(func(a, b *batch.Series) bool { return a == b })) {
				t.Fatalf("%s %s: got %v, want %v", kind, src, got, want)
			}
		}
	}
}

func TestMistakes(t *testing.T) {
	f := func(body, want string) {
		t.Helper()
		_, got := componenttest.Decode[*filter.Arguments](filter.Registration(), body)
		if diff := cmp.Diff(strings.TrimSpace(want), got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	f("forward_to = []", `c.alloy:1:1: one of drop and keep must be set`)
	f("forward_to = []\ndrop = \"true\"\nkeep = \"true\"", `c.alloy:3:1: drop and keep cannot both be set: drop what is true, or keep only that`)
	f("forward_to = []\n  drop = \"\"", `c.alloy:3:10: drop: cannot use expression: it is empty
   'weir help expr' describes expressions`)
	f("forward_to = []\ndrop = \"lables.x == 'a'\"", `
c.alloy:3:8: drop: cannot use expression: unknown name lables (1:1)
   | lables.x == 'a'
   | ^
   'weir help expr' describes expressions`)
	f("forward_to = []\nkeep = \"name\"", `
c.alloy:3:8: keep: cannot use expression: it must be true or false, not a string (1:1)
   | name
   | ^
   'weir help expr' describes expressions`)
	f("forward_to = []\nkeep = \"value > args.x\"", `
c.alloy:3:8: keep: cannot use expression: args has no "x"; it is empty (1:14)
   | value > args.x
   |              ^
   'weir help expr' describes expressions`)
	f("keep = \"value >\"", `
c.alloy:1:1: missing required attribute forward_to
c.alloy:2:8: keep: cannot use expression: unexpected token EOF (1:7)
   | value >
   |       ^
   'weir help expr' describes expressions`)
}
