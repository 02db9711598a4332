package js_test

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

// TestPerRecord checks that the proposed code gives the same result as the code
// that it replaces.
func TestPerRecord(t *testing.T) {
	f := func(body, want string) {
		t.Helper()
		got := rewriteOf(t, typed(body))
		if got != want {
			t.Errorf("%s: got %s, want %s", body, got, want)
		}
		before, after := build(t, typed(body), ""), build(t, typed(got), "")
		r := rand.New(rand.NewPCG(1, 2))
		for range 50 {
			in := batchtest.MetricsText(r)
			equal(t, after.send(t, in), before.send(t, in))
		}
	}
	drop := func(cond, want string) {
		t.Helper()
		want = "batch.dropWhere('" + want + "')"
		f("batch.each((r) => { if ("+cond+") r.drop(); })", want)
		if got := rewriteOf(t, typed("for (const r of batch) { if ("+cond+") { r.drop(); } }")); got != want {
			t.Errorf("a loop with %s: got %s, want %s", cond, got, want)
		}
	}
	drop(`r.labels.job === "api"`, `labels.job == "api"`)
	drop(`r.labels.job !== "api"`, `labels.job != "api"`)
	drop(`r.labels.job === undefined`, `labels.job == ""`)
	drop(`r.labels.job`, `labels.job != ""`)
	drop(`!r.labels.job`, `!(labels.job != "")`)
	drop(`(r.labels.job ?? "") === ""`, `labels.job == ""`)
	drop(`(r.labels.job || "").startsWith("api")`, `labels.job startsWith "api"`)
	drop(`r.name.startsWith("go_")`, `name startsWith "go_"`)
	drop(`r.name.endsWith("_ms")`, `name endsWith "_ms"`)
	drop(`r.name.includes("go")`, `name contains "go"`)
	drop(`r.labels.job === "api" && (r.labels.env === "dev" || r.name === "up")`, `labels.job == "api" && (labels.env == "dev" || name == "up")`)
	drop(`!(r.labels.job === "api" || r.labels.env === "x")`, `!(labels.job == "api" || labels.env == "x")`)
	drop(`r.value < 0`, `value < 0`)
	drop(`r.value > -1.5`, `value > -1.5`)
	drop(`r.value === 10`, `value == 10`)
	drop(`r.value < 0 || r.value >= 1e1`, `value < 0 || value >= 10`)
	drop(`r.type === "counter"`, `type == "counter"`)
	f(`batch.each((r) => { if (r.value < 0) { r.drop(); return; } })`, `batch.dropWhere('value < 0')`)
	f(`batch.each((r) => r.value < 0 && r.drop())`, `batch.dropWhere('value < 0')`)
	f("batch.each((r) => { r.labels.env = `prod`; r.labels.job = 'x' })", `batch.setLabel("env", "prod"); batch.setLabel("job", "x")`)
}

// typedLogs is typed for log lines.
func typedLogs(body string) string { return strings.Replace(typed(body), "metrics(", "logs(", 1) }

// TestPerRecordLogs is TestPerRecord for log lines.
func TestPerRecordLogs(t *testing.T) {
	first := "" // what the hook does before
	drop := func(cond, want string) {
		t.Helper()
		body := "batch.each((r) => { if (" + cond + ") r.drop(); })"
		want = "batch.dropWhere('" + want + "')"
		got := rewriteOf(t, typedLogs(first+body))
		if got != want {
			t.Errorf("%s: got %s, want %s", body, got, want)
		}
		before, after := build(t, typedLogs(first+body), ""), build(t, typedLogs(first+got), "")
		r := rand.New(rand.NewPCG(1, 2))
		for range 20 {
			in := batchtest.LogsText(r)
			equal(t, after.sendLogs(t, in), before.sendLogs(t, in))
		}
	}
	drop(`r.labels.job === "api"`, `labels.job == "api"`)
	drop(`!r.labels.job`, `!(labels.job != "")`)
	drop(`(r.labels.job ?? "").startsWith("api")`, `labels.job startsWith "api"`)
	drop(`r.line === ""`, `line == ""`)
	drop(`r.line !== "debug"`, `line != "debug"`)
	drop(`r.contains("debug")`, `line contains "debug"`)
	drop(`!r.contains("debug")`, `!(line contains "debug")`)
	drop(`r.line.startsWith("GET ")`, `line startsWith "GET "`)
	drop(`r.line.endsWith("health")`, `line endsWith "health"`)
	drop(`r.labels.env === "dev" && r.line.includes("GET")`, `labels.env == "dev" && line contains "GET"`)
	first = `batch.setLine("{job} {line}"); batch.mapLabel("env", () => "api"); `
	drop(`r.labels.env === "api" && r.contains("api")`, `labels.env == "api" && line contains "api"`)
}

// typed returns a script with a hook in which the linter knows batch.
func typed(body string) string {
	return "import { defineTransform } from \"weir\"\nexport default defineTransform({ metrics(batch, ctx) {\n" + body + "\n} })\n"
}

// TestPerRecordElse: other code has no finding.
func TestPerRecordElse(t *testing.T) {
	f := func(body string) {
		t.Helper()
		if got := lint(t, typed(body)); strings.Contains(got, "for every record") {
			t.Errorf("%s: %s", body, got)
		}
	}
	drop := func(cond string) {
		t.Helper()
		f("const limit = 1, other = batch[0]; batch.each((r) => { if (" + cond + ") r.drop(); })")
	}
	// A staleness marker has the value NaN here, and an expression does not judge it.
	drop(`r.value !== 0`)
	drop(`!(r.value < 0)`)
	drop(`r.value < 0 && r.labels.job === "api"`)
	drop(`r.value < 0 || r.labels.job === "api"`)
	// A missing label is undefined.
	drop(`r.labels.job === ""`)
	drop(`r.labels.job.startsWith("a")`)
	// == converts its operands.
	drop(`r.labels.job == "1"`)
	drop(`r.labels.job === null`)
	drop(`r.value > limit`)
	drop(`other.value > 1`)
	drop(`r.name === "a\n"`)
	drop(`r.name === "it's"`)
	drop(`r.name.startsWith("a", 1)`)
	drop(`r.labels["a-b"] === "x"`)
	drop(`r.labels.constructor`)
	drop(`r.type === "unknown"`)
	drop(`true`)
	f(`batch.each((r) => { if (r.value < 0) r.drop(); else r.labels.x = "y"; })`)
	f(`batch.each((r) => { if (r.value < 0) batch[0].drop(); })`)
	f(`batch.each((r) => { r.labels.x = r.labels.y; })`)
	f(`batch.each((r) => { r.labels.x = ""; })`)
	f(`batch.each((r) => { r.labels.x += "y"; })`)
	f(`batch.each((r) => {})`)
	f(`[...batch].filter((r) => { if (r.value < 0) r.drop(); })`)
}
