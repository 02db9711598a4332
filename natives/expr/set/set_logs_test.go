package set_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/natives/expr/set"
)

func meta(name, src string) string { return strings.Replace(label(name, src), "label", "meta", 1) }

// parseLines gives the same stream the same handle in every batch.
func (l *harness) parseLines(text string) *batch.Logs {
	l.t.Helper()
	in := batch.NewInterner(0)
	b, err := batch.ParseLogsText(text, batch.TextOptions{Source: 1, Series: func(ls []batch.Label, m *batch.Metadata) *batch.Series {
		return in.Intern(ls, m, l.n.Clock.Now())
	}})
	if err != nil {
		l.t.Fatal(err)
	}
	return b
}

func (l *harness) sendLines(b *batch.Logs) *batch.Logs {
	l.t.Helper()
	if err := l.c.(flow.LogsConsumer).ConsumeLogs(l.t.Context(), b); err != nil {
		l.t.Fatal(err)
	}
	return l.sink.LastLogs()
}

func (l *harness) wantLines(in string, want ...string) {
	l.t.Helper()
	b := l.parseLines(in)
	for range 2 { // the second run uses the cache
		got := strings.TrimSpace(string(batch.AppendLogsTextAt(nil, l.sendLines(b), 0)))
		if diff := cmp.Diff(strings.Join(want, "\n"), got); diff != "" {
			l.t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

func TestLines(t *testing.T) {
	f := func(body, in string, want ...string) {
		t.Helper()
		newHarness(t, body).wantLines(in, want...)
	}
	// Labels that depend on labels, and on the line.
	f(label("c", "upper(labels.b)"), `{b="x"} hi`, `{b="x",c="X"} hi`)
	f(label("b", "''"), `{a="1",b="x"} hi`, `{a="1"} hi`)
	f(label("a", "labels.b")+label("b", "labels.a"), `{a="1",b="2"} hi`, `{a="2",b="1"} hi`)
	f(label("level", "line contains 'err' ? 'error' : labels.level"), "{level=\"info\"} err\n{level=\"info\"} ok", `{level="error"} err`, `{level="info"} ok`)
	f(label("n", "labels.__name__"), `{__name__="x"} hi`, `{__name__="x",n="x"} hi`)
	f(label("even", "time % 2 == 0 ? 'yes' : ''"), "{} @1970-01-01T00:00:00.0029Z a\n{} @1970-01-01T00:00:00.0030Z b",
		`{even="yes"} @1970-01-01T00:00:00.0029Z a`, `{} @1970-01-01T00:00:00.003Z b`)
	// The line.
	f(`line = "labels.a + ': ' + trim(line)"`, `{a="1"} " hi "`, `{a="1"} 1: hi`)
	f(`line = "''"`, `{a="1"} hi`, `{a="1"} ""`)
	// Metadata.
	f(meta("id", "labels.id")+label("id", "''"), `{id="7"} hi`, `{} {id="7"} hi`)
	f(meta("a", "''")+meta("b", "meta.a"), `{} {a="1"} hi`, `{} {b="1"} hi`)
	// All expressions read the original line.
	f("line = \"meta.l\"\n"+meta("l", "line")+label("l", "line"), `{} {l="old"} new`, `{l="new"} {l="new"} old`)
}

// TestLinesShareColumns: columns that are not set are not copied, and the source
// gets its acknowledgement.
func TestLinesShareColumns(t *testing.T) {
	l := newHarness(t, label("x", "'1'"))
	in := l.parseLines("{a=\"1\"} {m=\"1\"} one\n{a=\"1\",x=\"1\"} two")
	in.Ack = batch.NewAck(nil)
	out := l.sendLines(in)
	if &out.Line[0] != &in.Line[0] || &out.T[0] != &in.T[0] || &out.Meta[0] != &in.Meta[0] {
		t.Error("columns that did not change are not shared")
	}
	if out.Stream[1] != in.Stream[1] || out.Stream[0].Source() != in.Stream[0] {
		t.Error("the streams are not those they should be")
	}
	if out.Ack != in.Ack || out.Source != in.Source {
		t.Error("the acknowledgement or the source is another")
	}
	if again := l.sendLines(in); again.Stream[0] != out.Stream[0] {
		t.Error("the same stream became another handle")
	}
	if same := l.sendLines(out); same != nil && same.Stream[0] != out.Stream[0] {
		t.Error("a stream that has the label already is another")
	}
	if l = newHarness(t, `line = "upper(line)"`); l.sendLines(in).Ack != in.Ack {
		t.Error("a batch of other lines has no acknowledgement")
	}
}

// TestLineFailures: if an expression fails on a line, the line is forwarded
// unchanged.
func TestLineFailures(t *testing.T) {
	l := newHarness(t, label("code", "string(int(labels.code) / 100)")+`line = "line + '!'"`)
	l.wantLines("{code=\"500\"} a\n{code=\"x\"} b", `{code="5"} a!`, `{code="x"} b`)
	if h := l.n.Health(); h.State != component.Unhealthy || !strings.HasPrefix(h.Message, "label: ") || !strings.Contains(h.Message, `in a line of {code="x"}`) {
		t.Errorf("got health %+v", h)
	}
	// All or nothing.
	l = newHarness(t, label("l", "line")+meta("n", "string(int(line) + 1)")+`line = "string(int(line) * 2)"`)
	l.wantLines("{} 1\n{} {n=\"9\"} x\n{} 2", `{l="1"} {n="2"} 2`, `{} {n="9"} x`, `{l="2"} {n="3"} 4`)
	if h := l.n.Health(); !strings.HasPrefix(h.Message, "meta: ") {
		t.Errorf("got health %+v", h)
	}
	// A label that is not valid UTF-8.
	l = newHarness(t, label("c", "line[0:1]"))
	l.wantLines("{} xy\n{} \"\\xffa\"", `{c="x"} xy`, `{} "\xffa"`)
}

// TestTooMuch: if the new labels exceed the limit of a batch, the batch is
// forwarded unchanged.
func TestTooMuch(t *testing.T) {
	body := ""
	for _, n := range []string{"a", "b", "c", "d"} {
		body += label(n, "labels.long + 'x'")
	}
	l := newHarness(t, body)
	long := strings.Repeat("y", 60_000)
	var text strings.Builder
	for i := range 300 {
		fmt.Fprintf(&text, "{long=\"%d%s\"} hi\n", i, long)
	}
	in := l.parseLines(text.String())
	if out := l.sendLines(in); &out.Stream[0] != &in.Stream[0] {
		t.Error("the batch is another")
	}
	if h := l.n.Health(); h.State != component.Unhealthy || !strings.Contains(h.Message, "lines, labels and metadata") {
		t.Errorf("got health %+v", h)
	}
}

// TestPasses: the accepted signals follow from the fields that are set and read.
func TestPasses(t *testing.T) {
	const both = batch.SignalMetrics | batch.SignalLogs
	f := func(body string, want batch.Signals, why string) {
		t.Helper()
		a, problems := decode(body)
		if problems != "" {
			t.Fatal(problems)
		}
		if s, got := set.Registration().Passes(a); s != want || got != why {
			t.Errorf("%s: got %s, %q", body, s, got)
		}
	}
	f(label("x", "labels.y"), both, "")
	f(label("x", "string(time)"), both, "")
	f(label("x", "name"), batch.SignalMetrics, `label "x": a log line has no name`)
	f(label("x", "line"), batch.SignalLogs, `label "x": a sample has no line`)
	f(`name = "'x'"`, batch.SignalMetrics, `name: a log line has none`)
	f(`value = "1"`, batch.SignalMetrics, `value: a log line has none`)
	f(`line = "''"`, batch.SignalLogs, `line: a sample has none`)
	f(meta("m", "''"), batch.SignalLogs, `meta "m": a sample has none`)
}

func TestMistakesOnLines(t *testing.T) {
	f := func(body, want string) {
		t.Helper()
		_, got := decode(body)
		if diff := cmp.Diff(strings.TrimSpace(want), got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	f(meta("a", "'1'")+meta("a", "'2'"), `c.alloy:3:1: meta "a" is set twice`)
	f(`line = "name + 'x'"`, `
c.alloy:3:8: line: cannot use expression: a log line has no name: there is line, labels, meta, time and args (1:1)
   | name + 'x'
   | ^
   'weir help expr' describes expressions`)
	f(`name = "line"`, `
c.alloy:3:8: name: cannot use expression: a sample has no line: there is name, labels, value, type, time and args (1:1)
   | line
   | ^
   'weir help expr' describes expressions`)
	f(meta("a", "time"), `
c.alloy:4:9: meta.value: cannot use expression: it must be a string, not a number (1:1)
   | time
   | ^
   'weir help expr' describes expressions`)
	f(label("a", "name + line"), `
c.alloy:4:9: label.value: cannot use expression: a log line has no name: there is line, labels, meta, time and args; and a sample has no line: there is name, labels, value, type, time and args (1:1)
   | name + line
   | ^
   'weir help expr' describes expressions`)
	// Both signals in one block.
	f("value = \"1\"\nline = \"''\"", `c.alloy:3:1: value: a log line has none, and line: a sample has none; write a block for samples and one for log lines`)
	f(label("a", "name")+label("b", "line"), `c.alloy:3:1: label "a": a log line has no name, and label "b": a sample has no line; write a block for samples and one for log lines`)
}
