package route_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/component/componenttest"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/flow/flowtest"
	"github.com/weir-run/weir/natives/expr/internal/clause"
	"github.com/weir-run/weir/natives/expr/route"
)

type node interface {
	component.Component
	component.Updater
	flow.MetricsConsumer
}

// harness is a component, sinks by name, and the handles of the test's series.
type harness struct {
	t      *testing.T
	n      *componenttest.Node
	sinks  map[string]*flowtest.Sink
	c      node
	series map[string]*batch.Series
}

// newHarness builds routes, each as "when -> sink sink", and the last one as "->
// sink" for the rest.
func newHarness(t *testing.T, routes ...string) *harness {
	l := &harness{t: t, n: componenttest.New(t, "expr.route.r"), sinks: map[string]*flowtest.Sink{}, series: map[string]*batch.Series{}}
	l.c = l.n.Build(t, route.Registration(), l.arguments(routes...)).(node)
	return l
}

func (l *harness) arguments(routes ...string) *route.Arguments {
	a := &route.Arguments{}
	for i, r := range routes {
		when, to, _ := strings.Cut(r, "-> ")
		var rs []*flow.Receiver
		for _, name := range strings.Fields(to) {
			if l.sinks[name] == nil {
				l.sinks[name] = flowtest.NewSink(name)
			}
			rs = append(rs, l.sinks[name].Receiver())
		}
		if i == len(routes)-1 && strings.TrimSpace(when) == "" {
			a.ForwardTo = rs
			continue
		}
		a.Routes = append(a.Routes, &route.Route{Name: fmt.Sprint("r", i), When: clause.Predicate(strings.TrimSpace(when)), ForwardTo: rs})
	}
	return a
}

func (l *harness) update(routes ...string) {
	l.t.Helper()
	if err := l.c.Update(l.arguments(routes...)); err != nil {
		l.t.Fatal(err)
	}
}

// parse gives the same series the same handles in every batch.
func (l *harness) parse(text string) *batch.Metrics {
	l.t.Helper()
	b, err := batch.ParseText(text, batch.TextOptions{Source: 1, Series: func(ls []batch.Label, m *batch.Metadata) *batch.Series {
		k := fmt.Sprint(ls)
		if l.series[k] == nil {
			l.series[k] = batch.NewSeries(ls)
		}
		return l.series[k]
	}})
	if err != nil {
		l.t.Fatal(err)
	}
	return b
}

// receivedSince returns the data that each sink has received since before, in one
// line each.
func (l *harness) receivedSince(before map[string]int) map[string]string {
	out := map[string]string{}
	for name, s := range l.sinks {
		var lines []string
		for _, b := range s.Batches()[before[name]:] {
			for line := range strings.Lines(string(batch.AppendTextAt(nil, b, 0))) {
				lines = append(lines, strings.TrimSpace(line))
			}
		}
		if len(lines) > 0 {
			out[name] = strings.Join(lines, ", ")
		}
	}
	return out
}

func (l *harness) counts() map[string]int {
	n := map[string]int{}
	for name, s := range l.sinks {
		n[name] = len(s.Batches())
	}
	return n
}

// want sends a batch and compares the output of each sink: "sink: a 1, b 2".
func (l *harness) want(in string, want ...string) {
	l.t.Helper()
	before := l.counts()
	if err := l.c.ConsumeMetrics(l.t.Context(), l.parse(in)); err != nil {
		l.t.Fatal(err)
	}
	l.wantSince(before, want...)
}

func (l *harness) wantSince(before map[string]int, want ...string) {
	l.t.Helper()
	m := map[string]string{}
	for _, w := range want {
		name, text, _ := strings.Cut(w, ": ")
		m[name] = text
	}
	if diff := cmp.Diff(m, l.receivedSince(before)); diff != "" {
		l.t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestFirstMatchWins(t *testing.T) {
	l := newHarness(t, `labels.env == "prod" -> prod`, `labels.env == "prod" || labels.env == "dev" -> dev`, `-> rest`)
	in := "a{env=\"prod\"} 1\na{env=\"dev\"} 2\na 3\nb{env=\"prod\"} 4"
	for range 2 { // the second run uses the cache
		l.want(in, `prod: a{env="prod"} 1, b{env="prod"} 4`, `dev: a{env="dev"} 2`, `rest: a 3`)
	}
}

func TestValues(t *testing.T) {
	l := newHarness(t, `value > 100 -> high`, `labels.x == "1" && value > 10 -> x`, `labels.x == "1" -> low`, `-> rest`)
	l.want("a 101\na 5\na{x=\"1\"} 101\na{x=\"1\"} 11\na{x=\"1\"} 1",
		`high: a 101, a{x="1"} 101`, `rest: a 5`, `x: a{x="1"} 11`, `low: a{x="1"} 1`)
	// A histogram has no value, so only the labels decide: the part of the second
	// route that reads them is true.
	l.want("a{x=\"1\"} {count:1,sum:500}\na {count:1,sum:500}", `x: a{x="1"} {count:1,sum:500}`, `rest: a {count:1,sum:500}`)
}

// TestMarkerFollowsSamples: a marker ends a series at all receivers of its
// samples, once.
func TestMarkerFollowsSamples(t *testing.T) {
	l := newHarness(t, `value > 100 -> high`, `-> rest`)
	l.want("a 101", "high: a 101")
	l.want("a 5", "rest: a 5")
	l.want("a stale", "high: a stale", "rest: a stale")
	l.want("a 5", "rest: a 5")
	l.want("a stale", "rest: a stale")
	l.want("b stale", "rest: b stale") // unknown series: its labels decide
}

func TestSharedReceivers(t *testing.T) {
	l := newHarness(t, `labels.env == "prod" -> all prod`, `labels.env == "dev" -> all`, `-> rest all all`)
	l.want("a{env=\"prod\"} 1\na{env=\"dev\"} 2\na 3",
		`all: a{env="prod"} 1, a{env="dev"} 2, a 3`, `prod: a{env="prod"} 1`, `rest: a 3`)
	// Another route to the same receiver ends nothing there.
	l.update(`labels.env == "dev" -> all`, `-> rest all`)
	l.want("a{env=\"prod\"} 1\na{env=\"dev\"} 2\na 3",
		`all: a{env="prod"} 1, a{env="dev"} 2, a 3`, `prod: a{env="prod"} stale 1`, `rest: a{env="prod"} 1, a 3`)
}

func TestNowhere(t *testing.T) {
	l := newHarness(t, `labels.env == "prod" -> prod`, `labels.env == "dev" -> `, `-> `)
	l.want("a{env=\"prod\"} 1\na{env=\"dev\"} 2\na 3\nb 4", `prod: a{env="prod"} 1`)
	if diff := cmp.Diff(map[string]uint64{"no_receiver": 3}, l.n.Stats.Dropped()); diff != "" {
		t.Errorf("dropped (-want +got):\n%s", diff)
	}
}

func TestChangeEndsSeries(t *testing.T) {
	l := newHarness(t, `labels.env == "prod" -> prod`, `-> rest`)
	in := "a{env=\"prod\"} 1\na 3"
	l.want(in, `prod: a{env="prod"} 1`, `rest: a 3`)
	l.update(`labels.env == "dev" -> prod`, `-> rest`)
	l.want(in, `prod: a{env="prod"} stale`, `rest: a{env="prod"} 1, a 3`)
	// The route is removed and added again.
	l.update(`labels.env == "prod" -> other`, `-> rest`)
	l.want(in, `other: a{env="prod"} 1`, `rest: a 3, a{env="prod"} stale`)
	l.update(`labels.env == "prod" -> prod`, `-> rest`)
	l.want(in, `prod: a{env="prod"} 1`, `other: a{env="prod"} stale 1`, `rest: a 3`)
	l.want(in, `prod: a{env="prod"} 1`, `rest: a 3`)
	// A rebuild is not a change.
	l.n.Previous = l.c
	l.c = l.n.Build(t, route.Registration(), l.arguments(`labels.env == "prod" -> prod`, `-> rest`)).(node)
	l.want(in, `prod: a{env="prod"} 1`, `rest: a 3`)
}

// TestLeavingReceiver: a route is removed and its receiver leaves the graph
// before the next batch of the source.
func TestLeavingReceiver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newHarness(t, `labels.env == "prod" -> prod`, `-> rest`)
		l.n.Run(t, l.c)
		l.want("a{env=\"prod\"} 1\na 3", `prod: a{env="prod"} 1`, `rest: a 3`)
		before := l.counts()
		l.sinks["prod"].Receiver().SetLeaving(true)
		l.update(`labels.env == "dev" -> rest`, `-> rest`)
		synctest.Wait()
		l.n.Clock.Advance(time.Second)
		synctest.Wait()
		l.wantSince(before, `prod: a{env="prod"} stale 1`)
		l.want("a{env=\"prod\"} 1\na 3", `rest: a{env="prod"} 1, a 3`)
	})
}

// TestPartial: one receiver refuses, and only that one is retried.
func TestPartial(t *testing.T) {
	l := newHarness(t, `labels.env == "prod" -> prod`, `-> rest`)
	l.sinks["prod"].Refuse(flowtest.ErrRefused)
	before := l.counts()
	err := l.c.ConsumeMetrics(t.Context(), l.parse("a{env=\"prod\"} 1\na 3"))
	var p *flow.Partial
	if !errors.As(err, &p) || !errors.Is(err, flowtest.ErrRefused) || p.Len() != 1 {
		t.Fatalf("got %v, want a *flow.Partial of one sample", err)
	}
	l.wantSince(before, `rest: a 3`)
	l.sinks["prod"].Refuse(nil)
	before = l.counts()
	if err := p.Retry(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.wantSince(before, `prod: a{env="prod"} 1`)

	// Both refuse after a change: the markers stay pending.
	l.sinks["prod"].Refuse(flowtest.ErrRefused)
	l.sinks["rest"].Refuse(flowtest.ErrRefused)
	l.update(`labels.env == "dev" -> prod`, `-> rest`)
	if err := l.c.ConsumeMetrics(t.Context(), l.parse("a{env=\"prod\"} 1\na 3")); !errors.As(err, &p) || len(p.Refused()) != 2 {
		t.Fatalf("got %v, want a *flow.Partial of two", err)
	}
	l.sinks["prod"].Refuse(nil)
	l.sinks["rest"].Refuse(nil)
	l.want("a{env=\"prod\"} 1\na 3", `prod: a{env="prod"} stale`, `rest: a{env="prod"} 1, a 3`)
}

// TestBlockedWay: a receiver that blocks does not delay another one.
func TestBlockedWay(t *testing.T) {
	l := newHarness(t, `labels.env == "prod" -> prod`, `-> rest`)
	gate := flow.NewReceiver("blocked", batch.SignalMetrics, nil, nil) // without a consumer
	a := l.arguments(`labels.env == "prod" -> prod`, `-> rest`)
	a.Routes[0].ForwardTo = []*flow.Receiver{gate}
	if err := l.c.Update(a); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- l.c.ConsumeMetrics(ctx, l.parse("a{env=\"prod\"} 1\na 3")) }()
	if _, err := l.sinks["rest"].Wait(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that nothing was accepted there", err)
	}
}

func TestFailures(t *testing.T) {
	l := newHarness(t, `int(labels.code) >= 500 -> errors`, `labels.code startsWith "x" -> x`, `-> rest`)
	l.want("a{code=\"503\"} 1\na{code=\"x1\"} 1\na{code=\"y\"} 1\na{code=\"200\"} 1",
		`errors: a{code="503"} 1`, `x: a{code="x1"} 1`, `rest: a{code="y"} 1, a{code="200"} 1`)
	if h := l.n.Health(); h.State != component.Unhealthy || !strings.HasPrefix(h.Message, "when: ") {
		t.Errorf("got health %+v", h)
	}
}

func TestMistakes(t *testing.T) {
	f := func(body, want string) {
		t.Helper()
		_, got := componenttest.Decode[*route.Arguments](route.Registration(), body)
		if diff := cmp.Diff(strings.TrimSpace(want), got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	const one = "route %q {\n  when = %q\n  forward_to = []\n}\n"
	f("", "c.alloy:1:1: missing required attribute forward_to\nc.alloy:1:1: missing required block route")
	f("forward_to = []\n"+fmt.Sprintf(one, "a", "true")+fmt.Sprintf(one, "a", "false"), `c.alloy:3:1: there are two blocks route "a"`)
	f("forward_to = []\n"+fmt.Sprintf(one, "a", "value"), `
c.alloy:4:10: route.when: cannot use expression: it must be true or false, not a number (1:1)
   | value
   | ^
   'weir help expr' describes expressions`)
	f("forward_to = []\nroute \"a\" { }", "c.alloy:3:1: missing required attribute route.forward_to (write: forward_to = …, or [] to send to no receiver)\nc.alloy:3:1: missing required attribute route.when")
	var many strings.Builder
	for i := range 64 {
		fmt.Fprintf(&many, one, fmt.Sprint("r", i), "true")
	}
	f("forward_to = []\n"+many.String(), `c.alloy:3:1: 64 route blocks are more than the 63 allowed; send the rest to another expr.route`)
}

// Explain returns the route that a record takes, or that drops it because it has no receivers.
func TestExplain(t *testing.T) {
	f := func(in string, sent bool, want component.Step, routes ...string) {
		t.Helper()
		l := newHarness(t, routes...)
		one := flow.Batches{Metrics: []*batch.Metrics{l.parse(in)}}
		got, err := l.c.(component.Explainer).Explain(t.Context(), one)
		if err != nil || len(got) != 1 {
			t.Fatalf("%v: got %+v, %v", routes, got, err)
		}
		if (got[0].After.Len() == 1) != sent {
			t.Errorf("%v: %d records are left", routes, got[0].After.Len())
		}
		got[0].After = flow.Batches{}
		if diff := cmp.Diff(want, got[0]); diff != "" {
			t.Errorf("%v (-want +got):\n%s", routes, diff)
		}
	}
	f("up 1", true, component.Step{Kind: "route", Index: 1, Name: "r0", Detail: "when = value > 0"}, "value > 0 -> a", "-> ")
	f("up 0", false, component.Step{Kind: "route", Name: "forward_to", Detail: "no route matches; no receivers of metrics"}, "value > 0 -> a", "-> ")
	f("up 0", true, component.Step{Kind: "route", Name: "forward_to", Detail: "no route matches"}, "value > 0 -> a", "-> b")
	f("up 2", false, component.Step{Kind: "route", Index: 2, Name: "r1", Detail: `when = name == "up"; no receivers of metrics`}, "value > 2 -> a", `name == "up" -> `, "-> b")
}
