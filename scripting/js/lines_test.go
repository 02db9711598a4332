package js_test

import (
	"testing"

	"github.com/weir-run/weir/engine/component"
)

// TestLinesAreObjects: log records, their copies, labels and metadata behave as
// objects do. Each row is an expression that must be true.
func TestLinesAreObjects(t *testing.T) {
	const in = "{app=\"a\",host=\"h\"} {trace=\"t1\"} status=200 slow\n{app=\"b\"} two\n"
	const show = `const show = (x: any) => JSON.stringify(x);` + "\n" + `const r = batch[0], other = batch[1];` + "\n"
	f := func(expr string) {
		t.Helper()
		fx := build(t, logsHook(show+"assert("+expr+", "+"show("+expr+"))"), "")
		fx.sendLogs(t, in)
		if h := fx.Health(); h.State != component.Healthy {
			t.Errorf("%s: %s", expr, h.Message)
		}
	}
	// A record.
	f(`r.line === "status=200 slow"`)
	f(`typeof r === "object" && !Array.isArray(r)`)
	f(`Object.keys(r).includes("line") && Object.keys(r).includes("metadata")`)
	f(`"line" in r && "copy" in r && !("value" in r)`)
	f(`({ ...r }).line === r.line`)
	f(`(({ line, labels: { app } }) => app + line.length)(r) === "a15"`)
	f(`String(other).includes("two")`)
	f(`r.contains("slow") && !r.contains("fast")`)
	f(`new Set([r, other, r]).size === 2`)
	f(`r.line.split(" ").length === 2 && r.line[0] === "s" && r.line.at(-1) === "w"`)
	// Times: milliseconds, and nanoseconds as a BigInt.
	f(`typeof r.time === "number" && r.time === Math.trunc(r.time)`)
	f(`String(r.ts).startsWith(String(r.time))`)
	// Labels and metadata.
	f(`show(r.labels) === '{"app":"a","host":"h"}'`)
	f(`show(Object.keys(r.metadata)) === '["trace"]'`)
	f(`r.metadata.trace === "t1" && r.metadata.nope === undefined`)
	f(`show({ ...r.labels, ...r.metadata }) === '{"app":"a","host":"h","trace":"t1"}'`)
	f(`"trace" in r.metadata && !("app" in r.metadata) && !("trace" in r.labels)`)
	f(`show(Object.entries(other.metadata)) === "[]"`)
	f(`(() => { r.metadata.n = 5; delete r.metadata.trace; return show(r.metadata) === '{"n":"5"}' })()`)
	f(`(() => { r.metadata = { a: "1" }; return show(r.metadata) === '{"a":"1"}' })()`)
	f(`(() => { r.metadata = other.metadata; return show(r.metadata) === "{}" })()`)
	f(`(() => { r.labels = { only: "me" }; return show(r.labels) === '{"only":"me"}' })()`)
	f(`(() => { r.metadata.x = NaN; return r.metadata.x === "nan" })()`)
	f(`(() => { r.line = "new"; return r.line === "new" && batch[0].line === "new" })()`)
	// Copies.
	f(`(() => { const c = r.copy(); c.line = "mine"; c.labels.x = "1"; c.metadata.y = "2"; return r.line !== "mine" && r.labels.x === undefined && r.metadata.y === undefined && c.metadata.y === "2" })()`)
	f(`(() => { const c = r.copy(); return c.time === r.time && c.ts === r.ts && c.line === r.line && c !== r.copy() })()`)
	f(`(() => { const c = r.copy(); c.time = 5; return c.time === 5 && String(c.ts) === "5000000" })()`)
	f(`(() => { const c = r.copy(); delete c.labels.app; delete c.metadata.trace; return show([c.labels, c.metadata]) === '[{"host":"h"},{}]' })()`)
	// The batch.
	f(`batch.length === 2 && [...batch].map((x: any) => x.line.length).join() === "15,3"`)
	f(`batch[2] === undefined && batch[-1] === undefined`)
	f(`[...batch.rows("app", "line")].map(([i, app, line]) => i + app + line.length).join() === "0a15,1b3"`)
	f(`[...batch.rows("meta.trace")].map(([, t]) => t ?? "none").join() === "t1,none"`)
	f(`[...batch.groupBy(["app"])].map(([g, app]) => app + g.length).join() === "a1,b1"`)
}

// TestLinesMisused checks what log records refuse.
func TestLinesMisused(t *testing.T) {
	f := func(body, want string) {
		t.Helper()
		fx := build(t, logsHook("fails(() => { "+body+" }, "+want+")"), "")
		fx.sendLogs(t, "{app=\"a\"} one\n")
		if h := fx.Health(); h.State != component.Healthy {
			t.Errorf("%s: %s", body, h.Message)
		}
	}
	f(`batch[0].nope`, "`a log record has no \"nope\"`")
	f(`batch[0].value`, "`a log record has no \"value\"`")
	f(`batch[0].line = 5`, "`cannot set line to a number: it must be a string`")
	f(`batch[0].line = undefined`, "`cannot set line to undefined: it must be a string`")
	f(`batch[0].time = "now"`, "`cannot set time to a string`")
	f(`batch[0].labels = 5`, "`cannot set labels to a number: it must be an object`")
	f(`batch[0].metadata = "x"`, "`cannot set metadata to a string: it must be an object`")
	f(`batch[0].metadata.x = {}`, "`it must be a string`")
	f(`batch[0].labels.x = []`, "`cannot set label \"x\" to an array: it must be a string`")
	f(`delete batch[0].line`, "`cannot delete line of a record: set what can be set, or drop the record`")
	f(`batch.scale(null, 2)`, "`a batch of log lines has no \"scale\"`")
	f(`batch[0] = {}`, "`cannot assign to a batch`")
	f(`batch.set(0.5, "line", "x")`, "`cannot find record 0.5: its number is a whole number`")
	f(`batch.set(1, "line", "x")`, "`cannot find record 1: the batch has 1, counted from 0`")
	f(`batch[0].copy().nope = 1`, "`cannot set \"nope\"`")
	f(`ctx.emit({ line: 5 })`, "`cannot set line to a number: it must be a string`")
	f(`ctx.emit({ name: "x", value: 1 })`, "`cannot emit samples: the script does not send metrics`")
}
