package http_test

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/service"
	"github.com/weir-run/weir/engine/service/http"
)

// taker accepts everything.
type taker struct{}

func (taker) ConsumeMetrics(context.Context, *batch.Metrics) error { return nil }
func (taker) ConsumeLogs(context.Context, *batch.Logs) error       { return nil }

func parse(t *testing.T, text string) *batch.Metrics {
	t.Helper()
	b, err := batch.ParseText(text, batch.TextOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// house is a host with nodes that have seen samples.
func house(t *testing.T) *host {
	t.Helper()
	stats := new(flow.Stats)
	r := flow.NewReceiver("a.sink.b", batch.SignalMetrics, stats, nil)
	r.Set(taker{})
	out := new(flow.Stats)
	text := "# TYPE temperature gauge\n"
	for range 300 {
		text += `temperature{room="<script>alert(1)</script>"} 21.5 1000` + "\n"
	}
	b := parse(t, text)
	if err := flow.NewOutput(out, []*flow.Receiver{r}).SendMetrics(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	healthy := component.Health{State: component.Healthy}
	return &host{
		components: map[string]component.Component{"a.source.x": server{}, "m.one/a.source.y": server{}},
		infos: []service.Info{
			{ID: "a.source.x", Name: "a.source", Health: healthy, Stats: out, SendsTo: []string{"a.sink.b"}, DependsOn: []string{"a.sink.b", "local.file.p"}, Position: "c.alloy:7"},
			{ID: "a.sink.b", Name: "a.sink", Stats: stats, Health: component.Health{State: component.Unhealthy, Message: "<b>no disk"},
				Arguments: &arguments{"http://x", "hunter2", nil}},
			{ID: "local.file.p", Name: "local.file", Health: healthy, Stats: new(flow.Stats)},
			{ID: "m.one/a.source.y", Name: "a.source", Health: healthy, Stats: new(flow.Stats)},
			{ID: "a.source.idle", Name: "a.source", Health: healthy, Stats: new(flow.Stats), SendsTo: []string{"a.sink.b"}},
		},
		overview: service.Overview{Services: []service.Info{{ID: "http", Name: "http", Health: healthy, DependsOn: []string{"local.file.p"}}, {ID: "telemetry", Health: healthy}}},
	}
}

func TestGraphInPage(t *testing.T) {
	s := run(t, house(t), http.Options{})
	c, base := owner(t, s), "http://"+s.Address()
	for _, path := range []string{"/", "/graph"} {
		_, body := get(t, c, "GET", base+path)
		for _, want := range []string{
			`<a href="/node/a.source.x">`, `<g class="node healthy" data-id="a.source.x">`, `<g class="node unhealthy" data-id="a.sink.b">`,
			`<path class="flow"`, `<title>a.source.x → a.sink.b</title>`, `<path class="reference"`, `<title>local.file.p → http</title>`,
			`>300 out</text>`, `>300 in</text>`, `data-id="m.one/a.source.y"`, `<a href="/node/m.one/a.source.y">`, `unhealthy: &lt;b&gt;no disk`,
		} {
			if !strings.Contains(body, want) {
				t.Errorf("%s has no %s", path, want)
			}
		}
		if strings.Contains(body, `data-id="telemetry"`) {
			t.Errorf("%s draws a service that refers to nothing", path)
		}
	}
	// Without JavaScript there is a table.
	_, body := get(t, c, "GET", base+"/")
	_, table, _ := strings.Cut(body, "<noscript>")
	for _, want := range []string{`<a href="/node/a.sink.b">a.sink.b</a></td><td class="state">unhealthy</td>`, `<td class="num">300</td>`, `<a href="/node/http">http</a>`} {
		if !strings.Contains(table, want) {
			t.Errorf("the table has no %s", want)
		}
	}
}

func TestNodePage(t *testing.T) {
	s := run(t, house(t), http.Options{})
	c, base := owner(t, s), "http://"+s.Address()
	f := func(path string, wants ...string) {
		t.Helper()
		status, body := get(t, c, "GET", base+path)
		if status != 200 {
			t.Errorf("%s: got %d", path, status)
		}
		for _, want := range wants {
			if !strings.Contains(body, want) {
				t.Errorf("%s has no %s:\n%s", path, want, body)
			}
		}
		for _, never := range []string{"hunter2", "<script", "<b>"} {
			if strings.Contains(body, never) {
				t.Errorf("%s has %s", path, never)
			}
		}
	}
	f("/node/a.source.x", `<code>c.alloy:7</code>`, `<div>sends to</div><div><a href="/node/a.sink.b">`, `<div>refers to</div><div><a href="/node/local.file.p">`,
		"last batch out", "300 rows, the first 200 are shown", "temperature{room=&#34;&lt;script&gt;alert(1)", "in 0, sent 300")
	f("/node/a.sink.b", "last batch in", `<div>gets from</div><div><a href="/node/a.source.x">`, "&lt;b&gt;no disk", "&#34;password&#34;: &#34;(secret)&#34;")
	f("/node/a.source.idle", "none yet", "in 0, sent 0")
	f("/node/local.file.p", `<div>used by</div><div><a href="/node/a.source.x">`, `<a href="/node/http">`)
	if _, body := get(t, c, "GET", base+"/node/local.file.p"); strings.Contains(body, "last batch") || strings.Contains(body, "samples") {
		t.Errorf("a node that no samples can come to speaks of them:\n%s", body)
	}
	f("/node/m.one/a.source.y", "m.one/a.source.y")
	f("/node/http", `<div>used by</div><div><a href="/node/a.source.x">`) // its consumers
	if status, body := get(t, c, "GET", base+"/node/nobody"); status != 404 || body != "there is no node nobody" {
		t.Errorf("got %d %s", status, body)
	}
	// Nodes inside modules are reached by their whole name.
	if status, body := get(t, c, "GET", base+"/api/v0/component/m.one/a.source.y/metrics"); status != 200 || body != "GET /metrics" {
		t.Errorf("in a module: got %d %q", status, body)
	}
}

func TestLastBatch(t *testing.T) {
	s := run(t, house(t), http.Options{})
	c, base := owner(t, s), "http://"+s.Address()
	f := func(path string, wantStatus int, want string) {
		t.Helper()
		if status, body := get(t, c, "GET", base+"/api/v0/batch/"+path); status != wantStatus || body != want {
			t.Errorf("%s: got %d %q, want %d %q", path, status, body, wantStatus, want)
		}
	}
	const row = `temperature{room="<script>alert(1)</script>"} 21.5 1000`
	f("a.source.x?rows=2", 200, "# TYPE temperature gauge\n"+row+"\n"+row+"\n# 2 of 300 rows")
	f("a.source.x?rows=1&of=in", 200, "")
	f("a.sink.b?rows=1", 200, "# TYPE temperature gauge\n"+row+"\n# 1 of 300 rows")
	f("a.sink.b?of=out", 200, "")
	f("a.sink.b?of=up", 400, `of must be in or out, not "up"`)
	f("a.sink.b?rows=0", 400, `rows must be a number from 1 to 10000, not "0"`)
	f("a.sink.b?rows=many", 400, `rows must be a number from 1 to 10000, not "many"`)
	f("nobody", 404, "there is no node nobody")
	f("http", 404, "there is no node http")

	// A row longer than what is shown.
	long := new(flow.Stats)
	r := flow.NewReceiver("long", batch.SignalMetrics, long, nil)
	r.Set(taker{})
	if err := r.ConsumeMetrics(t.Context(), parse(t, `a{b="`+strings.Repeat("x", 300<<10)+`"} 1 1`+"\n")); err != nil {
		t.Fatal(err)
	}
	h := &host{infos: []service.Info{{ID: "long", Name: "long", Stats: long}}}
	s = run(t, h, http.Options{})
	if _, body := get(t, owner(t, s), "GET", "http://"+s.Address()+"/node/long"); !strings.Contains(body, "# the rest is left out") || len(body) > 100<<10 {
		t.Errorf("a long row: %d bytes", len(body))
	}
}

// TestLines: log lines are shown and counted like samples.
func TestLines(t *testing.T) {
	h := house(t)
	in, out := new(flow.Stats), new(flow.Stats)
	r := flow.NewReceiver("l.sink.b", batch.SignalLogs, in, nil)
	r.Set(taker{})
	b, err := batch.ParseLogsText("{app=\"x\"} <b>hi\n{app=\"x\"} two", batch.TextOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := flow.NewOutput(out, []*flow.Receiver{r}).SendLogs(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	in.DropLines("too_old", 5)
	healthy := component.Health{State: component.Healthy}
	h.infos = append(h.infos, service.Info{ID: "l.source.a", Name: "l.source", Health: healthy, Stats: out, SendsTo: []string{"l.sink.b"}},
		service.Info{ID: "l.sink.b", Name: "l.sink", Health: healthy, Stats: in})
	s := run(t, h, http.Options{})
	c, base := owner(t, s), "http://"+s.Address()
	f := func(path, want string) {
		t.Helper()
		if _, body := get(t, c, "GET", base+path); !strings.Contains(body, want) {
			t.Errorf("%s has no %s:\n%s", path, want, body)
		}
	}
	f("/node/l.sink.b", "<div>lines</div><div>in 2, sent 0, dropped as too_old 5</div>")
	f("/node/l.sink.b", "last batch in <span class=\"soft\">2 lines</span>")
	f("/node/l.sink.b", "{app=&#34;x&#34;} @1970-01-01T00:00:00Z &lt;b&gt;hi")
	f("/graph", ">2 out</text>")
	f("/", `l.sink.b</a></td><td class="state">healthy</td>
        <td class="num">2</td><td class="num">0</td><td class="num"></td><td class="num">5</td>`)
	if _, body := get(t, c, "GET", base+"/api/v0/batch/l.source.a?rows=1"); body != "{app=\"x\"} @1970-01-01T00:00:00Z <b>hi\n# 1 of 2 lines" {
		t.Errorf("got %q", body)
	}
	_, body := get(t, c, "GET", base+"/api/v0/status")
	var compact bytes.Buffer
	if err := json.Compact(&compact, []byte(body)); err != nil || !strings.Contains(compact.String(), `"lines":{"in":2,"out":0,"dropped":{"too_old":5}}`) {
		t.Errorf("the status has no lines: %v\n%s", err, body)
	}
}

// A sink shows what waits in its journal, of this process or of one before it.
func TestBacklog(t *testing.T) {
	h := house(t)
	samples, lines, before := new(flow.Stats), new(flow.Stats), new(flow.Stats)
	samples.In.Store(483)
	lines.LinesIn.Store(20)
	lines.LinesOut.Store(12)
	lines.DropLines("rejected", 1)
	h.infos = append(h.infos,
		service.Info{ID: "w.metrics.a", Stats: samples, Backlog: component.Backlog{Journal: true, Samples: 483}},
		service.Info{ID: "w.logs.a", Stats: lines, Backlog: component.Backlog{Journal: true, Lines: 7}},
		service.Info{ID: "w.before.a", Stats: before, Backlog: component.Backlog{Journal: true, Lines: 9}},
		service.Info{ID: "w.transform.a", Stats: new(flow.Stats), Backlog: component.Backlog{Quarantined: 4}},
	)
	s := run(t, h, http.Options{})
	c, base := owner(t, s), "http://"+s.Address()
	_, body := get(t, c, "GET", base+"/api/v0/status")
	var compact bytes.Buffer
	if err := json.Compact(&compact, []byte(body)); err != nil {
		t.Fatal(err)
	}
	status := func(id, want string) {
		t.Helper()
		_, node, _ := strings.Cut(compact.String(), `{"id":"`+id+`"`)
		node, _, _ = strings.Cut(node, `"arguments"`)
		if !strings.Contains(node, want) {
			t.Errorf("the status of %s has no %s: %s", id, want, node)
		}
	}
	status("w.metrics.a", `"samples":{"in":483,"out":0,"sent":0,"waiting":483,"dropped":{}}`)
	status("w.logs.a", `"lines":{"in":20,"out":12,"sent":12,"waiting":7,"dropped":{"rejected":1}}`)
	status("w.before.a", `"lines":{"in":0,"out":0,"sent":0,"waiting":9,"dropped":{}}`)
	status("w.transform.a", `"quarantined":4`)
	status("a.sink.b", `"samples":{"in":300,"out":0,"dropped":{}}`)
	page := func(path, want string) {
		t.Helper()
		if _, body := get(t, c, "GET", base+path); !strings.Contains(body, want) {
			t.Errorf("%s has no %s:\n%s", path, want, body)
		}
	}
	page("/node/w.metrics.a", "in 483, sent 0, waiting 483<")
	page("/node/w.logs.a", "in 20, sent 12, waiting 7, dropped as rejected 1<")
	page("/node/w.transform.a", "<div>quarantined</div><div>4</div>")
	page("/", `<td class="num">483</td><td class="num">0</td><td class="num">483</td><td class="num">0</td>`)
	page("/", `<td class="num">20</td><td class="num">12</td><td class="num">7</td><td class="num">1</td>`)
}

// TestNewVersionOnPages: the pages show the version of a node, the step of a new one, the
// reports in its debug information, and the message of a healthy node.
func TestNewVersionOnPages(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	h := house(t)
	h.overview.Time = now
	h.infos[2].Version, h.infos[2].Health.Message = "1111111aaaaa", "pinned to version 1111111"
	h.infos[2].Trial = &service.Trial{Version: "2222222bbbbb", Step: component.StepCanary, Since: now.Add(-time.Minute)}
	h.infos[2].Debug = func() any {
		return map[string]any{"reports": []map[string]string{{"name": "canary", "text": "<b>5 % of the series"}}}
	}
	s := run(t, h, http.Options{})
	c, base := owner(t, s), "http://"+s.Address()
	f := func(path string, want ...string) {
		t.Helper()
		_, body := get(t, c, "GET", base+path)
		for _, want := range want {
			if !strings.Contains(body, want) {
				t.Errorf("%s has no %s:\n%s", path, want, body)
			}
		}
	}
	f("/node/local.file.p", "<div>version</div><div>1111111</div>", "<div>new version</div><div>2222222: canary for 60 s</div>",
		"<div>canary</div><div><pre>&lt;b&gt;5 % of the series</pre>", ": pinned to version 1111111</div>")
	// The script of the page shows the same. It gets the data with the page.
	f("/", `"trial":{"version":"2222222bbbbb","step":"canary"`, `"reports":[{"name":"canary"`, `"message":"pinned to version 1111111"`)
}
