package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
)

// price is one row of the price table: the same work in a script of each language
// and in native Go, on the same batch.
type price[B any] struct {
	name    string
	lua, js string // members of the script's definition
	native  func(b B) B
	fresh   func(b B, round int) B // replaces some of the series by new ones; may be nil
}

const priceTime = 1_700_000_000_000

// priceBatch returns 2000 samples of 2000 series with ten labels.
func priceBatch() *batch.Metrics {
	b := &batch.Metrics{Source: batch.NewSource()}
	for i := range 2000 {
		var l batch.Builder
		l.Set(batch.NameLabel, fmt.Sprintf("metric_%d_total", i%50))
		l.Set("job", string(rune('x'+i%5)))
		for j := range 8 {
			l.Set(fmt.Sprintf("label_%d", j), fmt.Sprintf("value_%d", (i*7+j)%100))
		}
		l.Set("series", fmt.Sprint(i))
		b.Series = append(b.Series, batch.NewSeries(l.Labels()))
		b.T = append(b.T, priceTime)
		b.V = append(b.V, float64(i%10))
	}
	return b
}

// priceLogs returns 1000 JSON lines of about 210 bytes, in 20 streams.
func priceLogs() *batch.Logs {
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
		b.T = append(b.T, priceTime*1_000_000+int64(i))
		b.Line = append(b.Line, fmt.Sprintf(`{"ts":"2025-01-01T00:00:00.%06dZ","level":%q,"msg":"request served","method":"GET","path":"/api/v1/users/%d/orders","status":%d,"duration_ms":%d,"trace_id":"%032x","user":{"id":%d}}`,
			i, levels[i%len(levels)], i, 200+i%3*100, i%250, i, i))
	}
	return b
}

// nativeFilter returns a Go function that checks the rows of a batch one by one
// and returns a batch of the rows that it keeps.
func nativeFilter(keep func(s *batch.Series, v float64) bool) func(*batch.Metrics) *batch.Metrics {
	return func(b *batch.Metrics) *batch.Metrics {
		out := &batch.Metrics{Source: b.Source}
		for i, s := range b.Series {
			if keep(s, b.V[i]) {
				out.Series, out.T, out.V = append(out.Series, s), append(out.T, b.T[i]), append(out.V, b.V[i])
			}
		}
		return out
	}
}

// nativeMemo returns a Go function that caches the result for each series:
// dropped (nil) or with other labels.
func nativeMemo() func(*batch.Metrics) *batch.Metrics {
	memo := new(batch.Memo[*batch.Series])
	var l batch.Builder
	return func(b *batch.Metrics) *batch.Metrics {
		out := &batch.Metrics{Source: b.Source, Series: make([]*batch.Series, 0, b.Len()), T: make([]int64, 0, b.Len()), V: make([]float64, 0, b.Len())}
		for i, s := range b.Series {
			to, ok := memo.Get(s)
			if !ok {
				if s.Label("job") != "x" {
					l.Reset(s)
					l.Set("team", "a")
					to = batch.NewSeries(l.Labels())
				}
				to = memo.Put(s, to)
			}
			if to != nil {
				out.Series, out.T, out.V = append(out.Series, to), append(out.T, b.T[i]), append(out.V, b.V[i])
			}
		}
		return out
	}
}

func nativeValues(f func(v float64) float64) func(*batch.Metrics) *batch.Metrics {
	return func(b *batch.Metrics) *batch.Metrics {
		out := *b
		out.V = make([]float64, len(b.V))
		for i, v := range b.V {
			out.V[i] = f(v)
		}
		return &out
	}
}

func isX(s *batch.Series, v float64) bool { return s.Label("job") == "x" && v > 3 }

func nativeLines(keep func(s *batch.Stream, line string) bool) func(*batch.Logs) *batch.Logs {
	return func(b *batch.Logs) *batch.Logs {
		return b.Select(func(i int) bool { return keep(b.Stream[i], b.Line[i]) })
	}
}

// nativeDecode returns typical Go code: it decodes into a struct with the
// required fields.
func nativeDecode(keep func(level, msg string) bool) func(*batch.Logs) *batch.Logs {
	return nativeLines(func(_ *batch.Stream, line string) bool {
		var v struct{ Level, Msg string }
		return json.Unmarshal([]byte(line), &v) != nil || keep(v.Level, v.Msg)
	})
}

func luaMetrics(body string) string { return "metrics = function(batch, ctx)\n" + body + "\nend" }
func jsMetrics(body string) string  { return "metrics(batch, ctx) {\n" + body + "\n}" }
func luaLogs(body string) string    { return "logs = function(batch, ctx)\n" + body + "\nend" }
func jsLogs(body string) string     { return "logs(batch, ctx) {\n" + body + "\n}" }

// renewed replaces 1 % of the series by new ones.
func renewed(b *batch.Metrics, round int) *batch.Metrics { return renew(b, b.Len()/100, round) }

func notX(s *batch.Series, v float64) bool { return !isX(s, v) }

func untouched[B any](b B) B { return b }

func milli(v float64) float64 { return v * 0.001 }

const (
	luaSeries = `series = function(s) if s.labels.job == "x" then return s:drop() end s.labels.team = "a" end`
	jsSeries  = `series(s) { if (s.labels.job === "x") return s.drop(); s.labels.team = "a" }`
)

var prices = []price[*batch.Metrics]{
	{"untouched", luaMetrics(``), jsMetrics(``), untouched[*batch.Metrics], nil},
	{"series", luaSeries, jsSeries, nativeMemo(), nil},
	{"series, 1 % new", luaSeries, jsSeries, nativeMemo(), renewed},
	{"drop_where labels", luaMetrics(`batch:drop_where("labels.job == 'x'")`), jsMetrics(`batch.dropWhere("labels.job == 'x'")`),
		nativeFilter(func(s *batch.Series, _ float64) bool { return s.Label("job") != "x" }), nil},
	{"drop_where labels and value", luaMetrics(`batch:drop_where("labels.job == 'x' && value > 3")`), jsMetrics(`batch.dropWhere("labels.job == 'x' && value > 3")`), nativeFilter(notX), nil},
	{"drop_where value", luaMetrics(`batch:drop_where("value > 8")`), jsMetrics(`batch.dropWhere("value > 8")`), nativeFilter(func(_ *batch.Series, v float64) bool { return v <= 8 }), nil},
	{"scale", luaMetrics(`batch:scale(nil, 0.001)`), jsMetrics(`batch.scale(null, 0.001)`), nativeValues(milli), nil},
	{"set_label", luaMetrics(`batch:set_label("team", "a")`), jsMetrics(`batch.setLabel("team", "a")`), nil, nil},
	{"map_label", luaMetrics(`batch:map_label("job", function(j) return j .. "!" end)`), jsMetrics(`batch.mapLabel("job", (j) => j + "!")`), nil, nil},
	{"filter two fields", luaMetrics(`batch:filter({"job", "value"}, function(job, v) return not (job == "x" and v > 3) end)`),
		jsMetrics(`batch.filter(["job", "value"], (job, v) => !(job === "x" && v > 3))`), nativeFilter(notX), nil},
	{"map_value", luaMetrics(`batch:map_value(function(v) return v * 0.001 end)`), jsMetrics(`batch.mapValue((v) => v * 0.001)`), nativeValues(milli), nil},
	{"rows two fields", luaMetrics(`for i, job, v in batch:rows("job", "value") do if job == "x" and v > 3 then batch:drop(i) end end`),
		jsMetrics(`for (const [i, job, v] of batch.rows("job", "value")) if (job === "x" && v > 3) batch.drop(i)`), nativeFilter(notX), nil},
	{"each, reads", luaMetrics(`batch:each(function(m) if m.labels.job == "x" and m.value > 3 then m:drop() end end)`),
		jsMetrics(`batch.each((m) => { if (m.labels.job === "x" && m.value > 3) m.drop() })`), nativeFilter(notX), nil},
	{"each, drops by label", luaMetrics(`batch:each(function(m) if m.labels.job == "x" then m:drop() end end)`), jsMetrics(`batch.each((m) => { if (m.labels.job === "x") m.drop() })`), nil, nil},
	{"each, drops by value", luaMetrics(`batch:each(function(m) if m.value > 8 then m:drop() end end)`), jsMetrics(`batch.each((m) => { if (m.value > 8) m.drop() })`), nil, nil},
	{"each, sets value", luaMetrics(`batch:each(function(m) if m.labels.job ~= "none" then m.value = m.value * 0.001 end end)`),
		jsMetrics(`batch.each((m) => { if (m.labels.job !== "none") m.value = m.value * 0.001 })`), nativeValues(milli), nil},
	{"each, as series", luaMetrics(`batch:each(function(m) if m.labels.job == "x" then return m:drop() end m.labels.team = "a" end)`),
		jsMetrics(`batch.each((m) => { if (m.labels.job === "x") return m.drop(); m.labels.team = "a" })`), nativeMemo(), nil},
	{"each, sets label", luaMetrics(`batch:each(function(m) m.labels.team = "a" end)`), jsMetrics(`batch.each((m) => { m.labels.team = "a" })`), nil, nil},
	{"records, reads", luaMetrics(`for m in batch:records() do if m.labels.job == "x" and m.value > 3 then m:drop() end end`),
		jsMetrics(`for (const m of batch) if (m.labels.job === "x" && m.value > 3) m.drop()`), nativeFilter(notX), nil},
}

var logPrices = []price[*batch.Logs]{
	{"untouched", luaLogs(``), jsLogs(``), untouched[*batch.Logs], nil},
	{"stream", `stream = function(s) if s.labels.app == "app1" then return s:drop() end s.labels.team = "a" end`,
		`stream(s) { if (s.labels.app === "app1") return s.drop(); s.labels.team = "a" }`, nil, nil},
	{"drop_where labels", luaLogs(`batch:drop_where("labels.app == 'app1'")`), jsLogs(`batch.dropWhere("labels.app == 'app1'")`),
		nativeLines(func(s *batch.Stream, _ string) bool { return s.Label("app") != "app1" }), nil},
	{"drop_where line", luaLogs(`batch:drop_where("line contains 'debug'")`), jsLogs(`batch.dropWhere("line contains 'debug'")`),
		nativeLines(func(_ *batch.Stream, line string) bool { return !strings.Contains(line, "debug") }), nil},
	{"promote", luaLogs(`batch:promote("json.level", "level")`), jsLogs(`batch.promote("json.level", "level")`), nil, nil},
	{"set_line", luaLogs(`batch:set_line("{app} {json.msg}")`), jsLogs(`batch.setLine("{app} {json.msg}")`), nil, nil},
	{"json two fields", luaLogs(`batch:json({ "level", "msg" }, function(level, msg) if level == "debug" then return false end end)`),
		jsLogs(`batch.json(["level", "msg"], (level, msg) => { if (level === "debug") return false })`), nativeDecode(func(level, _ string) bool { return level != "debug" }), nil},
	{"json, label and line", luaLogs(`batch:json({ "level", "msg" }, function(level, msg, r) if level == "debug" then return false end r.labels.level = level r.line = msg end)`),
		jsLogs(`batch.json(["level", "msg"], (level, msg, r) => { if (level === "debug") return false; r.labels.level = level; r.line = msg })`), nil, nil},
	{"match", luaLogs(`batch:match([["status":(\d+)]], function(status) return status ~= "500" end)`), jsLogs(`batch.match('"status":(\\d+)', (status) => status !== "500")`), nil, nil},
	{"filter two fields", luaLogs(`batch:filter({ "app", "json.level" }, function(app, level) return app ~= "app1" or level ~= "debug" end)`),
		jsLogs(`batch.filter(["app", "json.level"], (app, level) => app !== "app1" || level !== "debug")`), nil, nil},
	{"each, reads", luaLogs(`batch:each(function(r) if r.labels.app == "app1" and r:contains("debug") then r:drop() end end)`),
		jsLogs(`batch.each((r) => { if (r.labels.app === "app1" && r.contains("debug")) r.drop() })`), nil, nil},
	{"each, drops by label", luaLogs(`batch:each(function(r) if r.labels.app == "app1" then r:drop() end end)`), jsLogs(`batch.each((r) => { if (r.labels.app === "app1") r.drop() })`), nil, nil},
	{"each, drops by line", luaLogs(`batch:each(function(r) if r:contains("debug") then r:drop() end end)`), jsLogs(`batch.each((r) => { if (r.contains("debug")) r.drop() })`), nil, nil},
	{"each, as stream", luaLogs(`batch:each(function(r) if r.labels.app == "app1" then return r:drop() end r.labels.team = "a" end)`),
		jsLogs(`batch.each((r) => { if (r.labels.app === "app1") return r.drop(); r.labels.team = "a" })`), nil, nil},
	{"each, sets label", luaLogs(`batch:each(function(r) r.labels.team = "a" end)`), jsLogs(`batch.each((r) => { r.labels.team = "a" })`), nil, nil},
}

// BenchmarkPrices measures the price table: the cost of a record in a script, and
// of the same work in native Go.
func BenchmarkPrices(b *testing.B) {
	for _, p := range prices {
		p.measure(b, priceBatch(), func(c component.Component, in *batch.Metrics) {
			_ = c.(flow.MetricsConsumer).ConsumeMetrics(context.Background(), in)
		})
	}
}

// BenchmarkLogPrices measures the price table for log lines.
func BenchmarkLogPrices(b *testing.B) {
	for _, p := range logPrices {
		p.measure(b, priceLogs(), func(c component.Component, in *batch.Logs) {
			_ = c.(flow.LogsConsumer).ConsumeLogs(context.Background(), in)
		})
	}
}

// measure sends a batch through both scripts and the native code. They take
// turns, and the medians count: on a busy machine all of them are slow, but their
// ratios stay meaningful.
func (p price[B]) measure(b *testing.B, in B, send func(c component.Component, in B)) {
	b.Run(p.name, func(b *testing.B) {
		names := []string{"lua", "js"}
		var ways []func(B)
		for i, script := range []string{
			"local weir = require \"weir\"\nreturn weir.transform {\n" + p.lua + "\n}",
			"import { defineTransform } from \"weir\"\nexport default defineTransform({\n" + p.js + "\n})",
		} {
			c := buildPrice(b, names[i], script)
			ways = append(ways, func(in B) { send(c, in) })
		}
		if p.native != nil {
			names = append(names, "go")
			ways = append(ways, func(in B) { p.native(in) })
		}
		for _, way := range ways {
			way(in)
		}
		took := make([][]time.Duration, len(ways))
		for n := 0; b.Loop(); n++ {
			if p.fresh != nil {
				b.StopTimer()
				in = p.fresh(in, n)
				b.StartTimer()
			}
			for i := range ways {
				at := (i + n) % len(ways) // the first one runs with cold caches
				began := time.Now()
				ways[at](in)
				took[at] = append(took[at], time.Since(began))
			}
		}
		b.ReportMetric(0, "ns/op")
		for i, d := range took {
			slices.Sort(d)
			b.ReportMetric(float64(d[len(d)/2])/float64(priceLen(in)), names[i]+"-ns/record")
		}
	})
}

func priceLen(in any) int {
	switch in := in.(type) {
	case *batch.Metrics:
		return in.Len()
	case *batch.Logs:
		return in.Len()
	}
	panic("BUG: a price of no batch")
}

// buildPrice builds a script whose output batches are refused, because the sink
// would keep all of them.
func buildPrice(b *testing.B, language, src string) component.Component {
	c, node, sink := buildScript(b, language, src)
	sink.Refuse(context.Canceled)
	b.Cleanup(func() {
		if h := node.Health(); h.State != component.Healthy {
			b.Error(h.Message)
		}
	})
	return c
}

// renew returns the batch with the first n of its series replaced by new ones.
func renew(b *batch.Metrics, n, round int) *batch.Metrics {
	out := *b
	out.Series = slices.Clone(b.Series)
	var l batch.Builder
	for i := range n {
		at := (round*n + i) % len(out.Series)
		l.Reset(out.Series[at])
		l.Set("series", fmt.Sprint(round, i))
		out.Series[at].Release()
		out.Series[at] = batch.NewSeries(l.Labels())
	}
	return &out
}
