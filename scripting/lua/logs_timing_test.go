package lua_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
)

// benchLogs are 1000 JSON lines of about 210 bytes, of 20 streams.
func benchLogs() *batch.Logs {
	b := &batch.Logs{Source: batch.NewSource()}
	var streams []*batch.Stream
	for i := range 20 {
		var l batch.Builder
		l.Set("app", fmt.Sprint("app", i%5))
		l.Set("env", "prod")
		l.Set("pod", fmt.Sprint("pod-", i))
		streams = append(streams, batch.NewSeries(l.Labels()))
	}
	levels := []string{"debug", "info", "info", "info", "warn", "error"}
	for i := range 1000 {
		b.Stream = append(b.Stream, streams[i%20])
		b.T = append(b.T, now*1_000_000+int64(i))
		b.Line = append(b.Line, fmt.Sprintf(`{"ts":"2025-01-01T00:00:00.%06dZ","level":%q,"msg":"request served","method":"GET","path":"/api/v1/users/%d/orders","status":%d,"duration_ms":%d,"trace_id":"%032x","user":{"id":%d}}`,
			i, levels[i%len(levels)], i, 200+i%3*100, i%250, i, i))
	}
	return b
}

// logPrice is one row of the table of prices of log lines.
type logPrice struct {
	name, src string
	native    func(b *batch.Logs) *batch.Logs
}

func nativeLines(keep func(s *batch.Stream, line string) bool) func(*batch.Logs) *batch.Logs {
	return func(b *batch.Logs) *batch.Logs {
		return b.Select(func(i int) bool { return keep(b.Stream[i], b.Line[i]) })
	}
}

// nativeDecode is what is mostly written in Go: a struct of what is wanted.
func nativeDecode(keep func(level, msg string) bool) func(*batch.Logs) *batch.Logs {
	return nativeLines(func(_ *batch.Stream, line string) bool {
		var v struct{ Level, Msg string }
		return json.Unmarshal([]byte(line), &v) != nil || keep(v.Level, v.Msg)
	})
}

var logPrices = []logPrice{
	{"untouched", logsHook(``), func(b *batch.Logs) *batch.Logs { return b }},
	{"stream", transform(`stream = function(s) if s.labels.app == "app1" then return s:drop() end s.labels.team = "a" end`), nil},
	{"drop_where labels", logsHook(`batch:drop_where("labels.app == 'app1'")`), nativeLines(func(s *batch.Stream, _ string) bool { return s.Label("app") != "app1" })},
	{"drop_where line", logsHook(`batch:drop_where("line contains 'debug'")`), nativeLines(func(_ *batch.Stream, line string) bool { return !strings.Contains(line, "debug") })},
	{"promote", logsHook(`batch:promote("json.level", "level")`), nil},
	{"set_line", logsHook(`batch:set_line("{app} {json.msg}")`), nil},
	{"json two fields", logsHook(`batch:json({ "level", "msg" }, function(level, msg) if level == "debug" then return false end end)`), nativeDecode(func(level, _ string) bool { return level != "debug" })},
	{"json, label and line", logsHook(`batch:json({ "level", "msg" }, function(level, msg, r) if level == "debug" then return false end r.labels.level = level r.line = msg end)`), nil},
	{"match", logsHook(`batch:match([["status":(\d+)]], function(status) return status ~= "500" end)`), nil},
	{"filter two fields", logsHook(`batch:filter({ "app", "json.level" }, function(app, level) return app ~= "app1" or level ~= "debug" end)`), nil},
	{"each, reads", logsHook(`batch:each(function(r) if r.labels.app == "app1" and r:contains("debug") then r:drop() end end)`), nil},
	{"each, sets label", logsHook(`batch:each(function(r) r.labels.team = "a" end)`), nil},
}

// BenchmarkLogPrices is the table of prices for log lines; see BenchmarkPrices.
func BenchmarkLogPrices(b *testing.B) {
	for _, p := range logPrices {
		b.Run(p.name, func(b *testing.B) {
			in := benchLogs()
			f := build(b, p.src, "")
			f.sink.Refuse(context.Canceled) // it would keep every batch
			send := func() { _ = f.c.(flow.LogsConsumer).ConsumeLogs(context.Background(), in) }
			send()
			if h := f.Health(); h.State != component.Healthy {
				b.Fatal(h.Message)
			}
			var native, scripted time.Duration
			b.ReportAllocs()
			for b.Loop() {
				began := time.Now()
				send()
				scripted += time.Since(began)
				if p.native != nil {
					began = time.Now()
					p.native(in)
					native += time.Since(began)
				}
			}
			lines := float64(b.N) * float64(in.Len())
			b.ReportMetric(float64(scripted)/lines, "ns/line")
			if p.native != nil {
				b.ReportMetric(float64(native)/lines, "native-ns/line")
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}
