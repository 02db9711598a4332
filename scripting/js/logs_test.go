package js_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
)

func parseLogs(t testing.TB, text string) *batch.Logs {
	t.Helper()
	b, err := batch.ParseLogsText(text, batch.TextOptions{T: now * 1_000_000, Source: 1})
	if err != nil {
		t.Fatalf("cannot parse %q: %v", text, err)
	}
	return b
}

// sendLogs sends lines and returns what came out of it: lines, then samples.
func (f *harness) sendLogs(t testing.TB, in string) string {
	t.Helper()
	logs, samples := len(f.sink.Logs()), len(f.sink.Batches())
	if err := f.c.(flow.LogsConsumer).ConsumeLogs(t.Context(), parseLogs(t, in)); err != nil {
		t.Fatal(err)
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
	return asserting + "import { defineTransform } from \"weir\"\nimport re from \"weir/re\"\nconst STATUS = re.compile(\"status=(\\\\d+)( slow)?\"), KEPT: any = {}\n" +
		"export default defineTransform({ logs(batch: any, ctx: any) {\n" + body + "\n} })"
}

const twoLines = `{app="a"} {trace="t1"} {"level":"debug","n":12,"big":9007199254740993,"deep":{"a":[true,null]}}
{app="b"} level=warn status=404 msg="not there"
`

// TestLogs runs each body on two lines and compares the output.
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
	f(`batch.dropWhere('labels.app == "a"')`, second)
	f(`batch.keepWhere('line contains "debug" || meta.trace == "x"')`, first)
	f(`batch.setLabel("x", 1); batch.dropLabel("app"); batch.renameLabel("x", "y")`, `{y="1"} {trace="t1"} `+line1+`{y="1"} `+line2)
	f(`batch.mapLabel("app", (a: string) => a.toUpperCase())`, `{app="A"} {trace="t1"} `+line1+`{app="B"} `+line2)
	f(`batch.promote("json.level", "level"); batch.promote("logfmt.level", "level")`, `{app="a",level="debug"} {trace="t1"} `+line1+`{app="b",level="warn"} `+line2)
	f(`batch.setLine("{app}/{json.level}{logfmt.level}")`, "{app=\"a\"} {trace=\"t1\"} a/debug\n{app=\"b\"} b/warn\n")

	// projected callbacks
	f(`batch.json(["level", "n", "big", "deep.a.0", "deep", "gone"], (level, n, big, t, deep, gone, r) => {
		assert(big === undefined || typeof big === "bigint")
		r.line = [level, n, big, t, deep, gone].map(String).join(" ")
	})`, "{app=\"a\"} {trace=\"t1\"} debug 12 9007199254740993 true {\"a\":[true,null]} undefined\n{app=\"b\"} undefined undefined undefined undefined undefined undefined\n")
	f(`batch.json(["n"], (n) => assert(n === undefined || n === 12))`, twoLines)
	f(`batch.json(["level"], (level) => level !== "debug")`, second)
	f(`batch.json(["level"], (...all) => assert(all.length === 2 && all[1].line))`, twoLines)
	f(`batch.json(["level"], function () { assert(arguments.length === 2) })`, twoLines)
	f(`batch.json(["level"], (level, r = null) => assert(r.line))`, twoLines)
	f(`batch.logfmt(["level", "msg"], (level, msg, r) => { if (msg) { r.labels.level = level; r.line = msg } })`, first+"{app=\"b\",level=\"warn\"} not there\n")
	f(`batch.match("status=(\\d+)", (status, r) => { r.labels.status = status })`, first+`{app="b",status="404"} `+line2)
	f(`batch.match(STATUS, (status, slow, r) => { assert(slow === undefined); r.metadata.status = status })`, first+`{app="b"} {status="404"} `+line2)
	f(`batch.match("warn", (m) => { assert(m === "warn"); return false })`, first)
	f(`batch.filter(["app", "meta.trace", "json.n", "line"], (app, trace, n, line) => app === "a" && trace === "t1" && n === 12 && line.length > 10)`, first)
	f(`for (const [i, app, ts] of batch.rows("app", "ts")) { assert(typeof ts === "bigint"); batch.set(i, { line: app + ts, x: i }); batch.set(i, "meta.n", i) }`,
		"{app=\"a\",x=\"0\"} {n=\"0\",trace=\"t1\"} a1700000000000000000\n{app=\"b\",x=\"1\"} {n=\"1\"} b1700000000000000000\n")
	f(`for (const [i] of batch.rows("line")) if (i === 0) batch.drop(i)`, second)

	// records
	f(`batch.each((r) => { if (r.contains("debug")) r.drop() })`, second)
	f(`batch.each((r) => { const m = r.match("status=(\\d+)"); if (m) [r.labels.status] = m })`, first+`{app="b",status="404"} `+line2)
	f(`batch.each((r) => { assert(r.match(STATUS) === undefined || r.match(STATUS)[0] === "404" && r.match(STATUS).length === 2); r.labels.level = r.json("level") })`, `{app="a",level="debug"} {trace="t1"} `+line1+second)
	f(`for (const r of batch.records()) r.time++`,
		strings.Replace(strings.Replace(twoLines, `{app="a"} `, `{app="a"} @2023-11-14T22:13:20.001Z `, 1), `{app="b"} `, `{app="b"} @2023-11-14T22:13:20.001Z `, 1))
	f(`batch[0].ts += BigInt(7); batch[0].time = 1700000000000; batch[1].ts = batch[1].ts; batch[1].ts = String(batch[1].ts)`, strings.Replace(twoLines, `{app="a"} `, `{app="a"} @2023-11-14T22:13:20.000000007Z `, 1))
	f(`batch[0].metadata = { b: 2, a: true }; batch[1].labels = { z: "1" }`, `{app="a"} {a="true",b="2"} `+line1+`{z="1"} `+line2)
	f(`assert(batch.length === 2 && batch[2] === undefined && String(batch[0].metadata) === '{trace="t1"}' && batch[0].metadata.gone === undefined)`, twoLines)
	f(`for (const k in batch[0].metadata) batch[0].labels[k] = batch[0].metadata[k]`, `{app="a",trace="t1"} {trace="t1"} `+line1+second)
	f(`delete batch[0].metadata.trace`, `{app="a"} `+line1+second)
	f(`for (const [group, app] of batch.groupBy(["app"])) if (app === "a") group.drop(); else group[0].line = String(group.length)`, "{app=\"b\"} 1\n")
	f(`for (const [group] of batch.groupBy(["meta.none"])) { assert(group.length === 2); for (const r of group) r.labels.g = "1" }`, `{app="a",g="1"} {trace="t1"} `+line1+`{app="b",g="1"} `+line2)
	f(`assert(String(batch[0]).startsWith('{app="a"} @2023') && batch.text().split("\n").length === 3 && Object.keys(batch[0]).join() === "line,labels,metadata,time,ts")`, twoLines)

	// emitted
	f(`ctx.emit({ line: "made", labels: { z: "1" }, metadata: { m: 1 }, ts: "1" })`, twoLines+"{z=\"1\"} @1970-01-01T00:00:00.000000001Z {m=\"1\"} made\n")
	f(`const c = batch[0].copy(); c.line = "copy"; c.labels.kind = "x"; delete c.metadata.trace; c.time = c.time; c.ts = c.ts; ctx.emit(c); ctx.emit(batch[1])`, twoLines+"{app=\"a\",kind=\"x\"} copy\n"+second)
	f(`ctx.emit({ ...batch[1], line: "spread" })`, twoLines+"{app=\"b\"} spread\n")
}

// TestStreamHook: the hook decides about streams; what it decided is known the
// next time without asking.
func TestStreamHook(t *testing.T) {
	fx := build(t, `import { defineTransform } from "weir"
let asked = 0
export default defineTransform({ stream(s: any, ctx: any) {
	if (s.labels.app === "a") return s.drop()
	s.labels.asked = ++asked
} })`, "")
	in := parseLogs(t, "{app=\"a\"} x\n{app=\"b\"} x\n")
	for i := range 3 {
		if err := fx.c.(flow.LogsConsumer).ConsumeLogs(t.Context(), in); err != nil {
			t.Fatal(err)
		}
		if got, want := string(batch.AppendLogsTextAt(nil, fx.sink.Logs()[i], now*1_000_000)), "{app=\"b\",asked=\"1\"} x\n"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if got := fx.Stats.DroppedLines()["script"]; got != 3 {
		t.Errorf("%d lines dropped, want 3", got)
	}
	f := func(body, want string) {
		t.Helper()
		fx := build(t, "import { defineTransform } from \"weir\"\nexport default defineTransform({ stream(s: any) {\n"+body+"\n} })", "")
		fx.sendLogs(t, "{app=\"a\"} x\n")
		if h := fx.Health(); !strings.Contains(h.Message, want) {
			t.Errorf("%s: got %q, want %q", body, h.Message, want)
		}
	}
	f(`s.line`, "cannot read line in stream: the hook sees labels only")
	f(`s.name = "x"`, `cannot set "name" of a stream`)
	f(`s.nope`, `a stream has no "nope"`)
}

// TestSignalsMeet: lines make samples and samples make lines, where the script
// says that it sends them.
func TestSignalsMeet(t *testing.T) {
	toSamples := func(sends string) *harness {
		return build(t, `import { defineTransform } from "weir"
export default defineTransform({
	`+sends+`
	logs(batch: any, ctx: any) {
		for (const [group, app] of batch.groupBy(["app"])) ctx.emit({ name: "lines", labels: { app }, value: group.length })
	},
})`, "")
	}
	only := toSamples(`sends: ["metrics"],`)
	if diff := cmp.Diff("lines{app=\"a\"} 2\n", only.sendLogs(t, "{app=\"a\"} x\n{app=\"a\"} y\n")); diff != "" {
		t.Errorf("samples only (-want +got):\n%s", diff)
	}
	both := toSamples(`sends: ["metrics", "logs"],`)
	if diff := cmp.Diff("{app=\"a\"} x\nlines{app=\"a\"} 1\n", both.sendLogs(t, "{app=\"a\"} x\n")); diff != "" {
		t.Errorf("both (-want +got):\n%s", diff)
	}
	refused := toSamples("")
	refused.sendLogs(t, "{app=\"a\"} x\n")
	if h := refused.Health(); !strings.Contains(h.Message, `cannot emit samples: the script does not send metrics; add sends: ["metrics", "logs"]`) {
		t.Errorf("got %s", h.Message)
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
	const drop, both = `script { on_error = "drop" }`, "{app=\"a\"} one\n{app=\"b\"} two\n"
	each := `batch.each((r) => { r.line += "!"; r.labels.x = "1"; ctx.emit(r); if (r.labels.app === "a") throw new Error("no") })`
	f(each, "", "{app=\"a\"} one\n{app=\"b\",x=\"1\"} two!\n{app=\"b\",x=\"1\"} two!\n", `record: {app="a"} @2023-11-14T22:13:20Z one`)
	f(each, drop, "{app=\"b\",x=\"1\"} two!\n{app=\"b\",x=\"1\"} two!\n", "in each: no")
	f(`batch.setLabel("x", "1"); throw new Error("no")`, "", both, "in logs: no")
	f(`throw new Error("no")`, drop, "", "in logs: no")
	f(`batch.json(["a"], (a, r) => { r.line = "x"; return 1 })`, "", both, "cannot use a number as an answer")
	f(`batch.json(["a"], async () => {})`, "", both, "cannot use a promise as an answer")
	f(`batch.json("a", () => {})`, "", both, "cannot call json: argument fields must be an array of strings")
	f(`batch.match("(", () => {})`, "", both, "cannot compile pattern")
	f(`batch.match(/x/, () => {})`, "", both, `cannot match by a RegExp of JavaScript: write its text, as in "x"`)
	f(`batch.match(5, () => {})`, "", both, `cannot call match: argument pattern must be a string, or what re.compile returned, not a number`)
	f(`batch.scale(null, 2)`, "", both, `has no "scale"`)
	f(`batch.each((r) => { r.value = 1 })`, drop, "", `cannot set "value" of a log record`)
	f(`batch.each((r) => { r.time = 1.5 })`, drop, "", "it must be a whole number of milliseconds")
	f(`batch.each((r) => { r.ts = 5 })`, drop, "", "it is Unix ns in a BigInt, as a number cannot hold it")
	f(`batch.each((r) => { r.ts = BigInt("1180591620717411303424") })`, drop, "", "cannot set ts to")
	f(`batch.each((r) => { r.line = {} })`, drop, "", "cannot set line to an object")
	f(`batch.each((r) => r.nope)`, drop, "", `a log record has no "nope"`)
	f(`batch.each((r) => r.copy().nope)`, drop, "", `a copy of a log record has no "nope"`)
	f(`ctx.emit({ value: 1, name: "a" })`, "", both, "the script does not send metrics")
	f(`ctx.emit({ labels: {} })`, "", both, "cannot emit a record without a value, or a line if it is a log record")
	f(`batch.promote("level", "level")`, "", both, "json.level, logfmt.level or meta.level")
	f(`batch.rows()`, "", both, "cannot read 0 fields")
	f(`batch.filter(["line"], () => {})`, "", both, "the function must return true to keep or false to drop")
}

// TestLateLines: handles of lines die with their hook.
func TestLateLines(t *testing.T) {
	fx := build(t, logsHook(`
		if (KEPT.r) {
			fails(() => KEPT.r.line, "after its hook returned")
			fails(() => KEPT.meta.x, "after its hook returned")
			fails(() => KEPT.group[0], "after its hook returned")
			fails(() => KEPT.rows.next(), "after its hook returned")
			assert(KEPT.copy.line === "one" && KEPT.copy.labels.app === "a")
			ctx.emit(KEPT.copy)
		}
		KEPT.r = batch[0]; KEPT.meta = batch[0].metadata; KEPT.copy = batch[0].copy(); KEPT.rows = batch.rows("line"); KEPT.group = [...batch.groupBy(["app"])][0][0]
	`), "")
	fx.sendLogs(t, "{app=\"a\"} one")
	if got, want := fx.sendLogs(t, "{app=\"b\"} two"), "{app=\"b\"} two\n{app=\"a\"} one\n"; got != want {
		t.Errorf("got %q, want %q: %s", got, want, fx.Health().Message)
	}
}

// TestLogsUntouched: lines that nobody edits leave in the batch that they came
// in.
func TestLogsUntouched(t *testing.T) {
	fx := build(t, logsHook(`batch.json(["level"], (level) => {}); batch.each((r) => { r.line; r.ts; r.line = r.line; r.ts = r.ts })`), "")
	in := parseLogs(t, twoLines)
	if err := fx.c.(flow.LogsConsumer).ConsumeLogs(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	out := fx.sink.Logs()[0]
	if &out.Line[0] != &in.Line[0] || &out.Stream[0] != &in.Stream[0] || &out.Meta[0] != &in.Meta[0] || &out.T[0] != &in.T[0] {
		t.Errorf("a column was copied: %s", fx.Health().Message)
	}
}
