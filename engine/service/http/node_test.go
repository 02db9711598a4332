package http_test

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"

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

// TestInModule: nodes inside modules are reached by their whole name.
func TestInModule(t *testing.T) {
	s := run(t, house(t), http.Options{})
	if status, body := get(t, owner(t, s), "GET", "http://"+s.Address()+"/api/v0/component/m.one/a.source.y/metrics"); status != 200 || body != "GET /metrics" {
		t.Errorf("got %d %q", status, body)
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
}
