package node_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/internal/registrytest"
	"github.com/weir-run/weir/scripting/node"
	"github.com/weir-run/weir/scripting/quarantine"
)

const quarantined = "script {\non_error = \"quarantine\"\n}"

// entries are what is in the node's quarantine: hook, line and data.
func entries(t *testing.T, n *harness) (out []string) {
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
		var failed struct {
			Hook string `json:"hook"`
			Line int    `json:"line"`
		}
		if err := json.Unmarshal(e.Error, &failed); err != nil {
			t.Fatal(err)
		}
		if e.Node != n.ID || e.Script != "a.b" || e.Version == "" || e.Args == "" || !strings.HasPrefix(e.Text, "scripts/a/b.lua:") || e.Records != strings.Count("\n"+string(data), "\n")-strings.Count("\n"+string(data), "\n#")-1 {
			e.Error = nil
			t.Errorf("got entry %+v", e)
		}
		out = append(out, fmt.Sprintf("%s:%d %s", failed.Hook, failed.Line, strings.ReplaceAll(strings.TrimSpace(string(data)), "\n", "; ")))
	}
	return out
}

func wantEntries(t *testing.T, n *harness, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, entries(t, n)); diff != "" {
		t.Errorf("quarantine (-want +got):\n%s", diff)
	}
}

func TestQuarantine(t *testing.T) {
	n := newHarness(t)
	// Errors of each cost a record, by line; what they cost is stored as it came.
	n.save(`return weir.transform { metrics = function(batch)
		batch:set_label("seen", "1")
		batch:each(function(m)
			if m.name == "a" then error("no a") end
			if m.name == "b" or m.name == "c" then error("no b or c") end
		end)
	end }`, quarantined)
	in := text(t, 1, "a 1\nb 2\nc NaN(0x7ff8000000000bad)\nd stale\ne 5\n")
	same(t, n.send(in), "d{seen=\"1\"} stale\ne{seen=\"1\"} 5\n")
	wantEntries(t, n, "each:5 a 1 1000", "each:6 b 2 1000; c NaN(0x7ff8000000000bad) 1000")
	backlog := func() int64 { return n.c.(component.Queuer).Backlog().Quarantined }
	if len(n.Stats.Dropped()) > 0 || backlog() != 3 {
		t.Errorf("dropped %v, %d records in quarantine, want none and 3", n.Stats.Dropped(), backlog())
	}
	if h := n.Health(); h.State != component.Unhealthy || !strings.Contains(h.Message, "what it failed on is in quarantine") {
		t.Errorf("got health %+v", h)
	}
	// An error of the hook costs the batch, whatever each cost before.
	n.save(`return weir.transform { metrics = function(batch) batch:each(function(m) if m.name == "a" then error("no") end end) error("not at all") end }`, quarantined)
	same(t, n.send(text(t, 1, "a 1\nb 2\n")), "e{seen=\"1\"} stale\n") // of the version before
	got := entries(t, n)
	same(t, got[len(got)-1], "metrics:2 a 1 1000; b 2 1000")

	// The series hook.
	n.save(`return weir.transform { series = function(s) if s.name == "a" then error("no a") end end }`, quarantined)
	same(t, n.send(text(t, 1, "a 7\nb 2\n")), "b 2\n")
	got = entries(t, n)
	same(t, got[len(got)-1], "series:2 a 7 1000")

	// Replayed entries do not count as dropped; entries that the user drops do.
	n.save(`return weir.transform { metrics = function(batch) end }`, quarantined)
	ask := func(path string, id uint64) {
		t.Helper()
		if results, problem := askQuarantine(t, n, path, node.QuarantineRequest{IDs: []uint64{id}}); problem != "" || !results[0].Gone {
			t.Errorf("%s: got %+v %s", path, results, problem)
		}
	}
	ask("/quarantine/replay", 1)
	if len(n.Stats.Dropped()) > 0 || backlog() != 5 {
		t.Errorf("dropped %v, %d records in quarantine, want none and 5", n.Stats.Dropped(), backlog())
	}
	ask("/quarantine/drop", 2)
	if diff := cmp.Diff(map[string]uint64{"quarantine": 2}, n.Stats.Dropped()); diff != "" || backlog() != 3 {
		t.Errorf("%d records in quarantine; dropped (-want +got):\n%s", backlog(), diff)
	}
}

// A batch that cannot be stored is not accepted, so its source sends it again.
func TestQuarantineFull(t *testing.T) {
	n := newHarness(t)
	n.save(`return weir.transform { metrics = function(batch) batch:each(function(m) if m.name == "a" then error("no") end end) end }`, quarantined)
	dir := filepath.Join(n.StoragePath, "quarantine")
	if err := os.MkdirAll(n.StoragePath, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	in := text(t, 1, "a 1\nb 2\n")
	err := n.gate.ConsumeMetrics(t.Context(), in)
	if err == nil || !strings.Contains(err.Error(), "cannot put a batch into quarantine") && !strings.Contains(err.Error(), "cannot open the quarantine") {
		t.Fatalf("got %v", err)
	}
	if len(n.sink.Batches()) > 0 || len(n.Stats.Dropped()) > 0 {
		t.Errorf("%d batches went on, %v was dropped", len(n.sink.Batches()), n.Stats.Dropped())
	}
	if h := n.Health(); h.State != component.Unhealthy || !strings.Contains(h.Message, "the batch is refused") {
		t.Errorf("got health %+v", h)
	}
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	same(t, n.send(in), "b 2\n")
	wantEntries(t, n, "each:2 a 1 1000")
}

// askQuarantine asks the node as the CLI does.
func askQuarantine(t *testing.T, n *harness, path string, req node.QuarantineRequest) (results []node.QuarantineResult, problem string) {
	t.Helper()
	body, err := json.Marshal(req)
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	n.c.(component.Controller).Control().ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, strings.NewReader(string(body))))
	if w.Code != http.StatusOK {
		return nil, w.Body.String()
	}
	if err := json.Unmarshal(w.Body.Bytes(), &results); err != nil {
		t.Fatal(err)
	}
	return results, ""
}

const failsOnA = `return weir.transform { args = { env = weir.arg.string { default = "prod" } }, metrics = function(batch, ctx)
	batch:each(function(m) if m.name == "a" then error("no a") end m.labels.env = ctx.args.env end)
end }`

func TestReplay(t *testing.T) {
	n := newHarness(t)
	n.save(failsOnA, quarantined)
	in := "# TYPE a counter\n# HELP a Help.\na{x=\"\\xff\"} NaN(0x7ff8000000000bad) 900 st@800 # {trace_id=\"t\"} 1 850\na stale 950\na {count:3,sum:1.5,schema:3,positive_spans:[0:2],positive_buckets:[1,2]} 970\n"
	same(t, n.send(text(t, 1, in+"b 2\n")), "b{env=\"prod\"} 2 1000\n")
	same(t, n.send(text(t, 1, "a 4\n")), "")
	if got := entries(t, n); len(got) != 2 {
		t.Fatalf("got %q", got)
	}
	replay := func(req node.QuarantineRequest) string {
		t.Helper()
		results, problem := askQuarantine(t, n, "/quarantine/replay", req)
		out := problem
		for _, r := range results {
			out += fmt.Sprintf("%d passed=%v gone=%v %s", r.ID, r.Passed, r.Gone, r.Error)
			for _, o := range r.Outputs {
				out += fmt.Sprintf(" %s: %s", o.Name, o.Text)
			}
			out += "\n"
		}
		return out
	}
	// Not fixed: all stays, and nothing more comes.
	before := len(n.sink.Batches())
	if got := replay(node.QuarantineRequest{}); strings.Count(got, "passed=false gone=false scripts/a/b.lua:3: in each: no a") != 2 {
		t.Errorf("got %s", got)
	}
	if got := entries(t, n); len(got) != 2 || len(n.sink.Batches()) != before {
		t.Errorf("there are %d entries, and %d batches came", len(got), len(n.sink.Batches())-before)
	}
	// Another script, to see.
	with := &scripting.File{Name: "fixed.lua", Text: "local weir = require \"weir\"\n" + strings.Replace(failsOnA, `error("no a")`, `m.labels.a = "1"`, 1)}
	same(t, replay(node.QuarantineRequest{IDs: []uint64{2}, With: with}), "2 passed=true gone=false  forward_to: a{a=\"1\",env=\"prod\"} 4 1000\n\n")
	if len(n.sink.Batches()) != before {
		t.Error("a look sends something")
	}
	broken := *with
	broken.Text = "return 1"
	if got := replay(node.QuarantineRequest{With: &broken}); !strings.Contains(got, "cannot use fixed.lua") {
		t.Errorf("got %s", got)
	}
	needy := *with
	needy.Text = strings.Replace(with.Text, `env = weir.arg.string { default = "prod" }`, `other = weir.arg.int {}`, 1)
	if got := replay(node.QuarantineRequest{With: &needy}); !strings.Contains(got, "the block does not set other") {
		t.Errorf("got %s", got)
	}
	// And to send.
	same(t, replay(node.QuarantineRequest{IDs: []uint64{2}, With: with, Send: true}), "2 passed=true gone=true  forward_to: a{a=\"1\",env=\"prod\"} 4 1000\n\n")
	same(t, string(batch.AppendText(nil, n.sink.Last())), "a{a=\"1\",env=\"prod\"} 4 1000\n")
	// A sink that refuses: it stays.
	n.save(strings.Replace(failsOnA, `error("no a")`, ``, 1), quarantined)
	n.sink.Refuse(errors.New("no"))
	done := make(chan string)
	go func() { done <- replay(node.QuarantineRequest{}) }()
	for {
		select {
		case got := <-done:
			if !strings.Contains(got, "1 passed=false gone=false it passed the script, but it was not accepted") {
				t.Errorf("got %s", got)
			}
		case <-time.After(time.Millisecond):
			n.Clock.Advance(time.Second)
			continue
		}
		break
	}
	if got := entries(t, n); len(got) != 1 {
		t.Fatalf("got %q", got)
	}
	// Fixed: it comes out bit for bit.
	n.sink.Refuse(nil)
	same(t, replay(node.QuarantineRequest{}), "1 passed=true gone=true \n")
	same(t, string(batch.AppendText(nil, n.sink.Last())), strings.NewReplacer("a{x=\"\\xff\"}", "a{env=\"prod\",x=\"\\xff\"}", "a stale", "a{env=\"prod\"} stale", "a {count", "a{env=\"prod\"} {count").Replace(in))
	wantEntries(t, n)

	// Dropped.
	n.save(failsOnA, quarantined)
	same(t, n.send(text(t, 1, "a 4\n")), "")
	results, _ := askQuarantine(t, n, "/quarantine/drop", node.QuarantineRequest{})
	if len(results) != 1 || !results[0].Gone {
		t.Errorf("got %+v", results)
	}
	wantEntries(t, n)
	if results, _ := askQuarantine(t, n, "/quarantine/drop", node.QuarantineRequest{IDs: []uint64{77}}); results[0].Gone || !strings.Contains(results[0].Error, "there is no entry 77") {
		t.Errorf("got %+v", results)
	}
}

const held = "script {\non_error = \"hold\"\n}"

// A batch that is held waits, is tried again, and goes on with what is saved.
func TestHold(t *testing.T) {
	n := newHarness(t)
	n.save(`return weir.transform { metrics = function(batch) batch:each(function(m) if m.name == "a" or m.name == "c" then error("no a") end end) end }`, held)
	// Another source is not held.
	same(t, n.send(text(t, 2, "b 2\n")), "b 2\n")
	done := make(chan error, 1)
	go func() { done <- n.gate.ConsumeMetrics(context.Background(), text(t, 1, "a 1\nc 2\n")) }()
	n.Wait(t, func() bool {
		h := n.Health()
		return h.State == component.Unhealthy && strings.Contains(h.Message, "its sources are held until the script works")
	})
	n.Wait(t, func() bool { return n.Problem(component.ReasonHeld).State == component.Unhealthy })
	same(t, n.send(text(t, 2, "b 3\n")), "b 3\n")
	// The back-off ends, and it fails again.
	errorsBefore := strings.Count(n.Logs(), "script failed")
	n.Clock.Advance(time.Minute)
	same(t, n.send(text(t, 2, "b 4\n")), "b 4\n")
	if got := strings.Count(n.Logs(), "script failed"); got != errorsBefore {
		t.Errorf("the error is in the log %d times, was %d", got, errorsBefore)
	}
	select {
	case err := <-done:
		t.Fatalf("the batch was not held: %v", err)
	default:
	}
	// swap waits for calls on the old component, so the batch must leave it.
	n.save(`return weir.transform { metrics = function(batch) batch:set_label("v", "2") end }`, held)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	same(t, string(batch.AppendTextAt(nil, n.sink.Last(), 1000)), "a{v=\"2\"} 1\nc{v=\"2\"} 2\n")
	if len(n.Stats.Dropped()) > 0 {
		t.Errorf("dropped %v", n.Stats.Dropped())
	}
}

// A hook that works again after the back-off lets its batch go on; one whose
// source gives up, or whose node ends, does not accept it.
func TestHoldEnds(t *testing.T) {
	n := newHarness(t)
	n.save(`local calls = 0
	return weir.transform { metrics = function(batch) calls = calls + 1 if calls % 3 ~= 0 then error("not yet") end end }`, "script {\non_error = \"hold\"\nconcurrency = \"single\"\n}")
	done := make(chan error, 1)
	send := func(ctx context.Context) { done <- n.gate.ConsumeMetrics(ctx, text(t, 1, "a 1\n")) }
	go send(context.Background())
	for waiting := true; waiting; {
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
			waiting = false
		case <-time.After(time.Millisecond):
			n.Clock.Advance(time.Minute)
		}
	}
	same(t, string(batch.AppendTextAt(nil, n.sink.Last(), 1000)), "a 1\n")

	ctx, cancel := context.WithCancelCause(context.Background())
	gone := errors.New("the source gave up")
	go send(ctx)
	n.Wait(t, func() bool { return n.Health().State == component.Unhealthy })
	cancel(gone)
	if err := <-done; !errors.Is(err, gone) || !strings.Contains(err.Error(), "a.b.default holds the batch until its script works (scripts/a/b.lua:3)") {
		t.Errorf("got %v", err)
	}
	go send(context.Background())
	n.stop()
	if err := <-done; !errors.Is(err, flow.ErrStopped) {
		t.Errorf("got %v, want that it stopped", err)
	}
	if len(n.sink.Batches()) != 1 {
		t.Errorf("%d batches came", len(n.sink.Batches()))
	}
}

// The log has one line for each line of the script that fails, and in the end
// how many errors were not worth one. The page has the last error.
func TestErrorsNotLogged(t *testing.T) {
	n := newHarness(t)
	n.save(`return weir.transform { metrics = function(batch) batch:each(function(m) if m.value > 1 then error("large") end end) end }`, "")
	n.send(registrytest.Text(t, 1, "a 2\nb 3\nc 4\n"))
	info := func() string {
		t.Helper()
		b, err := json.Marshal(n.c.(component.Debugger).DebugInfo())
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	if got := info(); !strings.Contains(got, `"message":"large","record":"c 4 1000"`) || !strings.Contains(got, `"node":"a.b.default"`) {
		t.Errorf("got %s", got)
	}
	n.send(registrytest.Text(t, 1, "a 1\n"))
	if got := n.Logs(); strings.Count(got, `msg="script failed"`) != 1 || !strings.Contains(got, `msg="script works again" component_id=a.b.default errors_not_logged=2`) {
		t.Errorf("got log\n%s", got)
	}
	if got := info(); strings.Contains(got, "large") {
		t.Errorf("got %s", got)
	}
}

func TestShowQuarantine(t *testing.T) {
	n := newHarness(t)
	get := func(path string, status int) string {
		t.Helper()
		w := httptest.NewRecorder()
		n.c.(component.Controller).Control().ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if w.Code != status {
			t.Fatalf("%s: status %d, want %d: %s", path, w.Code, status, w.Body)
		}
		return w.Body.String()
	}
	n.save(`return weir.transform { args = { key = weir.arg.secret { } }, metrics = function(batch, ctx)
	batch:each(function(m) error("no " .. m.labels.x) end)
end }`, `key = "pass\"word"`+"\n"+quarantined)
	same(t, get("/quarantine", http.StatusOK), `{"total":0,"entries":[]}`+"\n")
	n.send(text(t, 1, `a{x="pass\"word"} 1`+"\n"))
	n.send(text(t, 1, `a{x="`+strings.Repeat("y", 300_000)+`"} 1`+"\n"))
	var list node.QuarantineList
	if err := json.Unmarshal([]byte(get("/quarantine", http.StatusOK)), &list); err != nil {
		t.Fatal(err)
	}
	if list.Total != 2 || len(list.Entries) != 2 || list.Entries[0].ID != 2 || list.Entries[1].Records != 1 || list.Entries[1].Signal != "metrics" ||
		!strings.Contains(list.Entries[1].Error, "no (secret)") || strings.Contains(fmt.Sprint(list), "word") {
		t.Errorf("got %+v", list)
	}
	var first, second node.QuarantineData
	if err := json.Unmarshal([]byte(get("/quarantine/1", http.StatusOK)), &first); err != nil {
		t.Fatal(err)
	}
	same(t, first.Data, `a{x="(secret)"} 1 1000`+"\n")
	if err := json.Unmarshal([]byte(get("/quarantine/2", http.StatusOK)), &second); err != nil {
		t.Fatal(err)
	}
	if !second.Cut || len(second.Data) != 256<<10 {
		t.Errorf("%d bytes, cut is %v", len(second.Data), second.Cut)
	}
	get("/quarantine/3", http.StatusNotFound)
	get("/quarantine/x", http.StatusBadRequest)
}
