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

// TestPerRecordElse: other code has no finding.
func TestPerRecordElse(t *testing.T) {
	f := func(body string) {
		t.Helper()
		if got := lint(t, metrics(body)); strings.Contains(got, "for every record") {
			t.Errorf("%s: %s", body, got)
		}
	}
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
	f(`batch:each(function(r) r.labels.x = r.labels.y end)`)
	f(`batch:each(function(r) r.labels.x = "" end)`)
	f(`batch:each(function(r) r.value = 1 end)`)
	f(`batch:each(function(r) end)`)
	f(`for i, v in batch:rows("value") do if v < 0 then batch:drop(i) end end`)
	f(`local batch = { each = function() end } batch:each(function(r) if r.value < 0 then r:drop() end end)`)
}
