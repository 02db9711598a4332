package enrich_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/component/componenttest"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/flow/flowtest"
	"github.com/weir-run/weir/natives/loki/enrich"
)

type node interface {
	component.Component
	component.Updater
	component.Debugger
	flow.LogsConsumer
}

// harness is a component and its sink, and the handles of the test's streams.
type harness struct {
	t       *testing.T
	n       *componenttest.Node
	sink    *flowtest.Sink
	c       node
	streams map[string]*batch.Stream
}

func newHarness(t *testing.T, body string) *harness {
	l := &harness{t: t, n: componenttest.New(t, "loki.enrich.e"), sink: flowtest.NewSink("sink"), streams: map[string]*batch.Stream{}}
	l.c = l.n.Build(t, enrich.Registration(), l.arguments(body)).(node)
	return l
}

func (l *harness) arguments(body string) *enrich.Arguments {
	l.t.Helper()
	a := componenttest.Arguments[*enrich.Arguments](l.t, enrich.Registration(), "forward_to = []\n"+body)
	a.ForwardTo = []*flow.Receiver{l.sink.Receiver()}
	return a
}

// want sends lines with the same handles as before and compares the output.
func (l *harness) want(in, want string) *batch.Logs {
	l.t.Helper()
	b, err := batch.ParseLogsText(in, batch.TextOptions{Source: 1})
	if err != nil {
		l.t.Fatal(err)
	}
	for i, s := range b.Stream {
		k := string(batch.AppendStream(nil, s))
		if l.streams[k] == nil {
			l.streams[k] = s
		}
		b.Stream[i] = l.streams[k]
	}
	if err := l.c.ConsumeLogs(l.t.Context(), b); err != nil {
		l.t.Fatal(err)
	}
	out := l.sink.LastLogs()
	if diff := cmp.Diff(want, strings.TrimSpace(string(batch.AppendLogsTextAt(nil, out, 0)))); diff != "" {
		l.t.Errorf("(-want +got):\n%s", diff)
	}
	return out
}

const targets = `targets = [
	{ host = "h1", owner = "ann", zone = "a" },
	{ host = "h2", owner = "bob", zone = "" },
	{ host = "h3", owner = "old" },
	{ host = "h3", owner = "new" },
	{ owner = "nobody" },
]
target_match_label = "host"
`

func TestEnrich(t *testing.T) {
	f := func(body, in, want string) {
		t.Helper()
		newHarness(t, targets+body).want(in, want)
	}
	f("", `{host="h1"} line`, `{host="h1",owner="ann",zone="a"} line`)
	f("", `{host="h1"} {trace_id="t"} line`, `{host="h1",owner="ann",zone="a"} {trace_id="t"} line`)
	f(`logs_match_label = "instance"`, `{instance="h1"} line`, `{host="h1",instance="h1",owner="ann",zone="a"} line`)
	f(`logs_match_label = "instance"`, `{host="h1"} line`, `{host="h1"} line`)
	// A stream without a match is not changed.
	f("", "{host=\"h9\"} line\n{x=\"h1\"} line\n{host=\"h1\"} line", "{host=\"h9\"} line\n{x=\"h1\"} line\n{host=\"h1\",owner=\"ann\",zone=\"a\"} line")
	// The last matching target is used.
	f("", `{host="h3"} line`, `{host="h3",owner="new"} line`)
	// An empty label of the target removes the label, unless labels are selected.
	f("", `{host="h2",zone="z"} line`, `{host="h2",owner="bob"} line`)
	f(`labels_to_copy = ["owner", "zone", "nope"]`, `{host="h2",nope="x",zone="z"} line`, `{host="h2",nope="x",owner="bob",zone="z"} line`)
	f(`labels_to_copy = ["owner"]`, `{host="h1",zone="z"} line`, `{host="h1",owner="ann",zone="z"} line`)
}

// TestTargetsChange: streams whose target changes get its labels with the next
// batch; the other streams keep their handle.
func TestTargetsChange(t *testing.T) {
	const match = "target_match_label = \"host\"\nlabels_to_copy = [\"owner\"]\n"
	l := newHarness(t, match+`targets = [{ host = "h1", owner = "ann" }, { host = "h2", owner = "bob" }]`)
	stop := l.n.Run(t, l.c)
	update := func(targets string) {
		t.Helper()
		if err := l.c.Update(l.arguments(match + "targets = " + targets)); err != nil {
			t.Fatal(err)
		}
	}
	const in = "{host=\"h1\"} one\n{host=\"h2\"} two"
	was := l.want(in, "{host=\"h1\",owner=\"ann\"} one\n{host=\"h2\",owner=\"bob\"} two").Stream
	update(`[{ host = "h1", owner = "eve" }, { host = "h2", owner = "bob", other = "x" }]`)
	is := l.want(in, "{host=\"h1\",owner=\"eve\"} one\n{host=\"h2\",owner=\"bob\"} two").Stream
	if was[1] != is[1] || was[0] == is[0] {
		t.Error("handles do not follow their targets")
	}
	l.n.Previous = l.c
	l.c = l.n.Build(t, enrich.Registration(), l.arguments(match+`targets = []`)).(node)
	stop2 := l.n.Run(t, l.c)
	if err := l.n.Clock.WaitTimers(t.Context(), 4); err != nil { // two for each running component
		t.Fatal(err)
	}
	stop()
	l.want(in, in)
	stop2()
	if !was[0].Released() || !is[0].Released() || !is[1].Released() {
		t.Error("handles were not given back at the end")
	}
}

func TestDebugInfo(t *testing.T) {
	if diff := cmp.Diff("{3}", fmt.Sprint(newHarness(t, targets).c.DebugInfo())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
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
	f("forward_to = []\ntargets = []", "c.alloy:1:1: missing required attribute target_match_label")
	f("forward_to = []\ntargets = []\ntarget_match_label = \"\"\nlabels_to_copy = [\"\"]", "c.alloy:4:1: target_match_label is empty: there is nothing to match by\nc.alloy:5:1: labels_to_copy has a label without a name")
}
