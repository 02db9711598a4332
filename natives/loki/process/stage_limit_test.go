package process_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

// builtLab returns a harness whose component does not run, so that only stages
// set timers on the clock.
func builtLab(t testing.TB, stages string) *harness {
	t.Helper()
	n := newHarness(t)
	n.rebuild(stages)
	return n
}

// rebuild replaces the component by a new one.
func (n *harness) rebuild(stages string) {
	n.t.Helper()
	if n.c != nil {
		n.Previous = n.c
	}
	n.c = n.Build(n.t, registration(), n.arguments(stages)).(consumer)
}

// lines returns the text of the received lines.
func (n *harness) lines() string {
	var out []string
	for _, b := range n.takeBatches() {
		out = append(out, b.Line...)
	}
	return strings.Join(out, " ")
}

func (n *harness) wantLines(want string) {
	n.t.Helper()
	if got := n.lines(); got != want {
		n.t.Errorf("got lines %q, want %q", got, want)
	}
}

func (n *harness) wantMetrics(want string, names ...string) {
	n.t.Helper()
	if err := testutil.GatherAndCompare(n.Registry, strings.NewReader(want), names...); err != nil {
		n.t.Error(err)
	}
}

func TestLimitDrop(t *testing.T) {
	const stages = "stage.limit {\nrate = 2\nburst = 3\ndrop = true\n}"
	n := builtLab(t, stages)
	n.send("{} 1\n{} 2\n{} 3\n{} 4\n")
	n.wantLines("1 2 3")
	n.Clock.Advance(499 * time.Millisecond)
	n.send("{} 5\n")
	n.wantLines("")
	n.Clock.Advance(time.Millisecond)
	n.send("{} 6\n{} 7\n")
	n.wantLines("6")
	// A reload that does not change the stage does not reset the limit.
	n.reload("stage.drop {\nexpression = \"x\"\n}\n" + stages)
	n.send("{} 8\n")
	n.wantLines("")
	n.Clock.Advance(time.Hour)
	n.send("{} 9\n{} 10\n{} 11\n{} 12\n")
	n.wantLines("9 10 11")
	if got := n.dropped(); got != "ratelimit_drop_stage 5\n" {
		t.Errorf("got dropped %q", got)
	}
	n.reload(strings.Replace(stages, "burst = 3", "burst = 1", 1))
	n.send("{} 13\n{} 14\n")
	n.wantLines("13")
}

func TestLimitByLabel(t *testing.T) {
	n := builtLab(t, "stage.limit {\nrate = 1\nburst = 1\ndrop = true\nby_label_name = \"app\"\n}")
	n.send("{app=\"a\"} 1\n{app=\"a\"} 2\n{app=\"b\"} 3\n{} 4\n{} 5\n{app=\"a\"} 6\n")
	n.wantLines("1 3 4 5")
	n.wantMetrics(`# HELP loki_process_dropped_lines_by_label_total Lines that stage.limit dropped, by the value of by_label_name, of those that were seen lately.
# TYPE loki_process_dropped_lines_by_label_total counter
loki_process_dropped_lines_by_label_total{component_id="loki.process.default",label_name="app",label_value="a"} 2
`, "loki_process_dropped_lines_by_label_total")
	// A value is removed after so many other values.
	var many strings.Builder
	for i := range 20_001 {
		fmt.Fprintf(&many, "{app=\"app%d\"} x\n", i)
	}
	n.send(many.String())
	n.takeBatches()
	n.send("{app=\"a\"} again\n")
	n.wantLines("again")
	n.wantMetrics("", "loki_process_dropped_lines_by_label_total")
}

// TestLimitWaits: without drop, the caller waits until its ctx ends.
func TestLimitWaits(t *testing.T) {
	n := builtLab(t, "stage.limit {\nrate = 10\nburst = 1\n}")
	n.send("{} 1\n")
	n.wantLines("1")
	done := make(chan error)
	send := func(ctx context.Context, text string) { done <- n.c.ConsumeLogs(ctx, n.parse(text)) }
	asleep := func() {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := n.Clock.WaitTimers(ctx, 1); err != nil {
			t.Fatal(err)
		}
	}
	go send(t.Context(), "{} 2\n{} 3\n")
	asleep()
	n.Clock.Advance(199 * time.Millisecond)
	select {
	case err := <-done:
		t.Fatal("the lines passed before their time", err)
	default:
	}
	n.Clock.Advance(time.Millisecond)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	n.wantLines("2 3")
	ctx, cancel := context.WithCancel(t.Context())
	go send(ctx, "{} 4\n")
	asleep()
	cancel()
	<-done
	n.takeBatches()
	// The call that ended did not use up the limit.
	n.Clock.Advance(100 * time.Millisecond)
	n.send("{} 5\n")
	n.wantLines("5")
}
