package node_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/scripting/quarantine"
)

// failsAsAWhole are hooks that one bad record makes fail for all of its batch.
var failsAsAWhole = map[string]string{
	"error": `if text:find("bad", 1, true) then error("no bad") end`,
	"limit": `while text:find("bad", 1, true) do end`,
}

func badLines(fails string) string {
	return `return weir.transform { logs = function(batch)
		for _, text in batch:rows("line") do ` + fails + ` end
		batch:set_label("seen", "1")
	end }`
}

func badSamples(fails string) string {
	return `return weir.transform { metrics = function(batch)
		for _, text in batch:rows("job") do ` + fails + ` end
		batch:set_label("seen", "1")
	end }`
}

// inMode is a block with an on_error, and a limit that an idle call keeps.
func inMode(on string) string {
	return fmt.Sprintf("script {\non_error = %q\nlimits { time = \"100ms\" }\n}", on)
}

// One record that the hook cannot process costs no other record of its batch
// anything, whatever on_error is.
func TestBadRecord(t *testing.T) {
	const rows, bad = 50, 17
	var lineText, sampleText strings.Builder
	for i := range rows {
		what := "good"
		if i == bad {
			what = "bad"
		}
		fmt.Fprintf(&lineText, "{job=\"j%02d\"} %s line\n", i, what)
		fmt.Fprintf(&sampleText, "m{job=\"%s%02d\"} %d\n", what, i, i)
	}
	for _, on := range []string{"pass", "drop", "quarantine", "hold"} {
		for name, fails := range failsAsAWhole {
			for _, signal := range []string{"logs", "metrics"} {
				t.Run(on+" "+name+" "+signal, func(t *testing.T) {
					n := newHarness(t)
					ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
					defer cancel()
					var got string
					if signal == "logs" {
						n.save(badLines(fails), inMode(on))
						if err := n.c.(flow.LogsConsumer).ConsumeLogs(ctx, lines(t, lineText.String())); err != nil {
							t.Fatal(err)
						}
						got = n.came(0)
					} else {
						n.save(badSamples(fails), inMode(on))
						if err := n.gate.ConsumeMetrics(ctx, text(t, 1, sampleText.String())); err != nil {
							t.Fatal(err)
						}
						for _, b := range n.sink.Batches() {
							got += string(batch.AppendTextAt(nil, b, 1000))
						}
					}
					if seen := strings.Count(got, `seen="1"`); seen != rows-1 {
						t.Errorf("%d records were worked on, want %d:\n%s", seen, rows-1, got)
					}
					passed := strings.Contains(got, "bad")
					if passed != (on == "pass") {
						t.Errorf("the bad record passed: %v", passed)
					}
					// The order holds.
					if at, next := strings.Index(got, "16"), strings.Index(got, "18"); at < 0 || next < at {
						t.Errorf("records changed their order:\n%s", got)
					}
					dropped := n.Stats.Dropped()["script_error"] + n.Stats.DroppedLines()["script_error"]
					stored := len(entriesOf(t, n))
					if want := map[string][2]int{"pass": {0, 0}, "drop": {1, 0}, "quarantine": {0, 1}, "hold": {0, 1}}[on]; want != [2]int{int(dropped), stored} {
						t.Errorf("%d dropped, %d in quarantine, want %v", dropped, stored, want)
					}
					if h := n.Health(); h.State != component.Unhealthy {
						t.Errorf("got health %+v", h)
					}
					if calls := gathered(t, n.Registry, "weir_script_calls_total"); calls > 20 {
						t.Errorf("it took %v calls", calls)
					}
				})
			}
		}
	}
}

// entriesOf are the texts of what is in the node's quarantine.
func entriesOf(t *testing.T, n *harness) (out []string) {
	t.Helper()
	dir := quarantine.Dir(n.StoragePath, n.ID)
	l, err := quarantine.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range l.Entries {
		_, data, err := quarantine.Read(dir, e.ID)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, string(data))
	}
	return out
}

// advance sends a batch of one line and lets time pass while it is held, until it
// is accepted or was tried so often; it returns the number of tries.
func (n *harness) advance(t *testing.T, text string, most float64) float64 {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	before := gathered(t, n.Registry, "weir_script_calls_total")
	tries := func() float64 { return gathered(t, n.Registry, "weir_script_calls_total") - before }
	go func() { done <- n.c.(flow.LogsConsumer).ConsumeLogs(ctx, lines(t, text)) }()
	for {
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
			return tries()
		case <-time.After(time.Millisecond):
			if tries() >= most {
				cancel()
				<-done
				return most
			}
			n.Clock.Advance(time.Minute)
		}
	}
}

// A single record that cannot be processed is withheld as well, and sooner if
// the script is known to work on other records. A script that works on no
// record is broken, and holds its data.
func TestLoneBadRecord(t *testing.T) {
	const bad = "{job=\"a\"} bad\n"
	n := newHarness(t)
	n.save(badLines(failsAsAWhole["error"]), inMode("hold"))
	for i := range 10 {
		if tries := n.advance(t, bad, 100); tries != 9 { // the last one puts it into quarantine
			t.Fatalf("record %d took %v tries before the script worked on any", i, tries)
		}
	}
	if tries := n.advance(t, bad, 100); tries != 100 {
		t.Errorf("a script that never worked gave up on a record after %v tries", tries)
	}
	if h := n.Health(); h.State != component.Unhealthy || !strings.Contains(h.Message, "its sources are held until the script works") {
		t.Errorf("got health %+v", h)
	}
	if got := len(entriesOf(t, n)); got != 10 {
		t.Errorf("%d records are in quarantine, want 10", got)
	}
	if tries := n.advance(t, "{job=\"a\"} good\n", 100); tries != 1 || n.Health().State != component.Healthy {
		t.Errorf("a good line took %v tries; health %+v", tries, n.Health())
	}
	if tries := n.advance(t, bad, 100); tries != 4 {
		t.Errorf("a record took %v tries after the script had worked", tries)
	}
	if h := n.Health(); h.State != component.Unhealthy || !strings.Contains(h.Message, "what it failed on is in quarantine") {
		t.Errorf("got health %+v", h)
	}
	n.save(badLines(failsAsAWhole["limit"]), inMode("hold"))
	n.advance(t, "{job=\"a\"} good\n", 1)
	if tries := n.advance(t, bad, 100); tries != 2 {
		t.Errorf("a record beyond the limit took %v tries", tries)
	}
}

// If an external system fails, no record is to blame: nothing is withheld, the
// batch is not split, and processing continues when the system works again.
func TestOutsideFails(t *testing.T) {
	var up atomic.Bool
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if !up.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer s.Close()
	for _, hook := range []string{
		`ask(ctx) batch:set_label("seen", "1")`,
		`batch:each(function(r) if r:contains("2") then ask(ctx) end r.labels.seen = "1" end)`,
	} {
		up.Store(false)
		n := newHarness(t)
		n.save(fmt.Sprintf(`local function ask(ctx) assert(assert(ctx.http.get(%q)).status == 200, "it is down") end
		return weir.transform { needs = { http = true }, logs = function(batch, ctx) %s end }`, s.URL, hook),
			"script {\non_error = \"hold\"\nallow { http = [\""+s.URL+"/*\"] }\n}")
		in := "{job=\"a\"} line 1\n{job=\"a\"} line 2\n{job=\"a\"} line 3\n"
		if tries := n.advance(t, in, 20); tries != 20 || len(entriesOf(t, n)) != 0 {
			t.Errorf("%s: it was held for %v tries; %d in quarantine", hook, tries, len(entriesOf(t, n)))
		}
		up.Store(true)
		n.advance(t, in, 100)
		same(t, n.came(0), strings.ReplaceAll(in, `"}`, `",seen="1"}`))
	}
}

// A script that fails on everything is not asked again and again about parts.
func TestBrokenScriptIsCheap(t *testing.T) {
	n := newHarness(t)
	n.save(`return weir.transform { logs = function() error("no") end }`, inMode("drop"))
	const batches, rows = 100, 16
	for range batches {
		if out := n.sendLines(strings.Repeat("{job=\"a\"} line\n", rows)); out != "" {
			t.Fatalf("got %q", out)
		}
	}
	if calls := gathered(t, n.Registry, "weir_script_calls_total"); calls > 4*batches {
		t.Errorf("%v calls for %d batches", calls, batches)
	}
	if dropped := n.Stats.DroppedLines()["script_error"]; dropped != batches*rows {
		t.Errorf("%d lines were dropped, want %d", dropped, batches*rows)
	}
}

// A script that uses all of its time on every part is not asked about each.
func TestSlowScriptIsNotAskedForEver(t *testing.T) {
	n := newHarness(t)
	n.save(`return weir.transform { logs = function() while true do end end }`, "script {\non_error = \"drop\"\nlimits { time = \"400ms\" }\n}")
	if out := n.sendLines(strings.Repeat("{job=\"a\"} line\n", 64)); out != "" {
		t.Fatalf("got %q", out)
	}
	if calls := gathered(t, n.Registry, "weir_script_calls_total"); calls > 30 {
		t.Errorf("%v calls of 400ms for a batch", calls)
	}
}
