package node_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
)

// A batch that exceeds the time limit of a call is not held forever: it is
// processed in parts, and the health reports this.
func TestHoldInParts(t *testing.T) {
	const held = "script {\non_error = \"hold\"\nlimits { time = \"1s\" }\n}"
	// f sends a batch of four to a script that gets through two in time.
	f := func(name, script string, send func(ctx context.Context, n *harness) error, want string, came func(n *harness) string) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			t.Helper()
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
			defer cancel()
			n := newHarness(t)
			n.save(script, held)
			if err := send(ctx, n); err != nil {
				t.Fatal(err)
			}
			same(t, came(n), want)
			if h := n.Health(); h.State != component.Unhealthy || !strings.Contains(h.Message, "limit exceeded") || !strings.Contains(h.Message, "its batches get through in parts") {
				t.Errorf("got health %+v", h)
			}
			if logs := n.Logs(); strings.Count(logs, "script failed") != 1 || strings.Contains(logs, "works again") {
				t.Errorf("the log tells\n%s", logs)
			}
			n.save(strings.Replace(script, "> 2", "> 5", 1), held)
			if err := send(ctx, n); err != nil {
				t.Fatal(err)
			}
			same(t, came(n), want)
			n.Wait(t, func() bool { return n.Health().State == component.Healthy }) // Run may be telling it
			if len(n.Stats.Dropped()) > 0 {
				t.Errorf("dropped %v", n.Stats.Dropped())
			}
		})
	}
	var in strings.Builder
	for _, line := range []string{"a", "b", "c", "d"} {
		in.WriteString("{job=\"" + line + "\"} line of " + line + "\n")
	}
	sendLines := func(ctx context.Context, n *harness) error {
		return n.c.(flow.LogsConsumer).ConsumeLogs(ctx, lines(t, in.String()))
	}
	cameLines := func(n *harness) string {
		return string(batch.AppendLogsTextAt(nil, n.sink.Logs()[len(n.sink.Logs())-1], 1000))
	}
	f("lines", `return weir.transform { logs = function(batch)
		while #batch > 2 do end
		batch:each(function(r) r.labels.seen = "1" end)
	end }`, sendLines, strings.ReplaceAll(in.String(), `"}`, `",seen="1"}`), cameLines)
	f("lines that stay as they are", `return weir.transform { logs = function(batch) while #batch > 2 do end end }`,
		sendLines, in.String(), cameLines)

	const samples = "a 1\nb 2\nc 3\nd 4\n"
	sendSamples := func(ctx context.Context, n *harness) error {
		return n.gate.ConsumeMetrics(ctx, text(t, 1, samples))
	}
	cameSamples := func(n *harness) string { return string(batch.AppendTextAt(nil, n.sink.Last(), 1000)) }
	f("samples", `return weir.transform { metrics = function(batch)
		while #batch > 2 do end
		batch:set_label("seen", "1")
	end }`, sendSamples, strings.ReplaceAll(samples, " ", "{seen=\"1\"} "), cameSamples)
	f("samples that stay as they are", `return weir.transform { metrics = function(batch) while #batch > 2 do end end }`,
		sendSamples, samples, cameSamples)
}
