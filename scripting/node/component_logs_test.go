package node_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/flow"
)

// numbered is a batch of lines that are numbered in each of some streams.
func numbered(t *testing.T, source uint64, rows, streams int) *batch.Logs {
	t.Helper()
	var b strings.Builder
	for i := range rows {
		fmt.Fprintf(&b, "{app=\"%d\",s=\"%d\"} %d\n", i%streams, source, i/streams)
	}
	in := lines(t, b.String())
	in.Source = source
	return in
}

// Whatever the mode, each line arrives once, each stream's in their order, and
// what is made of a batch in parts leaves as one; in mode partition a key meets
// one VM.
func TestConcurrencyOfLogs(t *testing.T) {
	const script = `
		local seen = {}
		return weir.transform { logs = function(batch)
			for r in batch:records() do
				local app = r.labels.app
				seen[app] = (seen[app] or 0) + 1
				r.metadata.n = seen[app]
			end
		end }`
	const sources, batches, rows, streams = 3, 4, 5000, 7
	for mode, attrs := range map[string]string{
		"ordered":   "",
		"parallel":  `script { concurrency = "parallel" }`,
		"single":    `script { concurrency = "single" }`,
		"partition": "script {\nconcurrency = \"partition\"\nby = [\"app\"]\n}",
	} {
		t.Run(mode, func(t *testing.T) {
			n := newHarness(t)
			n.save(script, attrs)
			var wg sync.WaitGroup
			for s := range sources {
				in := numbered(t, uint64(s+1), rows, streams)
				wg.Go(func() {
					for range batches {
						if err := n.gate.ConsumeLogs(context.Background(), in); err != nil {
							t.Error(err)
						}
					}
				})
			}
			wg.Wait()
			if got := len(n.sink.Logs()); got != sources*batches {
				t.Fatalf("%d batches came, want %d", got, sources*batches)
			}
			counted := map[string]bool{}
			for _, b := range n.sink.Logs() {
				if b.Len() != rows {
					t.Fatalf("a batch of %d lines", b.Len())
				}
				next := map[*batch.Stream]int{}
				for i, s := range b.Stream {
					if want := fmt.Sprint(next[s]); b.Line[i] != want {
						t.Fatalf("%s: line %s came instead of %s", s, b.Line[i], want)
					}
					next[s]++
					counted[s.Label("app")+" "+b.Meta[i][0].Value] = true
				}
			}
			// One VM never counts the same number twice.
			if mode == "single" || mode == "partition" {
				if len(counted) != sources*batches*rows {
					t.Errorf("%d numbers for %d lines", len(counted), sources*batches*rows)
				}
			}
		})
	}
}

// TestRoutedLines: lines go to outputs as samples do.
func TestRoutedLines(t *testing.T) {
	n := newRouteNode(t)
	n.save(`{
		outputs = { "errors", "others" },
		logs = function(batch, ctx)
			batch:each(function(r)
				if r:contains("error") then ctx.route("errors", r) end
				if r:contains("both") then ctx.route("others", r:copy()) end
			end)
			for i, line in batch:rows("line") do
				if line == "third" then ctx.route("others", i) end
			end
		end }`, `forward_to = [prometheus.echo.main.receiver]
		routes {
			errors = [prometheus.echo.errors.receiver]
			others = [prometheus.echo.other.receiver]
		}`)
	if err := n.c.(flow.LogsConsumer).ConsumeLogs(t.Context(), lines(t, "{a=\"1\"} fine\n{a=\"2\"} error\n{a=\"1\"} both\n{a=\"3\"} third\n")); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for name, sink := range n.sinks {
		for _, b := range sink.Logs() {
			got[name] += string(batch.AppendLogsTextAt(nil, b, b.T[0]))
		}
	}
	want := map[string]string{"main": "{a=\"1\"} fine\n{a=\"1\"} both\n", "errors": "{a=\"2\"} error\n", "other": "{a=\"3\"} third\n{a=\"1\"} both\n"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestTimersEmitLines: a timer's lines are sent as well as its samples.
func TestTimersEmitLines(t *testing.T) {
	timed(t, func(t *testing.T, n *harness) {
		n.save(`return weir.transform {
			sends = { "logs", "metrics" },
			logs = function() end,
			every = { ["10s"] = function(ctx)
				ctx.emit { line = "tick", labels = { app = "x" } }
				ctx.emit { name = "ticks", value = 1 }
			end } }`, "")
		pass(25 * time.Second)
		if got := len(n.sink.Logs()); got != 2 {
			t.Fatalf("%d batches of lines came, want 2", got)
		}
		if b := n.sink.Logs()[0]; b.Len() != 1 || b.Line[0] != "tick" || b.Stream[0].Label("app") != "x" || b.Stream[0] != n.sink.Logs()[1].Stream[0] {
			t.Errorf("got %s", batch.AppendLogsText(nil, b))
		}
		if got := len(n.sink.Batches()); got != 2 {
			t.Errorf("%d batches of samples came, want 2", got)
		}
	})
}
