package relabel_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/component/componenttest"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/flow/flowtest"
	"github.com/weir-run/weir/natives/loki/relabel"
)

type node interface {
	component.Component
	component.Updater
	flow.LogsConsumer
}

// harness is a component and its sink.
type harness struct {
	t    *testing.T
	n    *componenttest.Node
	sink *flowtest.Sink
	c    node
}

func newHarness(t *testing.T, rules string) *harness {
	l := &harness{t: t, n: componenttest.New(t, "loki.relabel.r"), sink: flowtest.NewSink("sink")}
	l.c = l.n.Build(t, relabel.Registration(), l.arguments(rules)).(node)
	return l
}

func (l *harness) arguments(rules string) *relabel.Arguments {
	l.t.Helper()
	a := componenttest.Arguments[*relabel.Arguments](l.t, relabel.Registration(), "forward_to = []\n"+rules)
	a.ForwardTo = []*flow.Receiver{l.sink.Receiver()}
	return a
}

func (l *harness) update(rules string) {
	l.t.Helper()
	if err := l.c.Update(l.arguments(rules)); err != nil {
		l.t.Fatal(err)
	}
}

func (l *harness) send(b *batch.Logs) {
	l.t.Helper()
	if err := l.c.ConsumeLogs(l.t.Context(), b); err != nil {
		l.t.Fatal(err)
	}
}

func parse(t *testing.T, text string) *batch.Logs {
	t.Helper()
	b, err := batch.ParseLogsText(text, batch.TextOptions{Source: 1})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func text(b *batch.Logs) string { return strings.TrimSpace(string(batch.AppendLogsTextAt(nil, b, 0))) }

const (
	keepProd = "rule {\n\taction = \"keep\"\n\tsource_labels = [\"env\"]\n\tregex = \"prod\"\n}\n"
	addZone  = "rule {\n\ttarget_label = \"zone\"\n\treplacement = \"a\"\n}\n"
	dropAll  = "rule {\n\taction = \"labeldrop\"\n\tregex = \".*\"\n}\n"
)

func TestConsume(t *testing.T) {
	f := func(rules, in, want string, dropped uint64) {
		t.Helper()
		l := newHarness(t, rules)
		l.send(parse(t, in))
		var got []string
		for _, b := range l.sink.Logs() {
			got = append(got, text(b))
		}
		if diff := cmp.Diff(want, strings.Join(got, "\n")); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if n := l.n.Stats.DroppedLines()["relabel"]; n != dropped {
			t.Errorf("%d lines counted as dropped, want %d", n, dropped)
		}
	}
	const in = "{app=\"a\",env=\"prod\"} one\n{app=\"a\",env=\"dev\"} {trace_id=\"t\"} two\n{app=\"a\",env=\"prod\"} {trace_id=\"u\"} three"
	f("", in, in, 0)
	f(keepProd, in, "{app=\"a\",env=\"prod\"} one\n{app=\"a\",env=\"prod\"} {trace_id=\"u\"} three", 1)
	f(addZone, `{app="a"} one`, `{app="a",zone="a"} one`, 0)
	f(keepProd+addZone, `{env="prod"} one`, `{env="prod",zone="a"} one`, 0)
	f(dropAll, in, "", 3)
	// The tenant is an ordinary label.
	f("rule {\n\tsource_labels = [\"env\"]\n\ttarget_label = \"__tenant_id__\"\n}\n", `{env="prod"} one`, `{__tenant_id__="prod",env="prod"} one`, 0)
}

// TestHandles: a stream is mapped to the same handle in every batch, a change of
// the rules takes effect with its next batch, and derived streams are released.
func TestHandles(t *testing.T) {
	l := newHarness(t, addZone)
	stop := l.n.Run(t, l.c)
	b := parse(t, `{app="a"} one`)
	l.send(b)
	first := l.sink.LastLogs().Stream[0]
	l.send(b)
	if l.sink.LastLogs().Stream[0] != first {
		t.Error("one stream came out under two handles")
	}
	l.update(addZone)
	l.send(b)
	if l.sink.LastLogs().Stream[0] != first {
		t.Error("the same rules made another handle")
	}
	l.n.Previous = l.c
	l.c = l.n.Build(t, relabel.Registration(), l.arguments(addZone)).(node)
	stop2 := l.n.Run(t, l.c)
	if err := l.n.Clock.WaitTimers(t.Context(), 4); err != nil { // two for each running component
		t.Fatal(err)
	}
	stop()
	l.send(b)
	if l.sink.LastLogs().Stream[0] != first || first.Released() {
		t.Error("a rebuild made another handle")
	}
	l.update(strings.ReplaceAll(addZone, `"a"`, `"b"`))
	l.send(b)
	second := l.sink.LastLogs().Stream[0]
	if diff := cmp.Diff(`{app="a",zone="b"} one`, text(l.sink.LastLogs())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	l.update("")
	l.send(b)
	if l.sink.LastLogs() == b || l.sink.LastLogs().Stream[0] != b.Stream[0] {
		t.Error("without rules a stream is not its own")
	}
	stop2()
	if !first.Released() || !second.Released() {
		t.Error("handles were not given back at the end")
	}
}

// TestAckGoesAlong: the acknowledgement of a batch is passed on to the derived
// batch.
func TestAckGoesAlong(t *testing.T) {
	l := newHarness(t, keepProd+addZone)
	done := false
	b := parse(t, "{env=\"prod\"} one\n{env=\"dev\"} two")
	b.Ack = batch.NewAck(func() { done = true })
	l.send(b)
	h := l.sink.LastLogs().Ack.Hold(nil)
	b.Ack.Accepted()
	if done {
		t.Error("done while the line is held")
	}
	h.Release()
	if !done {
		t.Error("not done after the line was released")
	}
}

// TestSideBySide: sources send while the rules change. Every line arrives with
// the result of one of the rule sets, and no label is lost.
func TestSideBySide(t *testing.T) {
	zone := func(z string) string { return strings.ReplaceAll(addZone, `"a"`, `"`+z+`"`) }
	l := newHarness(t, zone("x"))
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			b, err := batch.ParseLogsText("{app=\"a\"} one\n{app=\"b\"} two", batch.TextOptions{Source: batch.NewSource()})
			if err != nil {
				t.Error(err)
				return
			}
			for range 100 {
				if err := l.c.ConsumeLogs(t.Context(), b); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for i := range 100 {
		l.update(zone([]string{"x", "y"}[i%2]))
	}
	wg.Wait()
	for _, b := range l.sink.Logs() {
		for i, s := range b.Stream {
			if z := s.Label("zone"); z != "x" && z != "y" || s.Label("app") != []string{"a", "b"}[i] {
				t.Fatalf("got %s", text(b))
			}
		}
	}
	if n := len(l.sink.Logs()); n != 400 {
		t.Errorf("got %d batches, want 400", n)
	}
}

func TestArguments(t *testing.T) {
	f := func(body, want string) {
		t.Helper()
		_, got := componenttest.Decode[*relabel.Arguments](relabel.Registration(), body)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	f("", "c.alloy:1:1: missing required attribute forward_to")
	f("forward_to = []\nmax_cache_size = 10", "c.alloy:3:1: warning: max_cache_size has no effect")
	f("forward_to = []\nmax_cache_size = 0", "c.alloy:3:1: max_cache_size is 0, must be greater than 0\nc.alloy:3:1: warning: max_cache_size has no effect")
	f("forward_to = []\nrule {\n\tregex = \"a(\"\n\taction = \"drop\"\n}",
		"c.alloy:4:10: rule.regex: cannot compile regex: error parsing regexp: missing closing ): `^(?s:a()$`")
	f("forward_to = []\ncache_ttl = \"2m\"", "c.alloy:3:1: unknown attribute cache_ttl (loki.relabel has forward_to, rule, max_cache_size)")
}
