package route_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/flow/flowtest"
	"github.com/weir-run/weir/natives/expr/route"
)

func (l *harness) parseLines(text string) *batch.Logs {
	l.t.Helper()
	b, err := batch.ParseLogsText(text, batch.TextOptions{Source: 1})
	if err != nil {
		l.t.Fatal(err)
	}
	b.Ack = batch.NewAck(nil)
	return b
}

func (l *harness) sendLines(b *batch.Logs) error {
	return l.c.(flow.LogsConsumer).ConsumeLogs(l.t.Context(), b)
}

// gotLines returns the lines of each sink.
func (l *harness) gotLines() map[string]string {
	out := map[string]string{}
	for name, s := range l.sinks {
		var lines []string
		for _, b := range s.Logs() {
			lines = append(lines, b.Line...)
		}
		if len(lines) > 0 {
			out[name] = strings.Join(lines, " ")
		}
	}
	return out
}

func (l *harness) wantLines(want map[string]string) {
	l.t.Helper()
	if diff := cmp.Diff(want, l.gotLines()); diff != "" {
		l.t.Errorf("(-want +got):\n%s", diff)
	}
}

const fourLines = "{app=\"a\"} a1\n{app=\"b\"} b1\n{app=\"a\"} a2\n{app=\"c\"} {k=\"v\"} c1\n"

func TestLines(t *testing.T) {
	f := func(want map[string]string, dropped uint64, routes ...string) {
		t.Helper()
		l := newHarness(t, routes...)
		in := l.parseLines(fourLines)
		for range 2 { // the second run uses the cache
			if err := l.sendLines(in); err != nil {
				t.Fatal(err)
			}
		}
		for name, text := range want {
			want[name] = text + " " + text
		}
		l.wantLines(want)
		for _, s := range l.sinks {
			for _, b := range s.Logs() {
				if b.Ack != in.Ack || b.Source != in.Source {
					t.Error("a part has another acknowledgement or source")
				}
			}
		}
		if got := l.n.Stats.DroppedLines()["no_receiver"]; got != 2*dropped {
			t.Errorf("%d counted as dropped, want %d", got, 2*dropped)
		}
	}
	// By labels, by the line, and by both; the first match is used.
	f(map[string]string{"a": "a1 a2", "rest": "b1 c1"}, 0, `labels.app == "a" -> a`, `-> rest`)
	f(map[string]string{"one": "a1 b1 c1", "rest": "a2"}, 0, `line endsWith "1" -> one`, `-> rest`)
	f(map[string]string{"x": "a2", "a": "a1", "m": "c1", "rest": "b1"}, 0, `labels.app == "a" && line contains "2" -> x`, `labels.app == "a" -> a`, `meta.k == "v" -> m`, `-> rest`)
	// Several receivers, and one that two routes lead to.
	f(map[string]string{"a": "a1 a2", "all": "a1 b1 a2 c1"}, 0, `labels.app == "a" -> a all`, `-> all`)
	// No receivers.
	f(map[string]string{"b": "b1"}, 3, `labels.app == "b" -> b`, `-> `)
	f(map[string]string{"rest": "b1 c1"}, 2, `labels.app == "a" -> `, `-> rest`)
}

// TestLineFailures: if an expression fails on a line, its route does not match.
func TestLineFailures(t *testing.T) {
	l := newHarness(t, `int(line) > 3 -> big`, `line == "x" -> x`, `-> rest`)
	if err := l.sendLines(l.parseLines("{} 5\n{} x\n{} y\n{} 1\n")); err != nil {
		t.Fatal(err)
	}
	l.wantLines(map[string]string{"big": "5", "x": "x", "rest": "y 1"})
	if h := l.n.Health(); h.State != component.Unhealthy || !strings.HasPrefix(h.Message, "when: ") {
		t.Errorf("got health %+v", h)
	}
}

// TestRefusedLines: only the receiver that refused is retried, and a line that no
// receiver accepted is not accepted.
func TestRefusedLines(t *testing.T) {
	l := newHarness(t, `labels.app == "a" -> a both`, `-> rest`)
	no := errors.New("full")
	l.sinks["a"].Refuse(no)
	err := l.sendLines(l.parseLines(fourLines))
	p, ok := errors.AsType[*flow.Partial](err)
	if !ok || !errors.Is(err, no) || p.Lines() != 2 || fmt.Sprint(p.Refused()) != "[a]" {
		t.Fatalf("got %v", err)
	}
	l.wantLines(map[string]string{"both": "a1 a2", "rest": "b1 c1"})
	l.sinks["a"].Refuse(nil)
	if err := p.Retry(context.Background()); err != nil {
		t.Fatal(err)
	}
	l.wantLines(map[string]string{"a": "a1 a2", "both": "a1 a2", "rest": "b1 c1"})
}

// TestBothSignals: a block whose expressions only read labels accepts both
// signals, and each receiver gets the signals that it accepts. Rows whose route
// has no such receiver are counted.
func TestBothSignals(t *testing.T) {
	l := newHarness(t, `labels.app == "a" -> samples lines`, `labels.app == "b" -> samples`, `-> lines`)
	l.sinks["samples"].Receiver().SetAccepts(batch.SignalMetrics)
	l.sinks["lines"].Receiver().SetAccepts(batch.SignalLogs)
	if err := l.sendLines(l.parseLines(fourLines)); err != nil {
		t.Fatal(err)
	}
	l.wantLines(map[string]string{"lines": "a1 a2 c1"})
	l.want("m{app=\"a\"} 1\nm{app=\"b\"} 2\nm{app=\"c\"} 3", `samples: m{app="a"} 1, m{app="b"} 2`)
	if lines, samples := l.n.Stats.DroppedLines()["no_receiver"], l.n.Stats.Dropped()["no_receiver"]; lines != 1 || samples != 1 {
		t.Errorf("%d lines and %d samples are counted as dropped, want one of each", lines, samples)
	}
}

// TestOtherSignal: when the expressions change to the other signal, rows that are
// still in flight go to forward_to.
func TestOtherSignal(t *testing.T) {
	l := newHarness(t, `value > 0 -> a`, `-> rest`)
	if err := l.sendLines(l.parseLines("{} x\n")); err != nil {
		t.Fatal(err)
	}
	l.wantLines(map[string]string{"rest": "x"})
	l = newHarness(t, `line == "x" -> a`, `-> rest`)
	l.want("m 1", "rest: m 1")
}

func TestPasses(t *testing.T) {
	f := func(want batch.Signals, why, problem string, whens ...string) {
		t.Helper()
		l := &harness{t: t, sinks: map[string]*flowtest.Sink{}}
		a := l.arguments(append(whens, "-> ")...)
		if s, got := route.Registration().Passes(a); s != want || got != why {
			t.Errorf("%s: got %s, %q", whens, s, got)
		}
		if err := a.Validate(); err == nil && problem != "" || err != nil && err.Error() != problem {
			t.Errorf("%s: got %v, want %s", whens, err, problem)
		}
	}
	const both = batch.SignalMetrics | batch.SignalLogs
	f(both, "", "")
	f(both, "", "", `labels.a == "b"`, `time > 3`)
	f(batch.SignalLogs, `route "r1": a sample has no line`, "", `labels.a == "b"`, `line == ""`)
	f(batch.SignalMetrics, `route "r0": a log line has no name`, "", `name == "b"`, `labels.a == ""`)
	f(both, "", `route "r0": a log line has no value, and route "r1": a sample has no meta; write a block for samples and one for log lines`, `value > 3`, `meta.a == ""`)
}
