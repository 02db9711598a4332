package lua_test

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/weir-run/weir/engine/batch/batchtest"
)

// rewriteOf returns the code that the finding per-record proposes for a script.
func rewriteOf(t *testing.T, src string) string {
	t.Helper()
	m := regexp.MustCompile(`\| write (.*), which was measured`).FindStringSubmatch(lint(t, src))
	if m == nil {
		t.Fatalf("%s: there is no finding", src)
	}
	return m[1]
}

var histograms = regexp.MustCompile(`(?m)^.*` + regexp.QuoteMeta(batchtest.Histogram) + `\n`)

// TestPerRecord checks that the proposed code gives the same result as the code
// that it replaces.
func TestPerRecord(t *testing.T) {
	f := func(body, want string) {
		t.Helper()
		got := rewriteOf(t, metrics(body))
		if got != want {
			t.Errorf("%s: got %s, want %s", body, got, want)
		}
		before, after := build(t, metrics(body), ""), build(t, metrics(got), "")
		r := rand.New(rand.NewPCG(1, 2))
		for range 50 {
			in := batchtest.MetricsText(r)
			if strings.Contains(want, "value") { // the comparison fails in a script
				in = histograms.ReplaceAllString(in, "")
			}
			equal(t, after.send(t, in), before.send(t, in))
		}
	}
	drop := func(cond, want string) {
		t.Helper()
		want = "batch:drop_where [[ " + want + " ]]"
		f("batch:each(function(r) if "+cond+" then r:drop() end end)", want)
		if got := rewriteOf(t, metrics("for r in batch:records() do if "+cond+" then r:drop() end end")); got != want {
			t.Errorf("a loop with %s: got %s, want %s", cond, got, want)
		}
	}
	drop(`r.labels.job == "api"`, `labels.job == "api"`)
	drop(`r.labels.job ~= "api"`, `labels.job != "api"`)
	drop(`r.labels.job == nil`, `labels.job == ""`)
	drop(`r.labels.job`, `labels.job != ""`)
	drop(`not r.labels.job`, `!(labels.job != "")`)
	drop(`(r.labels.job or "") == ""`, `labels.job == ""`)
	drop(`(r.labels.job or ""):find("^api")`, `labels.job startsWith "api"`)
	drop(`r.name:sub(1, 3) == "go_"`, `name startsWith "go_"`)
	drop(`r.name:sub(-3) == "_ms"`, `name endsWith "_ms"`)
	drop(`r.name:find("_ms$")`, `name endsWith "_ms"`)
	drop(`r.name:find("go", 1, true)`, `name contains "go"`)
	drop(`r.name:match("go_")`, `name contains "go_"`)
	drop(`r.labels.job == "api" and (r.labels.env == "dev" or r.name == "up")`, `labels.job == "api" && (labels.env == "dev" || name == "up")`)
	drop(`not (r.labels.job == "api" or r.labels.env == "x")`, `!(labels.job == "api" || labels.env == "x")`)
	drop(`r.value < 0`, `value < 0`)
	drop(`r.value > -1.5`, `value > -1.5`)
	drop(`r.value == 10`, `value == 10`)
	drop(`r.value < 0 or r.value >= 1e1`, `value < 0 || value >= 10`)
	drop(`r.value > 0 and r.value <= 1.5`, `value > 0 && value <= 1.5`)
	drop(`r.type == "counter"`, `type == "counter"`)
	in := "h " + batchtest.Histogram + "\n"
	fails, keeps := build(t, metrics("batch:each(function(r) if r.value < 0 then r:drop() end end)"), ""), build(t, metrics("batch:drop_where [[ value < 0 ]]"), "")
	equal(t, keeps.send(t, in), in)
	fails.send(t, in)
	if h := fails.Health(); !strings.Contains(h.Message, "nil") {
		t.Errorf("a comparison with the value of a native histogram: got %q, want an error", h.Message)
	}
	f(`batch:each(function(r) if r.value < 0 then r:drop() return end end)`, `batch:drop_where [[ value < 0 ]]`)
	f(`batch:each(function(r) r.labels.env = "prod" end)`, `batch:set_label("env", "prod")`)
	f(`batch:each(function(r) r.labels.env = nil r.labels.job = "x" end)`, `batch:drop_label("env") batch:set_label("job", "x")`)
}

// TestPerRecordLogs is TestPerRecord for log lines.
func TestPerRecordLogs(t *testing.T) {
	first := "" // what the hook does before
	drop := func(cond, want string) {
		t.Helper()
		body := "batch:each(function(r) if " + cond + " then r:drop() end end)"
		want = "batch:drop_where [[ " + want + " ]]"
		got := rewriteOf(t, logsHook(first+body))
		if got != want {
			t.Errorf("%s: got %s, want %s", body, got, want)
		}
		before, after := build(t, logsHook(first+body), ""), build(t, logsHook(first+got), "")
		r := rand.New(rand.NewPCG(1, 2))
		for range 20 {
			in := batchtest.LogsText(r)
			equal(t, after.sendLogs(t, in), before.sendLogs(t, in))
		}
	}
	drop(`r.labels.job == "api"`, `labels.job == "api"`)
	drop(`not r.labels.job`, `!(labels.job != "")`)
	drop(`(r.labels.job or ""):find("^api")`, `labels.job startsWith "api"`)
	drop(`r.line == ""`, `line == ""`)
	drop(`r.line ~= "debug"`, `line != "debug"`)
	drop(`r:contains("debug")`, `line contains "debug"`)
	drop(`not r:contains("debug")`, `!(line contains "debug")`)
	drop(`r.line:sub(1, 4) == "GET "`, `line startsWith "GET "`)
	drop(`r.line:find("health$")`, `line endsWith "health"`)
	drop(`r.labels.env == "dev" and r.line:find("GET", 1, true)`, `labels.env == "dev" && line contains "GET"`)
	first = `batch:set_line("{job} {line}") batch:map_label("env", function() return "api" end) `
	drop(`r.labels.env == "api" and r:contains("api")`, `labels.env == "api" && line contains "api"`)
}

// TestPerRecordSeries checks that the proposed hook for series gives the same result as
// the code that it replaces.
func TestPerRecordSeries(t *testing.T) {
	const args = `args = { env = weir.arg.string { default = "prod" }, match = weir.arg.regexp { default = "a" } }, `
	script := func(hook string) string {
		return "local weir = require \"weir\" local re = require \"re\" local text = require \"text\" local GO = re.compile(\"^go_\")\nreturn weir.transform { " + args + hook + " }"
	}
	f := func(body, want string) {
		t.Helper()
		before := script("metrics = function(batch, ctx) batch:each(function(r) " + body + " end) end")
		got := rewriteOf(t, before)
		if want == "" {
			want = body
		}
		if params := map[bool]string{true: "r, ctx", false: "r"}[strings.Contains(body, "ctx")]; got != "series = function("+params+") "+want+" end" {
			t.Errorf("%s: got %s", body, got)
			return
		}
		if want != body {
			return
		}
		old, replaced := build(t, before, ""), build(t, script(got), "")
		r := rand.New(rand.NewPCG(1, 2))
		for range 50 {
			in := batchtest.MetricsText(r)
			equal(t, replaced.send(t, in), old.send(t, in))
		}
	}
	f(`if r.labels.job == "api" then return r:drop() end r.labels.team = "a"`, "")
	f(`if r.name:find("^go_") or GO:match(r.name) then r:drop() end`, "")
	f(`local env = r.labels.env or "none" if #env > 3 then env = env:sub(1, 3) end r.labels.env = env .. "!"`, "")
	f(`for name, value in pairs(r.labels) do if name == "job" then break end if value == ctx.args.env then r.labels[name] = nil end end`, "")
	f(`if ctx.args.match:match(r.labels.job or "") then r.name = text.reverse(r.name) end`, "")
	f(`for i = 1, 2 do r.labels["l" .. tostring(i)] = ({ "x", "y" })[i] end`, "")
	f(`r.labels.x = r.labels.y`, "")
	f(`r.labels.x = ""`, "")
	f(`do local t = {} t.x = r.type t.y = not t.x if t.y then return end r.labels.type = string.upper(t.x) end`, "")
	f("-- a comment\n\t\tif r.labels.job  then\n\t\t\tr.labels.team = [[ two  words ]]\n\t\tend", "if r.labels.job then r.labels.team = [[ two  words ]] end")
	f(`r.labels.team = r.labels.job `+strings.Repeat(`.. r.labels.job `, 10), "…")
	got := rewriteOf(t, script(`metrics = function(batch) for r in batch:records() do if r.labels.job == "api" then r.labels.team = "b" end end end`))
	if want := `series = function(r) if r.labels.job == "api" then r.labels.team = "b" end end`; got != want {
		t.Errorf("a loop: got %s, want %s", got, want)
	}
	got = rewriteOf(t, script(`logs = function(batch) batch:each(function(r) if r.labels.job == "api" then return r:drop() end r.labels.team = "a" end) end`))
	if want := `stream = function(r) if r.labels.job == "api" then return r:drop() end r.labels.team = "a" end`; got != want {
		t.Errorf("logs: got %s, want %s", got, want)
	}
}

// TestPerRecordElse: other code has no finding.
func TestPerRecordElse(t *testing.T) {
	f := func(body string) {
		t.Helper()
		if got := lint(t, metrics(body)); strings.Contains(got, "for every record") {
			t.Errorf("%s: %s", body, got)
		}
	}
	// The hook series cannot do it.
	each := func(body string) {
		t.Helper()
		f("batch:each(function(r) " + body + " end)")
	}
	each(`if r.value > 1 and r.name == "a" then r.labels.x = "y" end`)
	each(`if r.labels.a then r.labels.at = r.time .. "" end`)
	each(`if r.labels.a then return end`) // it does nothing
	each(`if r.labels.a then r.type = "gauge" end`)
	each(`if r.labels.a then r.labels = {} end`)
	each(`if r.labels.a then ctx.log.info("a") r:drop() end`)
	each(`if r.labels.a then r.labels.n = tostring(#batch) end`)
	each(`if r.labels.a then r.labels.n = tostring(ctx.now()) end`)
	each(`if r.labels.a then r.labels.n = tostring(r) end`)
	each(`if r.labels.a == print then r:drop() end`)
	each(`if r.labels[r.key] then r:drop() end`)
	each(`local r = r.labels r.x = "a"`)
	each(`r.labels.x = r.name:gsub("a", function() return "b" end)`)
	each(`while r.labels.a do r.labels.a = nil end`)
	f(`local seen = {} batch:each(function(r) if seen[r.name] then r:drop() end seen[r.name] = true end)`)
	f(`batch:set_label("a", "b") batch:each(function(r) if r.labels.a then r.labels.x = r.name end end)`)
	f(`for r in batch:records() do if r.labels.a then r.labels.x = r.name break end end`)
	f(`for r in batch:records() do if r.labels.a then return end r.labels.x = r.name end`)
	f(`if batch[1].value > 1 then batch:each(function(r) r.labels.x = r.name end) end`)
	drop := func(cond string) {
		t.Helper()
		f("local limit, other = 1, batch[1] batch:each(function(r) if " + cond + " then r:drop() end end)")
	}
	// A staleness marker has the value NaN here, and an expression does not judge it.
	drop(`r.value ~= 0`)
	drop(`not (r.value < 0)`)
	drop(`r.value < 0 and r.labels.job == "api"`)
	drop(`r.value < 0 or r.labels.job == "api"`)
	// A missing label is nil.
	drop(`r.labels.job == ""`)
	drop(`r.labels.job:find("^api")`)
	drop(`r.labels.job < "b"`)
	// An expression does not have these forms, or writes them in another way.
	drop(`r.value > limit`)
	drop(`other.value > 1`)
	drop(`r.name:find("^go.")`)
	drop(`r.name:sub(1, 2) == "go_"`)
	drop(`r.name == "a\n"`)
	drop(`r.name == 1`)
	drop(`r.value == "1"`)
	drop(`r.value < 1/0`)
	drop(`r.labels["a-b"] == "x"`)
	drop(`r.labels["in"] == "x" and r.labels.not_a == f()`)
	drop(`r.type == "unknown"`)
	drop(`r.stale`)
	drop(`true`)
	f(`batch:each(function(r) if r.value < 0 then r:drop() else r.labels.x = "y" end end)`)
	f(`batch:each(function(r) if r.value < 0 then r.labels.x = "y" end end)`)
	f(`batch:each(function(r) if r.value < 0 then batch[1]:drop() end end)`)
	f(`batch:each(function(r) r.value = 1 end)`)
	f(`batch:each(function(r) end)`)
	f(`for i, v in batch:rows("value") do if v < 0 then batch:drop(i) end end`)
	f(`local batch = { each = function() end } batch:each(function(r) if r.value < 0 then r:drop() end end)`)
}
