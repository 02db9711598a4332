package node_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/host"
	"github.com/weir-run/weir/scripting/js"
	"github.com/weir-run/weir/scripting/quarantine"
	"github.com/weir-run/weir/scripting/registry"
	"github.com/weir-run/weir/stdlib"
)

// saveScript saves a sink in Lua or JavaScript.
func (n *sinkNode) saveScript(lang, src, attrs string) {
	n.t.Helper()
	if lang == "lua" {
		n.save(src, attrs)
		return
	}
	path := n.f.Write("a/b.js", src)
	var err error
	n.cat, err = registry.NewCatalog(registry.Options{
		Languages: []scripting.Language{js.New()}, UserDir: n.f.Dir, Modules: stdlib.Modules(), Outside: host.Outside{HTTP: n.e},
	})
	if err != nil {
		n.t.Fatal(err)
	}
	n.cat.Refresh([]string{path})
	r, _ := n.cat.Lookup("a.b")
	if r.Err != nil {
		n.t.Fatal(r.Err)
	}
	n.swap(r, attrs)
}

// sinkFails are sinks that post their batch, and fail on all of it because of one
// record, in both languages.
var sinkFails = []struct{ name, lang, src string }{
	{"error", "lua", luaSink(`for m in batch:records() do
		if m.name == "bad" then error("it is bad") end
	end`, "")},
	{"limit", "lua", luaSink(`for m in batch:records() do
		if m.name == "bad" then string.rep("x", 9 * 1024 * 1024) end
	end`, "")},
	{"answer 400", "lua", luaSink("", `assert(answer.status < 300, "status " .. answer.status)`)},
	{"error", "js", jsSink(`for (const m of batch) {
		if (m.name === "bad") throw new Error("it is bad");
	}`, "")},
	{"limit", "js", jsSink(`for (const m of batch) {
		if (m.name === "bad") "x".repeat(9 * 1024 * 1024);
	}`, "")},
	{"answer 400", "js", jsSink("", `if (answer.status >= 300) throw new Error("status " + answer.status);`)},
}

func luaSink(before, after string) string {
	return `return weir.sink { needs = { http = { "https://hook.example/*" } }, send = function(batch, ctx)
	` + before + `
	local answer, err = ctx.http.post("https://hook.example/v1", batch:text(), { headers = { ["Idempotency-Key"] = ctx.batch_id(), ["X-Attempt"] = tostring(ctx.attempt()) } })
	if not answer then return ctx.retry { reason = err } end
	if answer.status >= 500 then return ctx.retry { reason = answer.body } end
	` + after + `
end }`
}

func jsSink(before, after string) string {
	return `import { defineSink } from "weir";
export default defineSink({ needs: { http: ["https://hook.example/*"] }, async send(batch, ctx) {
	` + before + `
	const answer = await ctx.http.post("https://hook.example/v1", batch.text(), { headers: { "Idempotency-Key": ctx.batchId(), "X-Attempt": String(ctx.attempt()) } });
	if (answer.status >= 500) return ctx.retry({ reason: answer.body });
	` + after + `
} });`
}

// rejectsBad answers 400 to every body with a bad record.
func rejectsBad(body string) int {
	if strings.Contains(body, "bad") {
		return http.StatusBadRequest
	}
	return http.StatusOK
}

const badAttrs = `
batch { max_wait = "0s" }
script {
	on_error = %q
	limits { time = "10s" }
	allow { http = ["https://hook.example/*"] }
}`

// manySamples has rows samples, one of which is called bad.
func manySamples(rows, bad int) string {
	var b strings.Builder
	for i := range rows {
		name := "good"
		if i == bad {
			name = "bad"
		}
		fmt.Fprintf(&b, "%s{i=\"%02d\"} 1 1\n", name, i)
	}
	return b.String()
}

// One record that send cannot process costs no other record of its batch
// anything, and does not hold those behind it.
func TestSinkBadRecord(t *testing.T) {
	const rows, bad = 50, 17
	for _, on := range []string{"hold", "drop", "quarantine"} {
		for _, f := range sinkFails {
			if f.name == "answer 400" && on != "hold" {
				continue // nothing is sent twice for these
			}
			t.Run(on+" "+f.lang+" "+f.name, func(t *testing.T) {
				onSink(t, func(t *testing.T, n *sinkNode) {
					n.e.set(rejectsBad)
					n.saveScript(f.lang, f.src, fmt.Sprintf(badAttrs, on))
					source := batch.NewSource()
					n.accept(text(t, source, manySamples(rows, bad)))
					posts := n.after(100 * time.Millisecond)
					if h := n.Health(); h.State != component.Unhealthy || !strings.Contains(h.Message, "in send: ") {
						t.Errorf("got %+v", h)
					}
					n.accept(text(t, source, "behind 1 2\n"))
					var delivered []string
					for _, p := range append(posts, n.after(100*time.Millisecond)...) {
						if !strings.Contains(p, "bad") {
							delivered = append(delivered, strings.Split(strings.TrimSpace(p), "\n")...)
						}
					}
					// Each once, and in order.
					want := strings.Split(strings.TrimSpace(manySamples(rows, bad)), "\n")
					want = append(slices.Delete(want, bad, bad+1), "behind 1 2")
					equal(t, delivered, want)
					stored, dropped := entriesOf(t, n.harness), lost(t, n)
					if on == "drop" {
						equal(t, stored, nil)
						equal(t, dropped, map[string]float64{"script_error": 1})
					} else {
						if len(stored) != 1 || !strings.Contains(stored[0], `bad{i="17"} 1 1`) || strings.Contains(stored[0], "good") {
							t.Errorf("in quarantine: %q", stored)
						}
						equal(t, dropped, map[string]float64{})
						equal(t, figures(t, n.harness, "weir_script_quarantined_samples_total"), map[string]float64{"": 1})
					}
					equal(t, figures(t, n.harness, "weir_script_sink_records_pending"), map[string]float64{})
					equal(t, figures(t, n.harness, "weir_script_sink_records_sent_total"), map[string]float64{"": rows})
					if n := strings.Count(n.Logs(), "script failed"); n != 1 {
						t.Errorf("the log has %d errors of the script", n)
					}
					if h := n.Health(); h.State != component.Healthy { // of the batch behind
						t.Errorf("got %+v", h)
					}
				})
			})
		}
	}
}

// keys are the batch IDs by the body that went with them, of all posts so far.
func (n *sinkNode) keys(posts []string) map[string]string {
	n.t.Helper()
	n.e.mu.Lock()
	headers := n.e.headers
	n.e.headers = nil
	n.e.mu.Unlock()
	if len(headers) != len(posts) {
		n.t.Fatalf("%d headers of %d posts", len(headers), len(posts))
	}
	keys := map[string]string{}
	for i, p := range posts {
		key := headers[i].Get("Idempotency-Key")
		if was, ok := keys[p]; ok && was != key {
			n.t.Errorf("%q went as %s and as %s", p, was, key)
		}
		keys[p] = key
	}
	return keys
}

// Parts of a batch have IDs of their own, the same at every attempt, and when
// weir was restarted in the middle of the search. An outage meanwhile blames no
// record, and what was delivered before it is not sent again by this process.
func TestSinkBadRecordInAnOutage(t *testing.T) {
	onSink(t, func(t *testing.T, n *sinkNode) {
		const rows, bad = 20, 13
		src := luaSink("", `assert(answer.status < 300, "status " .. answer.status)`)
		posts := 0
		n.e.set(func(body string) int {
			if posts++; posts > 5 {
				return http.StatusServiceUnavailable
			}
			return rejectsBad(body)
		})
		n.save(src, fmt.Sprintf(badAttrs, "hold"))
		n.accept(text(t, batch.NewSource(), manySamples(rows, bad)))
		before := n.after(5 * time.Minute)
		first := n.keys(before)
		ids := map[string]bool{}
		for _, id := range first {
			ids[id] = true
		}
		if len(ids) != len(first) || len(first) < 4 {
			t.Errorf("%d bodies went under %d names", len(first), len(ids))
		}
		whole := 0
		for _, p := range before[5:] {
			if strings.Contains(p, `i="00"`) {
				whole++
			}
		}
		if whole > 0 || !strings.Contains(before[1], `i="00"`) {
			t.Errorf("what was delivered was sent again %d times", whole)
		}
		equal(t, entriesOf(t, n.harness), nil)
		equal(t, figures(t, n.harness, "weir_script_sink_records_pending")[""], 8) // what comes after the 12 that were delivered

		n.stop()
		n.keys(n.e.takeBodies())
		n.open(t)
		n.e.set(rejectsBad)
		n.save(src, fmt.Sprintf(badAttrs, "hold"))
		after := n.after(time.Minute)
		second := n.keys(after)
		same := 0
		for body, id := range second {
			if was, ok := first[body]; ok {
				if was != id {
					t.Errorf("%q went as %s before and as %s after the restart", body, was, id)
				}
				same++
			}
		}
		if same < 4 {
			t.Errorf("only %d bodies went before and after the restart", same)
		}
		if stored := entriesOf(t, n.harness); len(stored) != 1 || !strings.Contains(stored[0], "bad") {
			t.Errorf("in quarantine: %q", stored)
		}
		equal(t, figures(t, n.harness, "weir_script_sink_records_pending"), map[string]float64{})
	})
}

// A failure of the destination blames no record, however the script reports it.
func TestSinkBlamesTheDestination(t *testing.T) {
	for _, code := range []int{401, 403, 404, 408, 429, 500, 503} {
		onSink(t, func(t *testing.T, n *sinkNode) {
			n.save(`return weir.sink { needs = { http = { "https://hook.example/*" } }, send = function(batch, ctx)
				local answer = assert(ctx.http.post("https://hook.example/v1", batch:text()))
				assert(answer.status < 300, "status " .. answer.status)
			end }`, sinkAttrs)
			source := batch.NewSource()
			n.accept(text(t, source, "a 1 1\n"))
			equal(t, n.after(time.Second), []string{"a 1 1\n"})
			n.e.set(status(code))
			n.accept(text(t, source, "a 2 2\nb 2 2\n"))
			for _, p := range n.after(time.Hour) {
				equal(t, p, "a 2 2\nb 2 2\n")
			}
			equal(t, entriesOf(t, n.harness), nil)
			n.e.set(nil)
			equal(t, n.after(time.Minute), []string{"a 2 2\nb 2 2\n"})
		})
	}
}

// A script that is broken keeps its records: few of them go into quarantine, and
// few calls use the outside.
func TestSinkIsBroken(t *testing.T) {
	onSink(t, func(t *testing.T, n *sinkNode) {
		n.save(luaSink("", `error("it is broken")`), sinkAttrs)
		n.accept(text(t, batch.NewSource(), manySamples(50, -1)))
		if posts := n.after(500 * time.Millisecond); len(posts) > 14 {
			t.Errorf("%d posts at once", len(posts))
		}
		n.after(6 * time.Hour)
		if stored := len(entriesOf(t, n.harness)); stored > 10 {
			t.Errorf("%d records in quarantine", stored)
		}
		if held := figures(t, n.harness, "weir_script_held_batches")[""]; held != 1 {
			t.Errorf("%v batches are held", held)
		}
		n.save(poster, sinkAttrs)
		if got := strings.Join(n.after(time.Second), ""); got != manySamples(50, -1) {
			t.Errorf("got %q", got)
		}
		if held := figures(t, n.harness, "weir_script_held_batches")[""]; held != 0 {
			t.Errorf("%v batches are held", held)
		}
	})
}

// TestSinkIsKilledSearching kills a process while it looks for bad records. All
// that it accepted arrives after a restart, or is in quarantine.
func TestSinkIsKilledSearching(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "scripts", "a"), 0o700); err != nil {
		t.Fatal(err)
	}
	src := strings.Replace(killedSink, "if answer.status ~= 200 then", `assert(answer.status ~= 400, "it cannot accept this")
		if answer.status ~= 200 then`, 1)
	if err := os.WriteFile(filepath.Join(dir, "scripts", "a", "b.lua"), []byte(src), 0o600); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	have := map[string]bool{}
	bad := make(chan struct{}, 1000)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if strings.Contains(string(body), " 7 1\n") {
			w.WriteHeader(http.StatusBadRequest)
			select {
			case bad <- struct{}{}:
			default:
			}
		} else if err == nil {
			mu.Lock()
			defer mu.Unlock()
			for line := range strings.Lines(string(body)) {
				have[strings.TrimSpace(line)] = true
			}
		}
	}))
	defer srv.Close()
	url := srv.URL + "/write"
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), "WEIR_TEST_SINK_DIR="+dir, "WEIR_TEST_SINK_URL="+url)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	accepted, answers := map[string]bool{}, 0
	lines := bufio.NewScanner(out)
	for killed := false; lines.Scan(); {
		var source, i int
		if _, err := fmt.Sscanf(lines.Text(), "accepted %d %d", &source, &i); err == nil {
			for _, k := range []string{"x", "y"} {
				accepted[fmt.Sprintf("s%d{k=%q} %d 1", source, k, i)] = true
			}
		}
		for len(bad) > 0 {
			<-bad
			answers++
		}
		if !killed && len(accepted) > 100 && answers >= 3 {
			killed = true
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	_ = cmd.Wait() // it was killed

	c, err := realSink(dir, url)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- c.Run(ctx) }()
	left := func() (n int) {
		stored := storedIn(t, quarantine.Dir(dir, "a.b.default"))
		mu.Lock()
		defer mu.Unlock()
		for record := range accepted {
			if !have[record] && !strings.Contains(stored, record) {
				n++
			}
		}
		return n
	}
	for deadline := time.Now().Add(2 * time.Minute); left() > 0; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d records have not arrived", left(), len(accepted))
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	for record := range have {
		if strings.HasSuffix(record, " 7 1") {
			t.Errorf("%s arrived", record)
		}
	}
	for line := range strings.Lines(storedIn(t, quarantine.Dir(dir, "a.b.default"))) {
		if !strings.HasSuffix(line, " 7 1\n") {
			t.Errorf("in quarantine: %s", line)
		}
	}
}

// storedIn is what is in a quarantine.
func storedIn(t *testing.T, dir string) string {
	t.Helper()
	l, err := quarantine.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, e := range l.Entries {
		_, data, err := quarantine.Read(dir, e.ID)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(data)
	}
	return all.String()
}
