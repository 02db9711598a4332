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

// TestPerRecordSeries checks that the proposed hook for series gives the same result as
// the code that it replaces.
func TestPerRecordSeries(t *testing.T) {
	script := func(hook string) string {
		return "import { arg, defineTransform } from \"weir\"\nimport re from \"weir/re\"\nimport text, { reverse } from \"weir/text\"\nconst GO = re.compile(\"^go_\")\n" +
			"export default defineTransform({ args: { env: arg.string({ default: \"prod\" }), match: arg.regexp({ default: \"a\" }) }, " + hook + " })\n"
	}
	f := func(body, want string) {
		t.Helper()
		before := script("metrics(batch, ctx) { batch.each((r) => { " + body + " }) }")
		got := rewriteOf(t, before)
		params := map[bool]string{true: "r, ctx", false: "r"}[strings.Contains(body, "ctx")]
		if want = "series(" + params + ") { " + want + " }"; got != want {
			t.Errorf("%s: got %s, want %s", body, got, want)
			return
		}
		if strings.ContainsAny(want, "…") || strings.Contains(want, "import_") {
			return
		}
		old, replaced := build(t, before, ""), build(t, script(got), "")
		r := rand.New(rand.NewPCG(1, 2))
		for range 50 {
			in := batchtest.MetricsText(r)
			equal(t, replaced.send(t, in), old.send(t, in))
		}
	}
	f(`if (r.labels.job === "api") return r.drop(); r.labels.team = "a";`, `if (r.labels.job === "api") return r.drop(); r.labels.team = "a";`)
	f(`if (/^go_/.test(r.name) || GO.match(r.name)) { r.drop() }`, `if (/^go_/.test(r.name) || GO.match(r.name)) { r.drop(); }`)
	f("let env = r.labels.env ?? \"none\"; if (env.length > 3) env = env.slice(0, 3); r.labels.env = `${env}!`;",
		"let env = r.labels.env ?? \"none\"; if (env.length > 3) env = env.slice(0, 3); r.labels.env = `${env}!`;")
	f(`const a: string = r.labels.job?.replace(/a+/, "b") ?? String(r.type); r.labels["x"] = a;`, `const a = r.labels.job?.replace(/a+/, "b") ?? String(r.type); r.labels["x"] = a;`)
	f(`if (ctx.args.match.match(r.labels.job ?? "")) r.labels.env = ctx.args.env; else delete r.labels.env`,
		`if (ctx.args.match.match(r.labels.job ?? "")) r.labels.env = ctx.args.env; else delete r.labels.env;`)
	f(`r.labels.x = r.labels.y`, `r.labels.x = r.labels.y;`)
	f(`r.labels.x = ""; r.labels.y += "y"`, `r.labels.x = ""; r.labels.y += "y";`)
	f(`r.name = text.reverse(r.name)`, `r.name = import_text.default.reverse(r.name);`)
	f(`r.name = reverse(r.name)`, `r.name = (0, import_text.reverse)(r.name);`)
	f(`r.labels.team = r.labels.job `+strings.Repeat(`+ r.labels.job `, 10), "…")
	got := rewriteOf(t, script(`metrics: (batch) => { for (const r of batch) if (r.labels.job === "api") r.labels.team = "b" }`))
	if want := `series(r) { if (r.labels.job === "api") r.labels.team = "b"; }`; got != want {
		t.Errorf("a loop: got %s, want %s", got, want)
	}
	got = rewriteOf(t, script(`metrics(batch) { for (const r of batch) { const job = r.labels.job; if (job) { r.labels.team = job } } }`))
	if want := `series(r) { const job = r.labels.job; if (job) { r.labels.team = job; } }`; got != want {
		t.Errorf("a loop with a block: got %s, want %s", got, want)
	}
	got = rewriteOf(t, script(`metrics(batch) { batch.each((r) => r.labels.job === r.labels.env && r.drop()) }`))
	if want := `series(r) { r.labels.job === r.labels.env && r.drop() }`; got != want {
		t.Errorf("an expression: got %s, want %s", got, want)
	}
	got = rewriteOf(t, script(`logs(batch) { batch.each((r) => { if (r.labels.job === "api") return r.drop(); r.labels.team = "a" }) }`))
	if want := `stream(r) { if (r.labels.job === "api") return r.drop(); r.labels.team = "a"; }`; got != want {
		t.Errorf("logs: got %s, want %s", got, want)
	}
}

// TestPerRecordElse: other code has no finding.
func TestPerRecordElse(t *testing.T) {
	f := func(body string) {
		t.Helper()
		if got := lint(t, typed(body)); strings.Contains(got, "for every record") {
			t.Errorf("%s: %s", body, got)
		}
	}
	// The hook series cannot do it.
	each := func(body string) {
		t.Helper()
		f("batch.each((r) => { " + body + " })")
	}
	each(`if (r.value > 1 && r.name === "a") r.labels.x = "y"`)
	each(`if (r.labels.a) r.labels.at = String(r.time)`)
	each(`if (r.labels.a) return`) // it does nothing
	each(`if (r.labels.a) r.type = "gauge"`)
	each(`if (r.labels.a) r.labels = {}`)
	each(`if (r.labels.a) { ctx.log.info("a"); r.drop() }`)
	each(`if (r.labels.a) r.labels.n = String(batch.length)`)
	each(`if (r.labels.a) r.labels.n = String(ctx.now())`)
	each(`if (r.labels.a) r.labels.n = JSON.stringify(r)`)
	each(`r.labels.x = r.name.replace("a", () => "b")`)
	each(`r.labels.x = Date.now() + r.name`)
	each(`for (const x of ["a"]) r.labels.x = r.name`)
	each(`const { job } = r.labels; r.labels.x = job + "!"`)
	f(`const seen: any = {}; batch.each((r) => { if (seen[r.name]) r.drop() })`)
	f(`batch.setLabel("a", "b"); batch.each((r) => { if (r.labels.a) r.labels.x = r.name })`)
	f(`for (const r of batch) { if (r.labels.a) break; r.labels.x = r.name }`)
	f(`for (const r of batch) { if (r.labels.a) continue; r.labels.x = r.name }`)
	f(`for (const r of batch) { if (r.labels.a) return; r.labels.x = r.name }`)
	f(`if (batch.length > 1) batch.each((r) => { r.labels.x = r.name })`)
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
	f(`batch.each((r) => {})`)
	f(`[...batch].filter((r) => { if (r.value < 0) r.drop(); })`)
}
