package enrich_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/component/componenttest"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/flow/flowtest"
	"github.com/weir-run/weir/natives/prometheus/enrich"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type node interface {
	component.Component
	component.Updater
	flow.MetricsConsumer
	component.Debugger
}

// harness is a component and its sink, and the handles of the test's series.
type harness struct {
	t      *testing.T
	n      *componenttest.Node
	sink   *flowtest.Sink
	c      node
	series map[string]*batch.Series
	column map[string][]*batch.Series // by the text from which it was parsed
}

func newHarness(t *testing.T, body string) *harness {
	l := &harness{t: t, n: componenttest.New(t, "prometheus.enrich.e"), sink: flowtest.NewSink("sink"), series: map[string]*batch.Series{}, column: map[string][]*batch.Series{}}
	l.c = l.n.Build(t, enrich.Registration(), l.arguments(body)).(node)
	return l
}

func (l *harness) arguments(body string) *enrich.Arguments {
	l.t.Helper()
	a := componenttest.Arguments[*enrich.Arguments](l.t, enrich.Registration(), "forward_to = []\n"+body)
	a.ForwardTo = []*flow.Receiver{l.sink.Receiver()}
	return a
}

// want sends a batch with the same handles as before, and the same column for the
// same text, and compares the output.
func (l *harness) want(in string, want ...string) {
	l.t.Helper()
	b, err := batch.ParseText(in, batch.TextOptions{Source: 1, Series: func(ls []batch.Label, _ *batch.Metadata) *batch.Series {
		k := fmt.Sprint(ls)
		if l.series[k] == nil {
			l.series[k] = batch.NewSeries(ls)
		}
		return l.series[k]
	}})
	if err != nil {
		l.t.Fatal(err)
	}
	if l.column[in] == nil {
		l.column[in] = b.Series
	}
	b.Series = l.column[in]
	if err := l.c.ConsumeMetrics(l.t.Context(), b); err != nil {
		l.t.Fatal(err)
	}
	got := strings.TrimSpace(string(batch.AppendTextAt(nil, l.sink.Last(), 0)))
	if diff := cmp.Diff(strings.Join(want, "\n"), got); diff != "" {
		l.t.Errorf("(-want +got):\n%s", diff)
	}
}

const targets = `targets = [
	{ host = "h1", owner = "ann", zone = "a" },
	{ host = "h2", owner = "bob", zone = "" },
	{ host = "h3", owner = "old" },
	{ host = "h3", owner = "new" },
	{ owner = "nobody" },
]
`

func TestEnrich(t *testing.T) {
	f := func(body, in, want string) {
		t.Helper()
		newHarness(t, targets+body).want(in, want)
	}
	// One label with the same name and with another name.
	f(`target_match_label = "host"`, `a{host="h1"} 1`, `a{host="h1",owner="ann",zone="a"} 1`)
	f("target_match_label = \"host\"\nmetrics_match_label = \"instance\"", `a{instance="h1"} 1`, `a{host="h1",instance="h1",owner="ann",zone="a"} 1`)
	f("target_match_label = \"host\"\nmetrics_match_label = \"instance\"", `a{host="h1"} 1`, `a{host="h1"} 1`)
	// Series without a match, and without the label or with an empty one, are not
	// changed.
	f(`target_match_label = "host"`, `a{host="h9"} 1`, `a{host="h9"} 1`)
	f(`target_match_label = "host"`, `a{x="h1"} 1`, `a{x="h1"} 1`)
	// An empty label of the target removes the label; the last matching target is
	// used.
	f(`target_match_label = "host"`, `a{host="h2",zone="z"} 1`, `a{host="h2",owner="bob"} 1`)
	f(`target_match_label = "host"`, `a{host="h3"} 1`, `a{host="h3",owner="new"} 1`)
	// Selected labels only.
	f("target_match_label = \"host\"\nlabels_to_copy = [\"owner\", \"nope\"]", `a{host="h1",nope="x",zone="z"} 1`, `a{host="h1",nope="x",owner="ann",zone="z"} 1`)
	// Several labels, all of which must be equal.
	f(`target_to_metric_match = { host = "instance", zone = "zone" }`, "a{instance=\"h1\",zone=\"a\"} 1\na{instance=\"h1\",zone=\"b\"} 1\na{instance=\"h2\"} 1",
		"a{host=\"h1\",instance=\"h1\",owner=\"ann\",zone=\"a\"} 1\na{instance=\"h1\",zone=\"b\"} 1\na{instance=\"h2\"} 1")
	f("target_to_metric_match = { owner = \"who\" }", `a{host="h1",who="bob"} 1`, `a{host="h2",owner="bob",who="bob"} 1`)
	// Values are kept separate.
	f(`target_to_metric_match = { host = "a", owner = "b" }`, `m{a="h1a",b="nn"} 1`, `m{a="h1a",b="nn"} 1`)
	// Markers and histograms are processed in the same way.
	f("target_match_label = \"host\"\nlabels_to_copy = [\"owner\"]", "a{host=\"h1\"} stale\nb{host=\"h1\"} {count:1,sum:2}",
		"a{host=\"h1\",owner=\"ann\"} stale\nb{host=\"h1\",owner=\"ann\"} {count:1,sum:2}")
}

// TestTargetsChange: series whose labels change end under the old labels; other
// series are not affected.
func TestTargetsChange(t *testing.T) {
	const match = "target_match_label = \"host\"\nlabels_to_copy = [\"owner\"]\n"
	l := newHarness(t, match+`targets = [{ host = "h1", owner = "ann" }, { host = "h2", owner = "bob" }]`)
	const in = "a{host=\"h1\"} 1\na{host=\"h2\"} 2\na{host=\"h3\"} 3"
	l.want(in, `a{host="h1",owner="ann"} 1`, `a{host="h2",owner="bob"} 2`, `a{host="h3"} 3`)
	update := func(targets string) {
		t.Helper()
		if err := l.c.Update(l.arguments(match + "targets = " + targets)); err != nil {
			t.Fatal(err)
		}
	}
	update(`[{ host = "h1", owner = "eve" }, { host = "h2", owner = "bob" }, { host = "h3", owner = "dan" }]`)
	l.want(in, `a{host="h1",owner="eve"} 1`, `a{host="h2",owner="bob"} 2`, `a{host="h3",owner="dan"} 3`,
		`a{host="h1",owner="ann"} stale`, `a{host="h3"} stale`)
	l.want(in, `a{host="h1",owner="eve"} 1`, `a{host="h2",owner="bob"} 2`, `a{host="h3",owner="dan"} 3`)
	if diff := cmp.Diff("{3}", fmt.Sprint(l.c.DebugInfo())); diff != "" {
		t.Errorf("debug info (-want +got):\n%s", diff)
	}
	before := l.sink.Last().Series[1]
	update(`[{ host = "h1", owner = "eve" }, { host = "h2", owner = "bob" }, { host = "h3", owner = "dan" }]`)
	l.want("a{host=\"h1\"} 1\na{host=\"h2\"} 2\na{host=\"h3\"} 3", `a{host="h1",owner="eve"} 1`, `a{host="h2",owner="bob"} 2`, `a{host="h3",owner="dan"} 3`)
	if l.sink.Last().Series[1] != before {
		t.Error("equal targets made other handles")
	}
	update(`[]`)
	l.want(in, `a{host="h1"} 1`, `a{host="h2"} 2`, `a{host="h3"} 3`,
		`a{host="h1",owner="eve"} stale`, `a{host="h2",owner="bob"} stale`, `a{host="h3",owner="dan"} stale`)
}

// TestHandlesStay: series keep their handle through a change of targets if the
// copied labels of their own target stay the same; other derived handles are
// released.
func TestHandlesStay(t *testing.T) {
	const match = "target_match_label = \"host\"\nlabels_to_copy = [\"owner\"]\n"
	l := newHarness(t, match+`targets = [{ host = "h1", owner = "ann" }, { host = "h2", owner = "bob" }]`)
	stop := l.n.Run(t, l.c)
	sweep := func() {
		t.Helper()
		if err := l.n.Clock.WaitTimers(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		l.n.Clock.Advance(time.Minute)
		if err := l.n.Clock.WaitTimers(t.Context(), 1); err != nil { // set again afterwards
			t.Fatal(err)
		}
	}
	const in = "a{host=\"h1\"} 1\na{host=\"h2\"} 2\na{host=\"h3\"} 3"
	update := func(match, targets string) {
		t.Helper()
		if err := l.c.Update(l.arguments(match + "targets = " + targets)); err != nil {
			t.Fatal(err)
		}
	}
	l.want(in, `a{host="h1",owner="ann"} 1`, `a{host="h2",owner="bob"} 2`, `a{host="h3"} 3`)
	was := l.sink.Last().Series
	update(match, `[{ host = "h4", owner = "x" }]`) // between two batches
	update(match, `[{ host = "h1", owner = "eve" }, { host = "h2", owner = "bob", other = "new" }]`)
	l.want(in, `a{host="h1",owner="eve"} 1`, `a{host="h2",owner="bob"} 2`, `a{host="h3"} 3`, `a{host="h1",owner="ann"} stale`)
	is := l.sink.Last().Series
	if was[1] != is[1] || was[2] != is[2] {
		t.Error("series whose target stays have other handles")
	}
	if was[0].Released() {
		t.Error("a handle was given back before its marker can be known")
	}
	sweep()
	sweep()
	sweep()
	if !was[0].Released() || is[0].Released() || is[1].Released() {
		t.Error("not given back, or too much")
	}
	// Other labels to copy change the series.
	update("target_match_label = \"host\"\n", `[{ host = "h2", owner = "bob" }]`)
	l.want(in, `a{host="h1"} 1`, `a{host="h2",owner="bob"} 2`, `a{host="h3"} 3`, `a{host="h1",owner="eve"} stale`)
	last := l.sink.Last().Series
	stop()
	for i, s := range []*batch.Series{is[0], is[1], last[1]} {
		if !s.Released() {
			t.Errorf("handle %d was not given back at the end", i)
		}
	}
}

// TestSideBySide: while targets change, every series has the labels of one
// version of the targets.
func TestSideBySide(t *testing.T) {
	const match = "target_match_label = \"host\"\nlabels_to_copy = [\"owner\"]\n"
	l := newHarness(t, match+`targets = [{ host = "h", owner = "0" }]`)
	var ss []*batch.Series
	for i := range 100 {
		ss = append(ss, batch.NewSeries([]batch.Label{{Name: batch.NameLabel, Value: fmt.Sprint("m", i)}, {Name: "host", Value: "h"}}))
	}
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			source := batch.NewSource()
			for range 100 {
				b := &batch.Metrics{Source: source, Series: ss, T: make([]int64, len(ss)), V: make([]float64, len(ss))}
				if err := l.c.ConsumeMetrics(t.Context(), b); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for i := range 100 {
		if err := l.c.Update(l.arguments(match + fmt.Sprintf("targets = [{ host = \"h\", owner = \"%d\" }]", i%3))); err != nil {
			t.Fatal(err)
		}
	}
	wg.Wait()
	for _, b := range l.sink.Batches() {
		for i, s := range b.Series {
			if o := s.Label("owner"); i < len(ss) && o != "0" && o != "1" && o != "2" {
				t.Fatalf("got %s", s)
			}
		}
	}
}

func TestMistakes(t *testing.T) {
	f := func(body, want string) {
		t.Helper()
		_, got := componenttest.Decode[*enrich.Arguments](enrich.Registration(), body)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	f("forward_to = []", "c.alloy:1:1: missing required attribute targets")
	f("forward_to = []\ntargets = []", "c.alloy:1:1: there is nothing to match by: set target_to_metric_match, or target_match_label")
	f("forward_to = []\ntargets = []\nmetrics_match_label = \"a\"", "c.alloy:4:1: metrics_match_label needs target_match_label, or target_to_metric_match in place of both")
	f("forward_to = []\ntargets = []\ntarget_to_metric_match = { a = \"\" }", "c.alloy:4:1: target_to_metric_match has a label without a name, which nothing matches")
	f("forward_to = []\ntargets = []\ntarget_match_label = \"a\"\nlabels_to_copy = [\"\"]", "c.alloy:5:1: labels_to_copy has a label without a name")
	f("forward_to = []\ntargets = []\ntarget_match_label = \"a\"\nmetrics_match_label = \"b\"\ntarget_to_metric_match = { a = \"b\" }",
		"c.alloy:4:1: warning: target_match_label has no effect when target_to_metric_match is set\nc.alloy:5:1: warning: metrics_match_label has no effect when target_to_metric_match is set")
}
