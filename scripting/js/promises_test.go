package js_test

import "testing"

// TestPromises: promises of a script do what the standard says, in its order.
func TestPromises(t *testing.T) {
	var e exprs
	f := e.add
	f(`Promise.resolve(1)`, "1")
	f(`Promise.reject(new TypeError("no"))`, "TypeError: no")
	f(`Promise.reject(3)`, "thrown: 3")
	f(`Promise.reject()`, "thrown: undefined")
	f(`new Promise((done) => done(2))`, "2")
	f(`new Promise((done, fail) => fail(new Error("x")))`, "Error: x")
	f(`new Promise(() => { throw new Error("thrown") })`, "Error: thrown")
	f(`new Promise((done, fail) => { done(1); fail(2); done(3) })`, "1")
	f(`new Promise()`, "TypeError")
	f(`Promise(() => {})`, "TypeError: Constructor Promise requires 'new'")
	// Thenables.
	f(`({ then(done) { done("thenable") } })`, "thenable")
	f(`Promise.resolve({ then(_, fail) { fail(new Error("no")) } })`, "Error: no")
	f(`Promise.resolve({ then: 1 })`, `{"then":1}`)
	f(`(() => { const p = Promise.resolve(1); return Promise.resolve(p) === p })()`, "true")
	// Chains.
	f(`Promise.resolve(1).then((x) => x + 1).then((x) => x * 10)`, "20")
	f(`Promise.resolve(1).then(undefined, () => 5)`, "1")
	f(`Promise.reject(1).then(() => 5)`, "thrown: 1")
	f(`Promise.reject(1).catch((x) => x + 1)`, "2")
	f(`Promise.reject(1).then(null, (x) => x + 2)`, "3")
	f(`Promise.resolve(1).then(() => { throw new RangeError("in then") })`, "RangeError: in then")
	f(`Promise.resolve(1).then(() => Promise.reject(new Error("inner"))).catch((e) => e.message)`, "inner")
	f(`Promise.resolve(1).finally(() => 2)`, "1")
	f(`Promise.reject(new Error("kept")).finally(() => 2)`, "Error: kept")
	f(`Promise.resolve(1).finally(() => { throw new Error("of finally") })`, "Error: of finally")
	f(`Promise.resolve(1).finally((...a) => { if (a.length) throw new Error("arguments") })`, "1")
	f(`Promise.resolve(1).then(2)`, "1")
	// Several at once.
	f(`Promise.all([1, Promise.resolve(2), { then(d) { d(3) } }])`, "[1,2,3]")
	f(`Promise.all([])`, "[]")
	f(`Promise.all([Promise.reject(new Error("first")), Promise.reject(new Error("second"))])`, "Error: first")
	f(`Promise.all(5)`, "TypeError: object is not iterable")
	f(`Promise.allSettled([1, Promise.reject(2)])`, `[{"status":"fulfilled","value":1},{"status":"rejected","reason":2}]`)
	f(`Promise.race([new Promise(() => {}), Promise.resolve("fast")])`, "fast")
	f(`Promise.any([Promise.reject(1), Promise.resolve(2)])`, "2")
	f(`Promise.any([Promise.reject(1), Promise.reject(2)]).catch((e) => [e.name, e.errors])`, `["AggregateError",[1,2]]`)
	f(`Promise.any([]).catch((e) => e.errors.length)`, "0")
	// Order: promises settle after the statements at hand, in the order of their
	// settling.
	f(`(async () => { const got = []; Promise.resolve().then(() => got.push("then")); got.push("sync"); await null; got.push("await"); return got })()`, `["sync","then","await"]`)
	f(`(async () => { const got = []; const a = (async () => { got.push(1); await null; got.push(3) })(); got.push(2); await a; got.push(4); return got })()`, "[1,2,3,4]")
	f(`(async () => { const got = []; await Promise.all([1, 2, 3].map(async (n) => { for (let i = 0; i < n; i++) await null; got.push(n) })); return got })()`, "[1,2,3]")
	f(`(async () => { const got = []; Promise.reject(1).catch(() => got.push("caught")); Promise.resolve(1).then(() => got.push("done")); await null; await null; return got })()`, `["caught","done"]`)
	// async functions.
	f(`(async () => 1)() instanceof Promise`, "true")
	f(`(async () => { throw new Error("async") })()`, "Error: async")
	f(`(async () => { try { await Promise.reject(new Error("x")) } catch (e) { return "caught " + e.message } finally { void 0 } })()`, "caught x")
	f(`(async () => { try { return await Promise.resolve(1) } finally { await null } })()`, "1")
	f(`(async (...a) => a.length)(1, 2)`, "2")
	f(`(async function () { return this === undefined })()`, "true")
	f(`({ async m() { return this.n }, n: 4 }).m()`, "4")
	f(`new (class { async f() { return await 5 } static async g() { return 6 } })().f()`, "5")
	f(`(async () => { let n = 0; for (const p of [1, Promise.resolve(2)]) n += await p; return n })()`, "3")
	f(`(async () => { const o = { a: 1 }; o.a += await Promise.resolve(2); return o.a })()`, "3")
	f(`(async () => (await Promise.resolve({ f: async (x) => x * 2 })).f(await 4))()`, "8")
	f(`(async ({ a, b = a }) => b)({ a: 2 })`, "2")
	f(`(async (x = (() => { throw new Error("default") })()) => x)()`, "Error: default")
	// Generators, plain and async.
	f(`(async () => { const got = []; for await (const x of (async function* () { yield 1; yield Promise.resolve(2) })()) got.push(x); return got })()`, "[1,2]")
	f(`(async () => { const got = []; for await (const x of [Promise.resolve(1), 2]) got.push(x); return got })()`, "[1,2]")
	f(`(async () => { const it = (async function* () { try { yield 1 } finally { await null } })(); for await (const x of it) return x })()`, "1")
	f(`(async () => { const it = (async function* () { const got = yield 1; yield got })(); await it.next(); return (await it.next("sent")).value })()`, "sent")
	f(`(async () => { async function* inner() { yield 2; return 3 } async function* outer() { yield 1; yield yield* inner() } const got = []; for await (const x of outer()) got.push(x); return got })()`, "[1,2,3]")
	f(`(async () => { async function* g() { throw new Error("in it") } try { for await (const x of g()) void x } catch (e) { return e.message } })()`, "in it")
	f(`[...(function* () { yield* [1, 2]; return 3 })()]`, "[1,2]")
	f(`(() => { const g = (function* () { try { yield 1 } finally { yield 2 } })(); g.next(); return [g.return(9), g.next()] })()`, `[{"value":2,"done":false},{"value":9,"done":true}]`)
	// ctx.sleep is a promise.
	f(`ctx.sleep(0) instanceof Promise`, "true")
	f(`ctx.sleep(0).then(() => "slept")`, "slept")
	f(`Promise.all([ctx.sleep(0), ctx.sleep(0)]).then((x) => x.length)`, "2")
	f(`ctx.sleep(NaN)`, "Error: cannot sleep NaN seconds")
	f(`ctx.sleep("1")`, "TypeError: cannot call sleep: argument seconds must be a number, not a string")
	e.run(t, "a 1\n", "")
}
