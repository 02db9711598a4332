package node_test

import (
	"context"
	"strings"
	"testing"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/scripting/node"
	"github.com/weir-run/weir/scripting/quarantine"
)

// lines makes a batch of log lines.
func lines(t *testing.T, text string) *batch.Logs {
	t.Helper()
	b, err := batch.ParseLogsText(text, batch.TextOptions{T: 1000, Source: 1})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// sendLines sends lines and returns what comes out.
func (n *harness) sendLines(text string) string {
	n.t.Helper()
	before := len(n.sink.Logs())
	if err := n.c.(flow.LogsConsumer).ConsumeLogs(context.Background(), lines(n.t.(*testing.T), text)); err != nil {
		n.t.Fatal(err)
	}
	return n.came(before)
}

func (n *harness) came(before int) string {
	got := ""
	for _, b := range n.sink.Logs()[before:] {
		got += string(batch.AppendLogsTextAt(nil, b, 1000))
	}
	return got
}

const failsOnBad = `return weir.transform { logs = function(batch)
	batch:each(function(r) if r:contains("bad") then error("no bad") end r.labels.seen = "1" end)
end }`

// Lines are stored and replayed as samples are.
func TestQuarantineOfLines(t *testing.T) {
	n := newHarness(t)
	n.save(failsOnBad, quarantined)
	const bad = "{job=\"a\"} @2025-01-01T00:00:00.000000001Z \"bad \\x00\\xff line\"\n{job=\"b\"} @2025-01-01T00:00:00.000000002Z very bad\n"
	in := lines(t, bad)
	text := string(batch.AppendLogsText(nil, in))
	same(t, n.sendLines(text+"{job=\"a\"} good\n"), string(batch.AppendLogsTextAt(nil, lines(t, "{job=\"a\",seen=\"1\"} good\n"), 1000)))
	dir := quarantine.Dir(n.StoragePath, n.ID)
	l, err := quarantine.List(dir)
	if err != nil || len(l.Entries) != 1 || l.Entries[0].Signal != "logs" || l.Entries[0].Records != 2 {
		t.Fatalf("got %+v, %v", l.Entries, err)
	}
	_, data, err := quarantine.Read(dir, l.Entries[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	same(t, string(data), text)

	n.sendLines("{job=\"c\"} good\n")
	healthy := n.Health()
	if healthy.State != component.Healthy {
		t.Errorf("got health %+v after a good batch", healthy)
	}
	if results, _ := askQuarantine(t, n, "/quarantine/replay", node.QuarantineRequest{}); results[0].Passed || !strings.Contains(results[0].Error, "in each: no bad") {
		t.Errorf("got %+v", results)
	}
	if h := n.Health(); h != healthy {
		t.Errorf("a replay changed the health to %+v", h)
	}
	n.save(strings.Replace(failsOnBad, `error("no bad")`, "", 1), quarantined)
	before := len(n.sink.Logs())
	if results, problem := askQuarantine(t, n, "/quarantine/replay", node.QuarantineRequest{}); !results[0].Gone {
		t.Errorf("got %+v %s", results, problem)
	}
	want := lines(t, strings.NewReplacer(`job="a"`, `job="a",seen="1"`, `job="b"`, `job="b",seen="1"`).Replace(text))
	same(t, n.came(before), string(batch.AppendLogsTextAt(nil, want, 1000)))
}

func TestHoldOfLines(t *testing.T) {
	n := newHarness(t)
	n.save(failsOnBad, held)
	done := make(chan error, 1)
	old, in := n.c.(flow.LogsConsumer), lines(t, "{job=\"a\"} bad\n")
	go func() { done <- old.ConsumeLogs(context.Background(), in) }()
	n.Wait(t, func() bool { return n.Health().State == component.Unhealthy })
	n.save(strings.Replace(failsOnBad, `error("no bad")`, "", 1), held)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	same(t, n.came(0), string(batch.AppendLogsTextAt(nil, lines(t, "{job=\"a\",seen=\"1\"} bad\n"), 1000)))
}
