// The values that FuzzValues passes to everything that a script can call, and
// what decodes a case: `codes` is a list of numbers from 0 to 255.

export function self(key) {
  const o = {}
  o[key] = typeof key === "symbol" || key === "valueOf" || key === "toString" || key === "toJSON" ? () => o : o
  return o
}

export function nested(n, wrap) {
  let x = 1
  for (let i = 0; i < n; i++) x = wrap(x)
  return x
}

export function sparse(length) {
  const a = []
  a.length = length
  return a
}

export function args(...all) { return arguments }
args(1)

export function boom() { throw new Error("boom") }

export function revoked(target) {
  const { proxy, revoke } = Proxy.revocable(target, {})
  revoke()
  return proxy
}

export function own(o, key, value) {
  Object.defineProperty(o, key, { value, enumerable: true, configurable: true, writable: true })
  return o
}

export function getter(o, key, get) {
  Object.defineProperty(o, key, { get, enumerable: true, configurable: true })
  return o
}

export class Bare { constructor() { this.a = 1 } }

export const trap = (target, name, fn) => new Proxy(target, { [name]: fn })

export const values = [
  () => undefined, () => null, () => true, () => NaN, () => -0, () => Infinity, () => 2 ** 32 - 1, () => 2 ** 53, () => -1, () => 1e308, () => 0.5,
  () => "", () => "a", () => "\ud800", () => "\u0000", () => "x".repeat(1e6), () => "é".repeat(1e5), () => "[".repeat(2e5), () => "{\"a\":".repeat(1e5), () => "%s%1$s{a}", () => "- ".repeat(1e5), () => "name", () => "labels.job", () => "1e9", () => "a: &a [*a,*a]", () => "__proto__", () => "constructor",
  () => BigInt(7), () => BigInt("9".repeat(999)), () => Symbol("s"), () => Symbol.iterator,
  () => ({}), () => [], () => Object.create(null), () => new Bare(), () => Object.setPrototypeOf(new Bare(), null), () => new (class extends Array {})(3),
  // of themselves
  () => self("a"), () => self("valueOf"), () => self("toString"), () => self("toJSON"), () => self(Symbol.toPrimitive), () => self(Symbol.iterator),
  () => { const a = []; a.push(a, a); return a }, () => { const m = new Map(); m.set(m, m); return m }, () => { const s = new Set(); s.add(s); return s },
  () => own(new Number(1), "valueOf", (() => { const n = new Number(1); return own(n, "valueOf", n) })()),
  () => { const n = new Number(1); return own(n, "valueOf", n) }, () => { const n = new String("x"); return own(n, "valueOf", n) }, () => { const n = new Boolean(true); return own(n, "valueOf", n) },
  () => { const n = new Number(1); n.valueOf = () => n; n.toString = () => n; return n }, () => { const d = new Date(0); d.getTime = d.valueOf = () => d; d.toISOString = () => d; return d },
  () => { const e = new Error("e"); e.cause = e; e.message = e; return e }, () => { const f = () => f; f.name2 = f; return f },
  () => { const p = []; p.__proto__ = null; p.push = p; return p },
  // sparse and long
  () => sparse(2 ** 32 - 1), () => sparse(1 << 20), () => { const a = sparse(2 ** 32 - 1); a[2 ** 32 - 2] = a; return a }, () => ({ length: 2 ** 53 - 1 }), () => ({ length: 2 ** 32 - 1, 0: "a" }), () => ({ length: -1 }), () => ({ length: { valueOf: () => 2 ** 32 } }),
  () => getter({}, "length", () => 2 ** 31), () => args(1, 2, 3), () => own(args(1), "length", 2 ** 32), () => args(...Array(5000).fill(1)),
  () => new Uint8Array(8e6), () => new Float64Array(3), () => new ArrayBuffer(1e6), () => new DataView(new ArrayBuffer(8)), () => new String("x".repeat(1e6)), () => Array(1e5).fill("ab"), () => Object.fromEntries(Array.from({ length: 1e4 }, (_, i) => ["k" + i, i])),
  // deep
  () => nested(500, (x) => [x]), () => nested(20000, (x) => [x]), () => nested(20000, (x) => ({ a: x })), () => nested(5000, (x) => new Proxy([x], {})), () => nested(5000, (x) => new Map([[x, x]])), () => nested(40, (x) => [x, x]), () => nested(40, (x) => ({ a: x, b: x })),
  () => nested(3000, (x) => new Proxy(Object(x), {})), () => nested(3000, (x) => (Object(x) === x && typeof x === "function" ? x : () => 1).bind(null)), () => nested(3000, (x) => Object.create(Object(x))), () => nested(300, (x) => ({ get a() { return x } })), () => nested(3000, (x) => ({ toString() { return "" + x } })), () => nested(3000, (x) => { const e = new Error("x"); e.cause = x; return e }),
  // that answer
  boom, () => getter({}, "a", boom), () => getter([1], "0", boom), () => getter({}, "a", () => { for (;;) ; }), () => getter({}, Symbol.iterator, boom), () => ({ valueOf: boom, toString: boom }), () => ({ [Symbol.toPrimitive]: boom }), () => ({ [Symbol.toPrimitive]: 1 }), () => ({ toJSON: boom }), () => ({ toString: () => ({}) , valueOf: () => ({}) }),
  () => ({ then: (f) => f(1) }), () => { const t = { then: (f) => f(t) }; return t }, () => new Promise(() => {}), () => Promise.reject(1).catch(boom), () => (async () => 1)(), () => ({ *[Symbol.iterator]() { for (;;) yield 1 } }), () => (function* () { yield* this }).call([1]), () => ({ [Symbol.iterator]: () => ({ next: () => ({}) }) }), () => ({ [Symbol.iterator]: () => ({ next: Object }) }),
  () => new Proxy({}, {}), () => new Proxy([1, 2], {}), () => new Proxy(() => 1, {}), () => revoked({}), () => revoked([]), () => revoked(() => 1), () => revoked(revoked({})),
  () => trap({}, "get", boom), () => trap({}, "get", (t, k, p) => p), () => trap([], "get", (t, k) => k === "length" ? 2 ** 32 - 1 : undefined), () => trap([], "get", (t, k) => k === "length" ? -5 : undefined), () => trap({}, "ownKeys", () => Array.from({ length: 5000 }, (_, i) => "k" + i)), () => trap({}, "ownKeys", () => ({ length: 2 ** 32 })), () => trap({}, "has", boom), () => trap({}, "getPrototypeOf", boom), () => trap(() => 1, "apply", boom), () => trap({}, "getOwnPropertyDescriptor", boom), () => trap({}, "ownKeys", boom),
  () => { const p = {}; return Object.setPrototypeOf(p, new Proxy({}, { get: (t, k) => k === "length" ? 2 ** 40 : p })) },
  // functions
  () => 1 && function () {}, () => () => true, () => (x) => x, () => boom, () => class {}, () => class { constructor() { return self("a") } }, () => async () => 1, () => function* () { yield 1 }, () => Object, () => Array, () => Function.prototype, () => String.prototype.repeat.bind("x".repeat(1e5), 1e5), () => (...a) => nested(5000, (x) => [x]), () => function f() { return f() }, () => () => sparse(2 ** 32 - 1), () => () => self("a"), () => () => "x".repeat(1e6), () => (a, b) => a === b ? 0 : NaN,
  // of the language
  () => new Date(NaN), () => new Date(8.64e15), () => /(a+)+$/, () => /x/g, () => new Map([[NaN, 1]]), () => new Set("abc"), () => new WeakMap(), () => new WeakSet(), () => Symbol.prototype, () => globalThis, () => Math, () => JSON, () => Reflect, () => Object.prototype, () => Array.prototype, () => Proxy, () => Promise, () => new Error("x"), () => new AggregateError([1], "x"), () => [1, 2, 3], () => ["name", "value"], () => [["name"]], () => ({ a: 1, default: 2, values: ["a"], fields: {} }), () => ({ name: "x", value: 1, labels: { a: "b" } }), () => ({ line: "x", labels: {} }), () => ({ url: "http://127.0.0.1:1/" }), () => [,], () => [, undefined, null],
]

export const wraps = [
  (x) => [x], (x) => ({ a: x }), (x) => new Proxy(Object(x), {}), (x) => new Map([[x, x]]), (x) => new Set([x]), (x) => () => x, (x) => ({ valueOf: () => x, toString: () => x }), (x) => ({ [Symbol.toPrimitive]: () => x }), (x) => ({ toJSON: () => x }), (x) => getter({}, "a", () => x),
  (x) => ({ length: x }), (x) => ({ get length() { return x } }), (x) => Array(3).fill(x), (x) => ({ [Symbol.iterator]: () => ({ next: () => ({ value: x, done: false }) }) }), (x) => Object.create(Object(x)), (x) => [x, x], (x) => ({ labels: x, name: x, value: x, line: x, metadata: x }), (x) => ({ default: x, values: x, fields: x, description: x, optional: x, min: x }),
  (x) => Object(x), (x) => Promise.resolve(x), (x) => ({ then: x }), (x) => new Error(x), (x) => own([1, 2, 3], "constructor", x), (x) => own([1], Symbol.isConcatSpreadable, x), (x) => own(() => 1, "name", x), (x) => own(own([1], "constructor", { [Symbol.species]: x }), "a", x), (x) => { const o = { a: x }; o.self = o; return o }, (x) => nested(200, (y) => [y, x]), (x) => own(/a/g, "exec", () => x), (x) => own(/a/g, "lastIndex", x),
]

// decoder reads a case.
export class Case {
  constructor(codes) { this.codes = codes; this.at = 0 }
  next() { return this.codes[this.at++] || 0 }
  index(n) { return (this.next() + 256 * this.next()) % n }
  value() {
    const i = this.index(values.length), wrapped = this.next() % 3
    let x
    try { x = values[i]() } catch (e) { x = e }
    for (let n = 0; n < wrapped; n++) {
      const wrap = wraps[this.next() % wraps.length]
      try { x = wrap(x) } catch (e) { x = e }
    }
    return x
  }
  list() { return Array.from({ length: this.next() % 5 }, () => this.value()) }
}

// builtins are the functions of the language's own.
export function builtins() {
  const found = [], seen = new Set()
  const visit = (o, depth) => {
    if (Object(o) !== o || seen.has(o) || depth > 3) return
    seen.add(o)
    if (typeof o === "function") found.push(o)
    for (const key of Reflect.ownKeys(o)) {
      const d = Object.getOwnPropertyDescriptor(o, key)
      if (!d) continue
      for (const x of [d.value, d.get, d.set]) visit(x, depth + 1)
    }
    visit(Object.getPrototypeOf(o), depth)
  }
  visit(globalThis, 0)
  for (const o of [[][Symbol.iterator](), ""[Symbol.iterator](), new Map().entries(), new Set().entries(), "".matchAll(/x/g), function* () {}, async () => {}, (function* () {})(), args(1), Promise.resolve()]) visit(Object.getPrototypeOf(o), 0)
  return found
}

// play calls what a case says: a function of the table, or one of the language's.
export function play(c, targets) {
  const kind = c.next() % 4
  try {
    if (kind < 2) {
      const target = targets[c.index(targets.length)]
      return target(c.list(), c)
    }
    const all = builtins(), fn = all[c.index(all.length)]
    if (kind === 2) return Reflect.apply(fn, c.value(), c.list())
    return Reflect.construct(fn, c.list())
  } catch (e) {
    return e
  }
}
