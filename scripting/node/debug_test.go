package node_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-dap"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/scripting/debug/debugtest"
	"github.com/weir-run/weir/scripting/internal/registrytest"
)

// debugs is a node with debuggers.
type debugs struct {
	*trials
	server *httptest.Server
}

func newDebugs(t *testing.T) *debugs {
	f := &debugs{trials: newTrials(t)}
	f.gate.SetAccepts(batch.SignalMetrics | batch.SignalLogs)
	f.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.c.(component.Controller).Control().ServeHTTP(w, r)
	}))
	t.Cleanup(f.server.Close)
	return f
}

// run makes a script the running version.
func (f *debugs) run(path, text string) {
	f.t.Helper()
	f.trials.save(path, text)
	r := registrytest.Lookup(f.t, f.cat, "a.b")
	if r.Err != nil {
		f.t.Fatal(r.Err)
	}
	f.swap(r, "")
}

// debug begins a session. end disconnects its client.
func (f *debugs) debug(where string) (c *debugtest.Client, end func()) {
	f.t.Helper()
	body, feed := io.Pipe()
	resp, err := http.Post(f.server.URL+"/debug?where="+url.QueryEscape(where), "application/octet-stream", body) //nolint:noctx
	if err != nil {
		f.t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(resp.Body)
		f.t.Fatalf("got %s: %s", resp.Status, text)
	}
	c = debugtest.New(f.t, resp.Body, feed)
	ended := false
	end = func() {
		if !ended {
			ended = true
			feed.Close()
			c.Closed()
			resp.Body.Close()
		}
	}
	f.t.Cleanup(end)
	return c, end
}

// refused returns the status and the text of a request that begins no session.
func (f *debugs) refused(where string) string {
	f.t.Helper()
	resp, err := http.Post(f.server.URL+"/debug?where="+url.QueryEscape(where), "application/octet-stream", strings.NewReader("")) //nolint:noctx
	if err != nil {
		f.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		f.t.Fatal(err)
	}
	return resp.Status[:4] + strings.TrimSpace(string(text))
}

func (f *debugs) parse(text string) *batch.Metrics {
	f.t.Helper()
	b, err := batch.ParseText(text, batch.TextOptions{T: 1_700_000_000_000})
	if err != nil {
		f.t.Fatal(err)
	}
	return b
}

const debuggedLua = `local weir = require "weir"
local sent = "sent"
return weir.transform {
  state = { seen = weir.state.map{} },
  metrics = function(batch, ctx)
    local n = (ctx.state.seen:get("n") or 0) + 1
    ctx.state.seen:set("n", n)
    ctx.log.info("hello", { n = n })
    batch:each(function(s)
      s.labels.n = tostring(n)
    end)
  end,
}
`

const debuggedTS = `import { defineTransform, state, type Metrics } from "weir";
const sent: string = "sent";
export default defineTransform({
  state: { seen: state.map() },
  metrics(batch: Metrics, ctx) {
    const n: number = (ctx.state.seen.get("n") ?? 0) + 1;
    ctx.state.seen.set("n", n);
    ctx.log.info("hello", { n });
    for (const s of batch) {
      s.labels.n = String(n);
    }
  },
});
`

// debuggedScripts are the same script in each language.
var debuggedScripts = map[string]string{"a/b.lua": debuggedLua, "a/b.ts": debuggedTS}

func equalText(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestDebugNode checks that a copy of the node with its state is debugged, and that
// the node goes on while the copy is stopped.
func TestDebugNode(t *testing.T) {
	for path, text := range debuggedScripts {
		t.Run(path, func(t *testing.T) { testDebugNode(t, path, text) })
	}
}

func testDebugNode(t *testing.T, path, text string) {
	f := newDebugs(t)
	f.run(path, text)
	equalText(t, f.send(f.parse("x 1\n")), "x{n=\"1\"} 1\n")

	c, end := f.debug("value > 10")
	set := c.Start(f.f.Dir+"/"+path, dap.SourceBreakpoint{Line: 7}, dap.SourceBreakpoint{Line: 99})
	if !set[0].Verified || set[1].Verified || set[1].Message != "there is no statement in this line or below it" {
		t.Errorf("got breakpoints %+v", set)
	}
	c.Output("it waits for a batch")
	equalText(t, f.refused(""), "409 somebody else debugs a.b.default; try again when that has ended")
	equalText(t, f.send(f.parse("x 2\n")), "x{n=\"2\"} 2\n") // does not match
	equalText(t, f.send(f.parse("x 3\ny 11\n")), "x{n=\"3\"} 3\ny{n=\"3\"} 11\n")
	equalText(t, c.Stopped(), "breakpoint metrics:7")
	equalText(t, c.Evaluate(0, "n"), "2") // the state was copied after one batch
	equalText(t, f.send(f.parse("x 12\n")), "x{n=\"4\"} 12\n")
	c.Step("continue")
	c.Output("hello")
	equalText(t, c.Output("records in"), "records in: 2, out: 2 (not sent)\n  x{n=\"2\"} 3 1700000000000\n  y{n=\"2\"} 11 1700000000000\n")
	equalText(t, c.Output("the call has ended"), "the call has ended; batches that came meanwhile and were skipped: 1\n")
	end()
	equalText(t, f.send(f.parse("x 13\n")), "x{n=\"5\"} 13\n")
}

// TestDebugReload checks that a session goes on with a new version, also while the
// script is stopped, and ends with the node.
func TestDebugReload(t *testing.T) {
	for path, text := range debuggedScripts {
		t.Run(path, func(t *testing.T) { testDebugReload(t, path, text) })
	}
}

func testDebugReload(t *testing.T, path, text string) {
	f := newDebugs(t)
	f.run(path, text)
	c, _ := f.debug("")
	c.Start(f.f.Dir+"/"+path, dap.SourceBreakpoint{Line: 6})
	c.Output("it waits for a batch")
	f.send(f.parse("x 1\n"))
	equalText(t, c.Stopped(), "breakpoint metrics:6")
	f.run(path, strings.NewReplacer("local n =", "\nlocal n =", "const n:", "\nconst n:").Replace(text))
	debugtest.Event[*dap.ContinuedEvent](c)
	c.Output("the node was rebuilt")
	if e := debugtest.Event[*dap.BreakpointEvent](c); e.Body.Breakpoint.Line != 7 {
		t.Errorf("got %+v", e.Body)
	}
	c.Output("it waits for a batch")
	f.send(f.parse("x 1\n"))
	equalText(t, c.Stopped(), "breakpoint metrics:7")
	f.remove()
	c.Output("the node was removed, or weir stops")
	debugtest.Event[*dap.TerminatedEvent](c)
	c.Closed()
}

func TestDebugRefuses(t *testing.T) {
	f := newDebugs(t)
	f.run("a/b.lua", "local weir = require \"weir\"\nreturn weir.source { every = { [\"1h\"] = function() end } }\n")
	equalText(t, f.refused(""), "409 a.b.default cannot be debugged: only scripts that receive records and send them on can be")
	f.run("a/b.lua", registrytest.Script)
	if got := f.refused("1 +"); !strings.HasPrefix(got, "400 where: ") {
		t.Errorf("got %s", got)
	}
}
