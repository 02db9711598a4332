package js_test

import (
	"strings"
	"testing"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
)

// TestEmit checks what ctx.emit sends behind the batch.
func TestEmit(t *testing.T) {
	f := func(body, want string) {
		t.Helper()
		fx := build(t, checked(body), "")
		fx.send(t, "a{job=\"x\"} 1\nend stale\n")
		var got strings.Builder
		for _, b := range fx.sink.Batches() {
			got.Write(batch.AppendTextAt(nil, b, now))
		}
		var emitted []string
		for line := range strings.Lines(got.String()) {
			if !strings.HasPrefix(line, "a{") && !strings.HasPrefix(line, "end ") {
				emitted = append(emitted, line)
			}
		}
		equal(t, strings.Join(emitted, ""), want)
		if h := fx.Health(); h.State != component.Healthy {
			t.Errorf("%s: %s", body, h.Message)
		}
	}
	f(`ctx.emit({ name: "x", value: 2 })`, "x 2\n")
	f(`ctx.emit({ name: "x", value: 2, labels: { a: "b", n: 1, none: undefined, empty: "" } })`, "x{a=\"b\",n=\"1\"} 2\n")
	f(`ctx.emit({ name: "x", value: 2, time: 5 })`, "x 2 5\n")
	f(`ctx.emit({ name: "x", value: 2, labels: batch[0].labels })`, "x{job=\"x\"} 2\n")
	f(`ctx.emit({ name: "x", value: NaN })`, "x NaN\n")
	f(`ctx.emit({ name: "x", value: -Infinity })`, "x -Inf\n")
	f(`ctx.emit({ name: "x", stale: true })`, "x stale\n")
	f(`ctx.emit({ name: "x", value: 1, type: "gauge", help: "Help." })`, "# TYPE x gauge\n# HELP x Help.\nx 1\n")
	f(`const c = batch[0].copy(); c.name = "x"; c.labels.k = "v"; ctx.emit(c)`, "x{job=\"x\",k=\"v\"} 1\n")
	f(`const c = batch[0].copy(); c.name = "x"; ctx.emit(c); c.value = 5; c.labels.k = "v"; ctx.emit(c)`, "x{job=\"x\"} 1\nx{job=\"x\",k=\"v\"} 5\n")
	f(`const c = batch[1].copy(); c.name = "x"; ctx.emit(c)`, "x stale\n")
	f(`for (let i = 0; i < 3; i++) ctx.emit({ name: "x", value: i, labels: { i } })`, "x{i=\"0\"} 0\nx{i=\"1\"} 1\nx{i=\"2\"} 2\n")
	f(`const o = { name: "x", value: 1, labels: { a: "1" } }; ctx.emit(o); o.labels.a = "2"`, "x{a=\"1\"} 1\n")
	f(`ctx.emit({ get name() { return "x" }, get value() { return 3 } })`, "x 3\n")
	f(`class P { name = "x"; value = 4 }; ctx.emit(new P())`, "x 4\n")
	f(`ctx.emit(Object.freeze({ name: "x", value: 1 }))`, "x 1\n")
}

// TestEmitMisused checks what ctx.emit and ctx.route refuse.
func TestEmitMisused(t *testing.T) {
	f := func(body, want string) {
		t.Helper()
		e := failureOf(t, "import { defineTransform } from \"weir\"\nexport default defineTransform({ outputs: [\"other\"], sends: [\"metrics\"], metrics(batch: any, ctx: any) {\n"+body+"\n} })\n", routed)
		if !strings.Contains(e.Err.Error(), want) || e.Line != 3 {
			t.Errorf("%s: got line %d: %v, want %q", body, e.Line, e.Err, want)
		}
	}
	f(`ctx.emit()`, "cannot emit undefined: it must be an object or a record")
	f(`ctx.emit(null)`, "cannot emit null: it must be an object or a record")
	f(`ctx.emit("x 1")`, "cannot emit a string: it must be an object or a record")
	f(`ctx.emit([1])`, "cannot emit an array: it must be an object or a record")
	f(`ctx.emit(() => 1)`, "cannot emit a function: it must be an object or a record")
	f(`ctx.emit(new Map())`, "cannot emit ")
	f(`ctx.emit(Promise.resolve(1))`, "cannot emit a record without a value, or a line if it is a log record")
	f(`ctx.emit({ value: 1 })`, "name")
	f(`ctx.emit({ name: "", value: 1 })`, "name")
	f(`ctx.emit({ name: 5, value: 1 })`, "cannot set name to a number: it must be a string")
	f(`ctx.emit({ name: "x", value: "1" })`, "cannot set value to a string: it must be a number")
	f(`ctx.emit({ name: "x", value: 1, time: "now" })`, "cannot set time to a string")
	f(`ctx.emit({ name: "x", value: 1, labels: "a" })`, "cannot set labels to a string: it must be an object")
	f(`ctx.emit({ name: "x", value: 1, labels: { a: {} } })`, `cannot set label "a" to an object: it must be a string`)
	f(`ctx.emit({ name: "x", value: 1, labels: { __name__: "y" } })`, "cannot use __name__ as a label")
	f(`ctx.emit({ name: "x", value: 1, vlaue: 2 })`, `cannot set "vlaue" of a copy of a record: did you mean value?`)
	f(`ctx.route(5, batch[0])`, "cannot route to a number: write ctx.route(\"output\", record)")
	f(`ctx.route("othr", batch[0])`, `cannot route to "othr"`)
	f(`ctx.route("other")`, `cannot route nothing: write ctx.route("other", record)`)
	f(`ctx.route("other", null)`, `cannot route nothing: write ctx.route("other", record)`)
	f(`ctx.route("other", 7)`, "cannot find record 7: the batch has 1, counted from 0")
	f(`ctx.route("other", 0.5)`, "cannot find record 0.5: its number is a whole number")
	f(`ctx.route("other", "a")`, "cannot emit a string: it must be an object or a record")
	f(`ctx.route("other", batch)`, "cannot emit an array: it must be an object or a record")
}

// routed connects the output other.
const routed = "routes {\nother = [sink]\n}"
