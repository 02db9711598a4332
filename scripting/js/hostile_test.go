package js_test

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/scripting/hostiletest"
)

// TestHostile runs hooks that would hang the process or eat its memory. Each
// must fail, within a bound on time and memory that is far from both, leave the
// data as it was, and leave the node able to do its work.
func TestHostile(t *testing.T) {
	if hostiletest.InChild(t) {
		return
	}
	bombs := newRange(t)
	f := func(name, body, want string) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			t.Helper()
			// Scripts that another limit stops get enough time on a busy machine.
			time := "30s"
			if want == "" || want == "in metrics: " || strings.HasPrefix(want, "limit exceeded") {
				time = "100ms"
			}
			fx := build(t, metrics("if (batch[0].name === \"bomb\") {\n"+body+"\n}\nbatch.setLabel(\"ok\", \"1\")"),
				`script { limits { time = "`+time+`" } }`)
			bombs.Explode(t, fx.bombed(), "bomb 1\n", want)
			fx.bombed().Works(t)
		})
	}
	const (
		slow    = "limit exceeded: the call ran longer than 100.02ms, the limit is script.limits.time"
		tooLong = "cannot make a string of"
		list    = "cannot go over a list of"
		limit   = "limit exceeded"
		deep    = "cannot go deeper than 1000 levels"
	)
	// Endless loops. Neither catch nor finally holds them up.
	f("loop", `for (;;) {}`, slow)
	f("loop in finally", `for (;;) { try { for (;;) {} } finally { for (;;) {} } }`, slow)
	f("loop in catch", `for (;;) { try { throw 1 } catch { for (;;) {} } }`, slow)
	f("loop in a getter", `({ get x() { for (;;) {} } }).x`, slow)
	f("loop in sort", `[3, 2, 1].sort(() => { for (;;) {} })`, slow)
	f("loop in replace", `"aaa".replace(/a/g, () => { for (;;) {} })`, slow)
	f("loop in toString", `"" + { toString() { for (;;) {} } }`, slow)
	f("loop in toPrimitive", `+{ [Symbol.toPrimitive]() { for (;;) {} } }`, slow)
	f("loop in a Proxy", `new Proxy({}, { get() { for (;;) {} } }).x`, slow)
	f("loop in each", `batch.each(() => { for (;;) {} })`, slow)
	f("loop in each in try", `try { batch.each(() => { for (;;) {} }) } catch {}`, slow)
	f("loop in filter", `batch.filter(["name"], () => { for (;;) {} })`, slow)
	f("loop in mapLabel", `batch.setLabel("x", "1"); batch.mapLabel("x", () => { for (;;) {} })`, slow)
	f("loop in a class", `class A { static { for (;;) {} } }`, slow)
	f("loop in an async function", `(async () => { for (;;) await 0 })()`, slow)
	f("loop of promises", `const p = () => Promise.resolve().then(p); p()`, slow)
	f("loop of a generator", `function* g() { for (;;) yield 1 } for (const x of g()) ;`, slow)
	f("loop in Array.from", `Array.from({ length: 3 }, () => { for (;;) {} })`, slow)
	f("loop of native functions", `[...{ [Symbol.iterator]() { return { next: Object } } }]`, limit)
	f("loop of native functions in Set", `new Set({ [Symbol.iterator]() { return { next: Object } } })`, limit)
	f("loop of native functions in Array.from", `Array.from({ [Symbol.iterator]() { return { next: Object } } })`, limit)
	f("loop in a thrown object", `throw { toString() { for (;;) {} }, get message() { for (;;) {} } }`, "in metrics: ")
	f("logging", `for (;;) console.log("x")`, limit)

	// Lists, and what says that it has a length.
	f("fill", `Array(2 ** 32 - 1).fill(0)`, limit)
	f("join", `Array(1e9).join("xx")`, "")
	f("concat", `[].concat(Array(1e9), Array(1e9))`, list)
	f("Array.from", `Array.from({ length: 2 ** 32 - 1 })`, list)
	f("sort", `Array.prototype.sort.call({ length: 2 ** 53 - 1 })`, list)
	for _, name := range []string{"indexOf", "lastIndexOf", "includes", "forEach", "fill", "reverse", "every", "reduce"} {
		f(name, `Array.prototype.`+name+`.call({ length: 2 ** 53 - 1 }, () => true)`, limit)
	}
	f("computed length", `let n = 0; Array.prototype.indexOf.call({ get length() { return n++ < 1 ? 1 : 2 ** 53 - 1 } }, 5); Array.prototype.indexOf.call({ get length() { return 2 ** 53 - 1 } }, 5)`, slow)
	f("length set", `const a = []; a.length = 2 ** 32 - 1; a.indexOf(1)`, limit)
	f("length set and spread", `const a = []; a.length = 2 ** 32 - 1; [...a]`, limit)
	f("length set and passed", `const a = []; a.length = 2 ** 32 - 1; Math.max(...a)`, limit)
	f("apply", `Math.max.apply(null, { length: 2 ** 31 })`, "cannot pass 2147483648 arguments")
	f("construct", `Reflect.construct(Date, { length: 2 ** 31 })`, "cannot pass 2147483648 arguments")
	f("ArrayBuffer", `new ArrayBuffer(6e9)`, "cannot make a buffer of")
	f("Float64Array", `new Float64Array(1e9)`, "cannot make a buffer of")
	f("Uint8Array of a length", `new Uint8Array({ length: 1e9 })`, list)
	f("sorted texts", `for (;;) Array.from({ length: 1e5 }, (_, i) => i).sort()`, limit)
	f("flat", `let a = []; for (let i = 0; i < 5000; i++) a = [a]; a.flat(Infinity).x.y`, "")
	f("toString of lists in lists", `let a = []; for (let i = 0; i < 5000; i++) a = [a]; String(a)`, deep)
	f("join of the same lists", `let a = ["x"]; for (let i = 0; i < 40; i++) a = [a, a]; a.join()`, limit)
	f("keys of a text", `Object.keys("x".repeat(8e6))`, "cannot list the characters")
	f("spread of a text", `const m = { ..."x".repeat(8e6) }`, "cannot list the characters")
	f("rest of a text", `const { ...m } = "x".repeat(8e6) as any`, "cannot list the characters")
	f("list to the host", `const a: any[] = []; a.length = 2 ** 32 - 1; (batch as any).filter(a, () => true)`, "")

	// Texts.
	f("repeat", `"x".repeat(2e9)`, tooLong)
	f("repeat of repeat", `"x".repeat(1e6).repeat(1e6)`, tooLong)
	f("padStart", `"x".padStart(2e9)`, tooLong)
	f("padEnd", `"x".padEnd(2e9, "ab")`, tooLong)
	f("doubling", `let s = "x"; for (;;) s += s`, limit)
	f("doubling of wide characters", `let s = "é"; for (;;) s += s`, limit)
	f("concat texts", `const s = "x".repeat(1e6); "".concat(...Array(1000).fill(s))`, tooLong)
	f("replaceAll", `"x".repeat(1e6).replaceAll("x", "y".repeat(1e5))`, tooLong)
	f("replaceAll with $", `"x".repeat(1e6).replaceAll("x", "$'")`, tooLong)
	f("replace", `"x".repeat(1e6).replace(/x/g, "y".repeat(1e5))`, "")
	f("replace with $", `"x".repeat(1e6).replace(/x/g, "$'")`, "")
	f("split", `"x".repeat(8e6).split("")`, list)
	f("upper", `let x = "x".repeat(8e6); for (;;) x = x.toUpperCase()`, limit)
	f("search", `const s = "é".repeat(4e6); s.indexOf("é".repeat(2e6) + "x")`, "cannot search for a text of")
	f("raw", `String.raw({ raw: { length: 2 ** 53 - 1 } } as any)`, list)

	// Patterns. If regexp2 gives up, the call fails; it does not report that nothing matched.
	f("pattern that goes back", `/(a+)+\1$/.test("a".repeat(40) + "b")`, "")
	f("pattern that goes back, from the middle", `const re = /(a+)+$/g; re.lastIndex = 1; re.exec("a".repeat(40) + "b")`, "")
	f("pattern with many matches", `"x".repeat(1e6).match(/x(?:.*y)?/g)`, "")
	f("pattern with many matches, wide", `"x".repeat(1e5).match(/x(?:.*y|é)?/g); for (;;) {}`, limit)
	f("long pattern", `new RegExp("(a|".repeat(3000))`, "cannot compile a pattern of 9000 characters")
	f("large pattern", `new RegExp("(x{30}){30}").test("x".repeat(8e6))`, "cannot match a text of 8000000 characters")

	// JSON.
	f("JSON.parse deep", `JSON.parse("[".repeat(5e6))`, "nests deeper than 1000 levels")
	f("JSON.parse wide", `JSON.parse("[" + "{},".repeat(2e6) + "{}]")`, "more than 500000 values")
	f("JSON.stringify deep", `let a = []; for (let i = 0; i < 5000; i++) a = [a]; JSON.stringify(a)`, "nests deeper than 1000 levels")
	f("JSON.stringify of the same lists", `let a: any = ["x"]; for (let i = 0; i < 40; i++) a = [a, a]; JSON.stringify(a)`, "")
	f("JSON.stringify of a list of names", `let a: any = ["x"]; for (let i = 0; i < 40; i++) a = [a, a]; JSON.stringify(a, ["a"])`, "")
	f("JSON.stringify of itself", `const a: any = {}; a.a = a; JSON.stringify(a)`, "circular")

	// Numbers.
	f("BigInt power", `let b = BigInt(2); b **= BigInt(10000000000)`, "BigInt")
	f("BigInt shift", `BigInt(1) << BigInt(10000000000)`, "BigInt")
	f("BigInt shift to the right", `BigInt(1) >> BigInt(-10000000000)`, "BigInt")
	f("BigInt product", `let b = BigInt(3); for (;;) b *= b`, limit)
	f("BigInt of a text", `BigInt("9".repeat(1e6))`, "cannot make a BigInt of 1000000 characters")
	f("BigInt of bits", `BigInt.asUintN(2 ** 40, BigInt(-1))`, "cannot take 1099511627776 bits")

	// Stacks.
	f("recursion", `function f(): any { return 1 + f() } f()`, "the calls nest too deep")
	f("recursion in try", `function f() { try { f() } catch {} f() } f()`, "")
	f("recursion by getters", `const o = { get a() { return this.a } }; o.a`, "")
	f("recursion by toString", `const o = { toString() { return "" + this } }; "" + o`, "")
	f("recursion by toJSON", `const o = { toJSON() { return JSON.stringify(o) } }; o.toJSON()`, "")
	f("recursion of generators", `function* g(): any { yield* g() } [...g()]`, "")
	f("Proxies of Proxies", `let p = {}; for (let i = 0; i < 20000; i++) p = new Proxy(p, {})`, "cannot put more than 1000 Proxies")
	f("bound functions", `let f: any = () => 1; for (let i = 0; i < 20000; i++) f = f.bind()`, "cannot put more than 1000 Proxies and bound functions")

	// Changes of the language, which would affect this script or the next call.
	for _, body := range []string{
		`eval("1")`, `new Function("return 1")()`, `(() => {}).constructor("return 1")()`, `((function* () {}) as any).constructor("yield 1")`,
		`((async () => {}) as any).constructor("1")`, `setTimeout(() => {}, 1)`, `structuredClone({})`, `process.exit(1)`,
		`(Array.prototype as any).map = 1`, `([] as any).__proto__.x = 1`, `({} as any).__proto__.x = 1`, `Object.prototype.toString = () => ""`,
		`Object.defineProperty(Array.prototype, "map", { value: 1 })`, `Object.setPrototypeOf(Array.prototype, {})`, `(globalThis as any).x = 1`,
		`delete (Array.prototype as any).map`, `("" as any).constructor.prototype.foo = 1`, `([][Symbol.iterator]() as any).__proto__.next = 1`,
		`((async () => {})() as any).constructor.prototype.then = 1`, `(/x/ as any).__proto__.exec = 1`, `(function () {} as any).__proto__.call = 1`,
		`try { (null as any).x } catch (e: any) { e.constructor.prototype.x = 1 }`, `([].map as any).x = 1`, `(Math as any).abs = 1`, `(JSON as any).parse = 1`,
		`(Object.getPrototypeOf(Int8Array) as any).from = 1`, `(Promise.prototype as any).then = 1`, `(batch as any).constructor.prototype.x = 1`,
		`Object.getPrototypeOf(new Map().keys()).next = 1`, `(Symbol as any).iterator = 1`, `(console as any).log = 1`,
	} {
		f(body, body, "in metrics: ")
	}
}

// TestHostileCorpus runs what is in testdata/hostile.
func TestHostileCorpus(t *testing.T) {
	if hostiletest.RaceDetector {
		t.Skip("what they take of memory takes minutes")
	}
	if hostiletest.InChild(t) {
		return
	}
	newRange(t).Corpus(t, "testdata/hostile/*.js", "//", regexp.MustCompile(`^bombs\.(\w+) = `), func(t testing.TB, src, attrs string) hostiletest.Node {
		return build(t, src, attrs).bombed()
	})
}

// TestHostileParts runs the bombs in testdata/parts.
func TestHostileParts(t *testing.T) {
	if hostiletest.RaceDetector {
		t.Skip("what they take of memory takes minutes")
	}
	if hostiletest.InChild(t) {
		return
	}
	r := newRange(t)
	r.Peak = 160 << 20 // a bomb makes long strings of as much and more
	r.Corpus(t, "testdata/parts/*.js", "//", regexp.MustCompile(`^bombs\.(\w+) = `), func(t testing.TB, src, attrs string) hostiletest.Node {
		return build(t, src, attrs).bombed()
	})
}

// bombed is the harness for bombs.
func (f *harness) bombed() hostiletest.Node { return hostiletest.Node{Send: f.send, Health: f.Health} }

// newRange has a neighbour that works on every batch.
func newRange(t *testing.T) hostiletest.Range {
	fx := build(t, metrics(`batch.each((m: any) => { m.value = m.value + 1 })`), "")
	fx.sink.Refuse(context.Canceled) // it would keep every batch
	b := parse(t, "a 1\nb 2\n")
	send := func(ctx context.Context) error { return fx.c.(flow.MetricsConsumer).ConsumeMetrics(ctx, b) }
	// A text that doubles is stopped between two copies, which may be one or two
	// later where the machine has no core for the watchdog.
	return hostiletest.Range{Beside: hostiletest.NewNeighbour(t, send, fx.Health), Peak: 4 << 30}
}
