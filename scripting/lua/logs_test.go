package lua_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
)

func parseLogs(t testing.TB, text string) *batch.Logs {
	t.Helper()
	b, err := batch.ParseLogsText(dedent(text), batch.TextOptions{T: now * 1_000_000, Source: 1})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// sendLogs passes lines in text form through the script and returns what comes
// out: lines in text form, and behind them samples.
func (f *harness) sendLogs(t testing.TB, in string) string {
	t.Helper()
	logs, samples := len(f.sink.Logs()), len(f.sink.Batches())
	if err := f.c.(flow.LogsConsumer).ConsumeLogs(context.Background(), parseLogs(t, in)); err != nil {
		t.Fatalf("cannot send: %v", err)
	}
	var out []byte
	for _, b := range f.sink.Logs()[logs:] {
		out = batch.AppendLogsTextAt(out, b, now*1_000_000)
	}
	for _, b := range f.sink.Batches()[samples:] {
		out = batch.AppendTextAt(out, b, f.Clock.Now().UnixMilli())
	}
	return string(out)
}

// logsHook is a script with a logs hook.
func logsHook(body string) string {
	return "local weir = require \"weir\"\nlocal re = require \"re\"\nlocal STATUS = re.compile [[status=(\\d+)( slow)?]]\n" +
		"return weir.transform { logs = function(batch, ctx)\n" + body + "\nend }"
}

const twoLines = `{app="a"} {trace="t1"} {"level":"debug","n":12,"big":9007199254740993,"deep":{"a":[true,null]}}
{app="b"} level=warn status=404 msg="not there"
`

// TestLogs gives two lines to each body.
func TestLogs(t *testing.T) {
	f := func(body, want string) {
		t.Helper()
		fx := build(t, logsHook(body), "")
		got := fx.sendLogs(t, twoLines)
		if h := fx.Health(); h.State != component.Healthy {
			t.Errorf("%s: %s", body, h.Message)
			return
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", body, diff)
		}
	}
	first, second, _ := strings.Cut(twoLines, "\n")
	first += "\n"
	line1 := strings.TrimPrefix(first, `{app="a"} {trace="t1"} `)
	line2 := strings.TrimPrefix(second, `{app="b"} `)

	f(``, twoLines)
	f(`batch:drop_where [[ labels.app == "a" ]]`, second)
	f(`batch:keep_where [[ line contains "debug" || meta.trace == "x" ]]`, first)
	f(`batch:set_label("x", 1) batch:drop_label("app") batch:rename_label("x", "y")`, `{y="1"} {trace="t1"} `+line1+`{y="1"} `+line2)
	f(`batch:map_label("app", function(a) return a:upper() end)`, `{app="A"} {trace="t1"} `+line1+`{app="B"} `+line2)
	f(`batch:promote("json.level", "level") batch:promote("logfmt.level", "level")`, `{app="a",level="debug"} {trace="t1"} `+line1+`{app="b",level="warn"} `+line2)
	f(`batch:set_line("{app}/{json.level}{logfmt.level}")`, "{app=\"a\"} {trace=\"t1\"} a/debug\n{app=\"b\"} b/warn\n")

	// projected callbacks
	f(`batch:json({ "level", "n", "big", "deep.a.0", "deep", "gone" }, function(level, n, big, t, deep, gone, r)
		r.line = table.concat({ tostring(level), tostring(n), tostring(big), tostring(t), tostring(deep), tostring(gone) }, " ")
	end)`, "{app=\"a\"} {trace=\"t1\"} debug 12 9007199254740993 true {\"a\":[true,null]} nil\n{app=\"b\"} nil nil nil nil nil nil\n")
	f(`batch:json({ "n" }, function(n) assert(n == nil or n == 12 and type(n) == "number") end)`, twoLines)
	f(`batch:json({ "level" }, function(level) if level == "debug" then return false end end)`, second)
	f(`batch:logfmt({ "level", "msg" }, function(level, msg, r) if msg then r.labels.level, r.line = level, msg end end)`, first+"{app=\"b\",level=\"warn\"} not there\n")
	f(`batch:match([[status=(\d+)]], function(status, r) r.labels.status = status end)`, first+`{app="b",status="404"} `+line2)
	f(`batch:match(STATUS, function(status, slow, r) assert(slow == nil) r.metadata.status = status end)`, first+`{app="b"} {status="404"} `+line2)
	f(`batch:match("warn", function(m) assert(m == "warn") return false end)`, first)
	f(`batch:filter({ "app", "meta.trace", "json.n", "line" }, function(app, trace, n, line) return app == "a" and trace == "t1" and n == 12 and #line > 10 end)`, first)
	f(`for i, app, ts in batch:rows("app", "ts") do batch:set(i, { line = app .. ts, x = i }) batch:set(i, "meta.n", i) end`,
		"{app=\"a\",x=\"1\"} {n=\"1\",trace=\"t1\"} a1700000000000000000\n{app=\"b\",x=\"2\"} {n=\"2\"} b1700000000000000000\n")
	f(`for i in batch:rows("line") do if i == 1 then batch:drop(i) end end`, second)

	// records
	f(`batch:each(function(r) if r:contains("debug") then r:drop() end end)`, second)
	f(`batch:each(function(r) r.labels.status = r:match [[status=(\d+)]] end)`, first+`{app="b",status="404"} `+line2)
	f(`batch:each(function(r) assert(r:match(STATUS) == nil or r:match(STATUS) == "404") r.labels.level = r:json("level") end)`, `{app="a",level="debug"} {trace="t1"} `+line1+second)
	f(`for r in batch:records() do r.time = r.time + 1 end`,
		strings.Replace(strings.Replace(twoLines, `{app="a"} `, `{app="a"} @2023-11-14T22:13:20.001Z `, 1), `{app="b"} `, `{app="b"} @2023-11-14T22:13:20.001Z `, 1))
	f(`batch[1].ts = "1700000000000000007" batch[1].time = 1700000000000 batch[2].ts = batch[2].ts`, strings.Replace(twoLines, `{app="a"} `, `{app="a"} @2023-11-14T22:13:20.000000007Z `, 1))
	f(`batch[1].metadata = { b = 2, a = true } batch[2].labels = { z = "1" }`, `{app="a"} {a="true",b="2"} `+line1+`{z="1"} `+line2)
	f(`assert(#batch == 2 and batch[3] == nil and tostring(batch[1].metadata) == '{trace="t1"}' and batch[1].metadata.gone == nil)`, twoLines)
	f(`for k, v in pairs(batch[1].metadata) do batch[1].labels[k] = v end`, `{app="a",trace="t1"} {trace="t1"} `+line1+second)
	f(`for group, app in batch:group_by { "app" } do if app == "a" then group:drop() else group[1].line = tostring(#group) end end`, "{app=\"b\"} 1\n")
	f(`for group in batch:group_by { "meta.none" } do assert(#group == 2) for r in group:records() do r.labels.g = "1" end end`, `{app="a",g="1"} {trace="t1"} `+line1+`{app="b",g="1"} `+line2)

	// emitted
	f(`ctx.emit { line = "made", labels = { z = "1" }, metadata = { m = 1 }, ts = "1" }`, twoLines+"{z=\"1\"} @1970-01-01T00:00:00.000000001Z {m=\"1\"} made\n")
	f(`local c = batch[1]:copy() c.line, c.labels.kind, c.metadata.trace, c.time = "copy", "x", nil, c.time ctx.emit(c) ctx.emit(batch[2])`, twoLines+"{app=\"a\",kind=\"x\"} copy\n"+second)
}

// TestStreamHook: the hook decides about streams; what it decided is known the
// next time without asking.
func TestStreamHook(t *testing.T) {
	fx := build(t, `local weir = require "weir"
local asked = 0
return weir.transform { stream = function(s, ctx)
	if s.labels.app == "a" then return s:drop() end
	asked = asked + 1
	s.labels.asked = asked
end }`, "")
	in := parseLogs(t, "{app=\"a\"} x\n{app=\"b\"} x\n")
	for i := range 3 {
		if err := fx.c.(flow.LogsConsumer).ConsumeLogs(t.Context(), in); err != nil {
			t.Fatal(err)
		}
		if got, want := string(batch.AppendLogsTextAt(nil, fx.sink.Logs()[i], now*1_000_000)), "{app=\"b\",asked=\"1\"} x\n"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if fx.reg.Accepts != batch.SignalLogs || fx.reg.Sends != batch.SignalLogs {
		t.Errorf("it takes %s and sends %s", fx.reg.Accepts, fx.reg.Sends)
	}
	if got := fx.Stats.DroppedLines()["script"]; got != 3 {
		t.Errorf("%d lines dropped, want 3", got)
	}
}

// TestSignalsMeet: lines make samples and samples make lines, where the script
// says that it sends them.
func TestSignalsMeet(t *testing.T) {
	const toSamples = `local weir = require "weir"
return weir.transform {
	sends = %s,
	logs = function(batch, ctx)
		for group, app in batch:group_by { "app" } do
			ctx.emit { name = "lines", labels = { app = app }, value = #group }
		end
	end,
}`
	only := build(t, strings.Replace(toSamples, "%s", `{ "metrics" }`, 1), "")
	if diff := cmp.Diff("lines{app=\"a\"} 2\n", only.sendLogs(t, "{app=\"a\"} x\n{app=\"a\"} y\n")); diff != "" {
		t.Errorf("samples only (-want +got):\n%s", diff)
	}
	if got := only.Stats.DroppedLines()["script"]; got != 2 {
		t.Errorf("%d lines counted as dropped, want 2", got)
	}
	both := build(t, strings.Replace(toSamples, "%s", `{ "metrics", "logs" }`, 1), "")
	if diff := cmp.Diff("{app=\"a\"} x\nlines{app=\"a\"} 1\n", both.sendLogs(t, "{app=\"a\"} x\n")); diff != "" {
		t.Errorf("both (-want +got):\n%s", diff)
	}
	refused := build(t, strings.Replace(toSamples, "sends = %s,", "", 1), "")
	refused.sendLogs(t, "{app=\"a\"} x\n")
	if h := refused.Health(); !strings.Contains(h.Message, `cannot emit samples: the script does not send metrics; add sends = { "metrics", "logs" }`) {
		t.Errorf("got %s", h.Message)
	}

	toLines := build(t, `local weir = require "weir"
return weir.transform {
	sends = { "logs", "metrics" },
	metrics = function(batch, ctx)
		batch:each(function(r)
			ctx.emit { line = r.name .. " is " .. r.value, labels = { job = r.labels.job } }
			if r.value > 1 then error("too large") end
		end)
	end,
}`, "")
	if got, want := toLines.send(t, "a{job=\"x\"} 1\nb 2\n"), "a{job=\"x\"} 1\nb 2\n"; got != want {
		t.Errorf("got samples %q, want %q", got, want)
	}
	var lines []byte
	for _, b := range toLines.sink.Logs() {
		lines = batch.AppendLogsText(lines, b)
	}
	if got := string(lines); !strings.HasPrefix(got, `{job="x"} @`) || !strings.HasSuffix(got, " a is 1\n") || strings.Count(got, "\n") != 1 {
		t.Errorf("got lines %q, want that of the record without an error", got)
	}
}

// TestLogErrors: an error in a callback costs its record, one in the hook the
// batch.
func TestLogErrors(t *testing.T) {
	f := func(body, attrs, want, message string) {
		t.Helper()
		fx := build(t, logsHook(body), attrs)
		if diff := cmp.Diff(want, fx.sendLogs(t, "{app=\"a\"} one\n{app=\"b\"} two\n")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", body, diff)
		}
		if h := fx.Health(); h.State != component.Unhealthy || !strings.Contains(h.Message, message) {
			t.Errorf("%s: got %s, want %s", body, h.Message, message)
		}
	}
	const drop = `script { on_error = "drop" }`
	each := `batch:each(function(r) r.line = r.line .. "!" r.labels.x = "1" ctx.emit(r) if r.labels.app == "a" then error("no") end end)`
	f(each, "", "{app=\"a\"} one\n{app=\"b\",x=\"1\"} two!\n{app=\"b\",x=\"1\"} two!\n", `record: {app="a"} @2023-11-14T22:13:20Z one`)
	f(each, drop, "{app=\"b\",x=\"1\"} two!\n{app=\"b\",x=\"1\"} two!\n", "in each: no")
	f(`batch:set_label("x", "1") error("no")`, "", "{app=\"a\"} one\n{app=\"b\"} two\n", "in logs: no")
	f(`error("no")`, drop, "", "in logs: no")
	f(`batch:json({ "a" }, function(a, r) r.line = "x" return 1 end)`, "", "{app=\"a\"} one\n{app=\"b\"} two\n", "cannot use a number as an answer")
	f(`batch:match("(", function() end)`, "", "{app=\"a\"} one\n{app=\"b\"} two\n", "cannot compile pattern")
	f(`batch:scale(nil, 2)`, "", "{app=\"a\"} one\n{app=\"b\"} two\n", `has no "scale"`)
	f(`batch:each(function(r) r.value = 1 end)`, drop, "", `cannot set "value" of a log record`)
	f(`batch:each(function(r) r.time = 1.5 end)`, drop, "", "it must be a whole number of milliseconds")
	f(`batch:each(function(r) r.ts = 5 end)`, drop, "", "it is Unix ns in a string, which a number cannot hold")
	f(`batch:each(function(r) r.line = {} end)`, drop, "", "cannot set line to a table")
	f(`ctx.emit { value = 1, name = "a" }`, "", "{app=\"a\"} one\n{app=\"b\"} two\n", "the script does not send metrics")
	f(`ctx.emit { labels = {} }`, "", "{app=\"a\"} one\n{app=\"b\"} two\n", "cannot emit a record without a value, or a line if it is a log record")
	f(`batch:promote("level", "level")`, "", "{app=\"a\"} one\n{app=\"b\"} two\n", "json.level, logfmt.level or meta.level")
	f(`batch:rows()`, "", "{app=\"a\"} one\n{app=\"b\"} two\n", "cannot read 0 fields")
	f(`batch:filter({ "line" }, function() end)`, "", "{app=\"a\"} one\n{app=\"b\"} two\n", "the function must return true to keep or false to drop")
}

// TestLateLines: handles of lines die with their hook.
func TestLateLines(t *testing.T) {
	src := strings.Replace(logsHook(`
		if KEPT.r then
			assert(not pcall(function() return KEPT.r.line end))
			assert(not pcall(function() return KEPT.group[1] end))
			assert(not pcall(KEPT.rows))
			assert(KEPT.copy.line == "one" and KEPT.copy.labels.app == "a")
			ctx.emit(KEPT.copy)
		end
		KEPT.r, KEPT.copy, KEPT.rows, KEPT.group = batch[1], batch[1]:copy(), batch:rows("line"), batch:group_by { "app" }()
	`), "return weir", "local KEPT = {}\nreturn weir", 1)
	fx := build(t, src, "")
	fx.sendLogs(t, "{app=\"a\"} one")
	if got, want := fx.sendLogs(t, "{app=\"b\"} two"), "{app=\"b\"} two\n{app=\"a\"} one\n"; got != want {
		t.Errorf("got %q, want %q: %s", got, want, fx.Health().Message)
	}
}

// TestLogsUntouched: lines that nobody edits leave in the batch that they came
// in.
func TestLogsUntouched(t *testing.T) {
	fx := build(t, logsHook(`batch:json({ "level" }, function(level) end) batch:each(function(r) return r.line, r.ts end)`), "")
	in := parseLogs(t, twoLines)
	if err := fx.c.(flow.LogsConsumer).ConsumeLogs(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	out := fx.sink.Logs()[0]
	if &out.Line[0] != &in.Line[0] || &out.Stream[0] != &in.Stream[0] || &out.Meta[0] != &in.Meta[0] || &out.T[0] != &in.T[0] {
		t.Error("a column was copied")
	}
}

// TestLogExpressionsAtLoad: constant expressions are checked over the batches
// that they will meet.
func TestLogExpressionsAtLoad(t *testing.T) {
	f := func(src, want string) {
		t.Helper()
		err := load(t, "local weir = require \"weir\"\n"+src).Err
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %v, want %q", src, err, want)
		}
	}
	f(`return weir.transform { logs = function(batch) batch:drop_where [[ line contains "x" ]] end }`, "")
	f(`return weir.transform { logs = function(batch) batch:drop_where [[ value > 3 ]] end }`, "a log line has no value")
	f(`return weir.transform { metrics = function(batch) batch:drop_where [[ line == "x" ]] end }`, "a sample has no line")
	f("return weir.transform {\nmetrics = function(batch) batch:drop_where [[ value > 3 ]] end,\nlogs = function(batch) batch:drop_where [[ line == \"x\" ]] end,\n}", "")
	f("return weir.transform {\nmetrics = function(batch) batch:drop_where [[ value > 3 ]] end,\nlogs = function(batch) batch:drop_where [[ value > 3 ]] end,\n}", ":4: cannot use expression: a log line has no value")
	f("local function f(batch) batch:drop_where [[ value > 3 ]] batch:drop_where [[ line == \"\" ]] end\nreturn weir.transform { metrics = f, logs = f }", "")
	f("local function f(batch) batch:drop_where [[ nothing ]] end\nreturn weir.transform { metrics = f, logs = f }", "unknown name nothing")
	f(`return weir.transform { sends = { "lgos" }, logs = function() end }`, `cannot use "lgos" in sends`)
	f(`return weir.transform { sends = {}, logs = function() end }`, `as sends: it must be a list of "metrics" and "logs"`)
}

// TestHistogramsAndExemplars: both can be read, of a record and of a copy.
func TestHistogramsAndExemplars(t *testing.T) {
	fx := build(t, metrics(`for r in batch:records() do
		for _, r in ipairs { r, r:copy() } do
			if r.name == "h" then
				local h = r.histogram
				assert(h.count == 3 and h.sum == 1.5 and h.schema == 0 and #h.buckets == 2)
				assert(h.buckets[2].lower == 1 and h.buckets[2].upper == 2 and h.buckets[2].count == 2)
				assert(r.exemplars == nil and not pcall(function() r.histogram = nil end))
				local ok, err = pcall(function() r.value = 2 end)
				assert(not ok and tostring(err):find("it is a native histogram", 1, true), tostring(err))
			else
				local e = r.exemplars
				assert(r.histogram == nil and #e == 2 and e[1].labels.trace == "t" and e[1].value == 0.5 and e[1].time == 7 and e[2].time == nil)
			end
		end
	end`), "")
	const in = "h {count:3,sum:1.5,positive_spans:[0:2],positive_buckets:[1,2]}\nc 1 # {trace=\"t\"} 0.5 7 # {} 2\n"
	if diff := cmp.Diff(in, fx.send(t, in)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if h := fx.Health(); h.State != component.Healthy {
		t.Error(h.Message)
	}
}
