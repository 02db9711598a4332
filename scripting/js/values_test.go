package js_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/hostiletest"
	"github.com/weir-run/weir/scripting/js"
)

// valueCase is a hook or a definition that uses a value in a place that is not
// for it.
type valueCase struct {
	Definition, Body, Want string // Definition or Body; Want is part of the error, "" for none
}

// TestHostileValues: a value that contains itself, or says that it is longer than
// memory, is an error of the script wherever the host reads it.
func TestHostileValues(t *testing.T) {
	child := hostiletest.NewChild(t, "TestHostileValuesInChild")
	run := func(c valueCase) {
		t.Helper()
		t.Run(c.Definition+c.Body, func(t *testing.T) {
			t.Helper()
			data, _ := json.Marshal(c)
			child.Run(t, data)
		})
	}
	def := func(src, want string) { t.Helper(); run(valueCase{Definition: src, Want: want}) }
	hook := func(body, want string) { t.Helper(); run(valueCase{Body: body, Want: want}) }
	const (
		// A boxed number that says that it is worth itself, a Map and a Set that
		// contain themselves, and a list that is longer than memory.
		number = `const x = new Number(1); Object.defineProperty(x, "valueOf", { value: x });`
		cyclic = `const x = new Map(); x.set(x, x);`
		set    = `const x = new Set(); x.add(x);`
		sparse = `const x = []; x.length = 2 ** 32 - 1;`
		deep   = `let x = 1; for (let i = 0; i < 5000; i++) x = [x];`
		bytes  = `const x = new Uint8Array(1e6);`
	)
	// Where a function is expected.
	for _, fn := range []string{"batch.each(x)", `batch.filter(["name"], x)`, `batch.mapLabel("a", x)`, "batch.mapValue(x)"} {
		hook(cyclic+fn, "must be a function")
		hook(set+fn, "must be a function")
		hook(sparse+fn, "must be a function")
		hook(number+fn, "must be a function")
		hook(deep+fn, "must be a function")
		hook(`const x = {}; x.valueOf = () => x;`+fn, "must be a function")
	}
	// Where a value is.
	hook(number+`json.encode(x)`, "")
	hook(`const x = new String("a"); Object.defineProperty(x, "valueOf", { value: x }); json.encode(x)`, "")
	hook(`const x = new Boolean(true); Object.defineProperty(x, "valueOf", { value: () => x }); json.encode(x)`, "")
	hook(`if (json.encode([new Number(2.5), new String("a"), new Boolean(true), 1]) !== '[2.5,"a",true,1]') throw new Error("not unboxed")`, "")
	hook(cyclic+`json.encode(x)`, "cannot pass a Map")
	hook(cyclic+`json.encode({ a: [x] })`, "cannot pass a Map")
	hook(sparse+`json.encode(x)`, "cannot pass a list of 4294967295 items")
	hook(bytes+`json.encode(x)`, "cannot use a text or buffer of 1000000 items as an object")
	hook(`json.encode(new Proxy(new Uint8Array(1e6), {}))`, "cannot use a text or buffer of 1000000 items")
	hook(`json.encode(new Array(1e5).fill(new Array(1e5).fill(1)))`, "limit exceeded")
	hook(`json.encode(new Proxy([], { get: (t, k) => k === "length" ? -1 : undefined }))`, "")
	hook(`ctx.log.info("a", { x: new Uint8Array(1e6) })`, "")
	hook(`ctx.log.info("a", (() => { const x = []; x.length = 2 ** 32 - 1; return { x } })())`, "")
	hook(`batch[0].labels = new Proxy({}, { ownKeys: () => ({ length: 2 ** 53 - 1 }) })`, "the JavaScript engine failed")
	hook(bytes+`batch[0].labels = x`, "cannot use a text or buffer of 1000000 items")
	hook(`ctx.state.m.set("a", (() => { const m = new Map(); m.set(m, m); return m })())`, "cannot pass a Map")
	// Where a list is.
	hook(sparse+`batch.filter(x, () => true)`, "cannot read 4294967295 fields")
	hook(sparse+`[...batch.rows(...[x])]`, "cannot use an array as a field")
	hook(sparse+`batch.groupBy(x)`, "cannot read 4294967295 fields")
	hook(`batch.filter({ length: 2 ** 53 - 1 }, () => true)`, "must be an array of strings")
	// Errors that are more than they say.
	hook(`const e = new Error("x"); e.cause = e; throw e`, "x")
	hook(`const e: any = new Error("x"); e.stack = e; e.message = e; e.name = e; throw e`, "in metrics")
	hook(`const m = new Map(); m.set(m, m); throw m`, "in metrics")
	hook(number+`throw x`, "in metrics")
	hook(sparse+`throw x`, "in metrics")
	hook(deep+`throw x`, "in metrics")
	hook(deep+`console.log(x)`, "")
	hook(cyclic+`console.log(x)`, "")
	hook(sparse+`console.log(x)`, "")
	hook(bytes+`console.log(x)`, "")
	hook(`console.log(Array(1e5).fill("x".repeat(1e6)))`, "")
	hook(`let x: any = "x"; for (let i = 0; i < 40; i++) x = [x, x]; const d = new Date(0); d.toJSON = () => x; console.log(d)`, "")
	// Native functions that call each other with nothing of the script between.
	for _, loop := range []string{"Object.prototype.toLocaleString", "String.prototype.trim", "Error.prototype.toString"} {
		hook(`const x: any = {}; x.name = x; x.message = x; x[0] = x; x.length = 1; x.toString = `+loop+`; "" + x`, "cannot go deeper than 1000 levels")
		hook(`const x: any = {}; x.valueOf = x.toString = `+loop+`.bind(x); x.name = x; "" + x`, "cannot go deeper than 1000 levels")
	}
	hook(`let f: any = (...a: any[]) => a.length; for (let i = 0; i < 20000; i++) { f = f.bind(null, 1); Object.defineProperty(f, "name", { value: "" }) } f()`, "cannot put more than 1000")
	hook(`let p: any = {}; for (let i = 0; i < 20000; i++) p = new Proxy(p, {}); p.x`, "cannot put more than 1000")
	hook(`let p: any = {}; for (let i = 0; i < 20000; i++) p = Proxy.revocable(p, {}).proxy; p.x`, "cannot put more than 1000")
	hook(`let p: any = {}; for (let i = 0; i < 100000; i++) p = Object.create(p); p.x`, "")

	// Definitions. The long list is short enough for the time limit.
	for _, value := range []string{number, cyclic, set, sparse, deep, bytes, `const x = new Array(2 ** 14).fill(0);`} {
		for _, place := range []string{
			"defineTransform(x)", "defineTransform({ metrics: x })", "defineTransform({ metrics() {}, args: x })", "defineTransform({ metrics() {}, outputs: x })",
			"defineTransform({ metrics() {}, args: { a: x } })", "defineTransform({ metrics() {}, args: { a: arg.string(x) } })", "defineTransform({ metrics() {}, args: { a: arg.list({ default: x }) } })",
			"defineTransform({ metrics() {}, args: { a: arg.enum({ values: x }) } })", "defineTransform({ metrics() {}, args: { a: arg.block({ fields: x }) } })", "defineTransform({ metrics() {}, state: { m: state.map(x) } })",
			"defineTransform({ metrics() {}, state: { m: state.lru({ max: x }) } })", "defineTransform({ metrics() {}, needs: { http: x } })", "defineTransform({ metrics() {}, every: x })", "defineTransform({ metrics() {}, every: { \"1s\": x } })", "x",
		} {
			if strings.Contains(place, "default: x") && strings.Contains(value, "Array(2 **") || strings.Contains(place, "max: x") && value == number {
				continue // they are good: a long list, and a boxed number
			}
			def(value+" export default "+place, "cannot")
		}
	}
}

func TestHostileValuesInChild(t *testing.T) {
	hostiletest.Serve(t, func(t testing.TB) func([]byte) error {
		return func(data []byte) error {
			var c valueCase
			if err := json.Unmarshal(data, &c); err != nil {
				return err
			}
			got := ""
			if c.Definition != "" {
				_, err := js.New().Compile(scripting.File{Name: "x.ts", Text: `import { defineTransform, arg, state } from "weir"; ` + c.Definition}, scripting.Env{})
				if got = fmt.Sprint(err); err == nil {
					got = ""
				}
			} else {
				src := "import json from \"weir/json\"\nimport { defineTransform, state } from \"weir\"\nexport default defineTransform({ state: { m: state.map() }, metrics(batch: any, ctx: any) {\n" + c.Body + "\n} })\n"
				fx := build(t, src, "")
				fx.send(t, "a{job=\"x\"} 1\n")
				if h := fx.Health(); h.State != component.Healthy {
					got = h.Message
				}
			}
			if c.Want == "" && got == "" {
				return nil
			}
			if c.Want != "" && strings.Contains(got, c.Want) && !strings.Contains(got, "BUG") {
				return nil
			}
			return fmt.Errorf("got %.1000q, want %q", got, c.Want)
		}
	})
}
