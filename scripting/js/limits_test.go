package js_test

import (
	"strings"
	"testing"

	"github.com/weir-run/weir/engine/component"
)

// TestLimitsCannotBeCaught: neither catch nor finally sees the end of a call that
// reached a limit, the batch goes on as it was, and the next call has a new VM.
func TestLimitsCannotBeCaught(t *testing.T) {
	f := func(attrs, body, want string) {
		t.Helper()
		src := strings.Replace(metrics(`
	calls++
	batch.setLabel("calls", String(calls))
	if (batch[0].name !== "bad") return
	`+body), "export default", "let calls = 0\nexport default", 1)
		fx := build(t, src, "script {\nlimits {\n"+attrs+"\n}\n}")
		equal(t, fx.send(t, "a 1\n"), "a{calls=\"1\"} 1\n")
		equal(t, fx.send(t, "bad 1\n"), "bad 1\n")
		if h := fx.Health(); h.State != component.Unhealthy || !strings.Contains(h.Message, want) {
			t.Errorf("%s: got %s: %q, want %q", body, h.State, h.Message, want)
		}
		equal(t, fx.send(t, "a 1\n"), "a{calls=\"1\"} 1\n")
		if h := fx.Health(); h.State != component.Healthy {
			t.Errorf("%s: the next call fails: %s", body, h.Message)
		}
	}
	const short = `time = "50ms"`
	const ran = "limit exceeded: the call ran longer than 50.02ms" // and 20 µs for the record
	f(short, `for (;;) {}`, ran)
	f(short, `try { for (;;) {} } catch (e) { batch.setLabel("caught", "1") }`, ran)
	f(short, `try { for (;;) {} } finally { batch.setLabel("finally", "1") }`, ran)
	f(short, `for (;;) try { for (;;) {} } catch (e) { continue }`, ran)
	f(short, `const o = { get x() { for (;;) {} } }; o.x`, ran)
	f(short, `const o = { toString() { for (;;) {} } }; String(o)`, ran)
	f(short, `[3, 1, 2].sort(() => { for (;;) {} })`, ran)
	f(short, `JSON.stringify({ toJSON() { for (;;) {} } })`, ran)
	f(short, `const g = (function* () { for (;;) yield 1 })(); for (const x of g) void x`, ran)
	f(short, `new Proxy({}, { get() { for (;;) {} } }).x`, ran)
	f(short, `batch.each(() => { for (;;) {} })`, ran)
	f(short, `batch.mapValue(() => { for (;;) {} })`, ran)
	f(`time = "10s"`+"\nemit = 5", `for (let i = 0; i < 6; i++) try { ctx.emit({ name: "x", value: i }) } catch (e) { batch.setLabel("caught", "1") }`,
		"limit exceeded: the call emitted more than 5 records, the limit is script.limits.emit")
	f(`time = "1s"`, `for (;;) "x".repeat(1000000)`, "limit exceeded: the call ") // made so many bytes, or ran so long
	f(`time = "10s"`+"\nmemory = \"4MiB\"", `const all = []; for (;;) all.push(new Array(1000).fill(all.length))`, "limit exceeded: the call holds more than 4 MiB")
}

// TestErrorsAreNotLimits: an error of a script leaves its VM as it is, except for a
// recursion without an end.
func TestErrorsAreNotLimits(t *testing.T) {
	src := strings.Replace(metrics(`
	calls++
	if (batch[0].name === "bad") throw new Error("on purpose")
	if (batch[0].name === "deep") { const f = (): any => f(); f() }
	if (batch[0].name === "long") "x".repeat(2 ** 30)
	batch.setLabel("calls", String(calls))`), "export default", "let calls = 0\nexport default", 1)
	fx := build(t, src, "")
	equal(t, fx.send(t, "bad 1\n"), "bad 1\n")
	equal(t, fx.send(t, "long 1\n"), "long 1\n")
	equal(t, fx.send(t, "a 1\n"), "a{calls=\"3\"} 1\n")
	equal(t, fx.send(t, "deep 1\n"), "deep 1\n")
	equal(t, fx.send(t, "a 1\n"), "a{calls=\"1\"} 1\n")
}

// TestNativeFunctionsAreBounded: functions of the language that work on much data
// end at a limit too, in the middle.
func TestNativeFunctionsAreBounded(t *testing.T) {
	f := func(body string) {
		t.Helper()
		fx := build(t, metrics(body), "script {\nlimits {\ntime = \"50ms\"\nmemory = \"32MiB\"\n}\n}")
		equal(t, fx.send(t, "a 1\n"), "a 1\n")
		if h := fx.Health(); h.State != component.Unhealthy {
			t.Errorf("%s: it ended by itself", body)
		} else if !strings.Contains(h.Message, "limit exceeded") && !strings.Contains(h.Message, "cannot make a string") && !strings.Contains(h.Message, "Invalid") {
			t.Errorf("%s: got %s", body, h.Message)
		}
	}
	f(`let s = "x"; for (;;) s += s`)
	f(`for (;;) Array.from({ length: 100000 }).sort()`)
	f(`for (;;) new Array(100000).fill("ab").join()`)
	f(`const a = new Array(100000).fill(1); for (;;) a.map(String)`)
	f(`const s = "ab".repeat(100000); for (;;) s.split("b")`)
	f(`const s = "ab".repeat(100000); for (;;) s.replaceAll("b", "cd")`)
	f(`const s = "ab".repeat(100000); for (;;) s.toUpperCase()`)
	f(`const s = JSON.stringify(new Array(10000).fill({ a: 1 })); for (;;) JSON.parse(s)`)
	f(`const o = new Array(10000).fill({ a: 1 }); for (;;) JSON.stringify(o)`)
	f(`/^(a+)+$/.test("a".repeat(40) + "b"); for (;;) {}`)
	f(`let n = 3n; for (;;) n *= n`)
	f(`for (;;) structure(); function structure() { return Object.fromEntries(Array.from({ length: 1000 }, (_, i) => ["k" + i, i])) }`)
	f(`const m = new Map(); for (let i = 0;; i++) m.set(i, "value" + i)`)
}
