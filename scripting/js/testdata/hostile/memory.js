// Bombs that hold more and more: the limit of memory must end them, not that of
// time.
//
// script: limits { time = "60s" memory = "8MiB" }
import { defineTransform } from "weir"
const bombs = {}
const kept = []

// want: holds more than 8 MiB
bombs.array = () => { const t = []; for (let n = 0; ; n++) t.push(n + 0.5) }
bombs.objects = () => { const t = []; for (;;) t.push({}) }
bombs.linked = () => { let t; for (;;) t = { t } }
bombs.literals = () => { let t; for (;;) t = [t, 1, 2] }
bombs.keys = () => { const t = {}; for (let i = 0; ; i++) t["k" + i] = i }
bombs.map = () => { const t = new Map(); for (let i = 0; ; i++) t.set(i, {}) }
bombs.set = () => { const t = new Set(); for (let i = 0; ; i++) t.add("k" + i) }
bombs.closures = () => { let f; for (;;) { const g = f; f = () => g } }
bombs.variables = () => { for (;;) { const n = [1, 2, 3]; kept.push(() => n) } }
bombs.prototypes = () => { let t = {}; for (;;) t = Object.create(t) }
bombs.classes = () => { for (;;) kept.push(class { a() {} b() {} }) }
bombs.generators = () => { for (;;) { const g = (function* () { const s = [1, 2, 3]; yield s; return s })(); g.next(); kept.push(g) } }
bombs.iterators = () => { for (;;) kept.push([1][Symbol.iterator]()) }
bombs.dates = () => { for (;;) kept.push(new Date()) }
bombs.patterns = () => { for (let i = 0; ; i++) kept.push(/x/g) }
bombs.symbols = () => { for (let i = 0; ; i++) Symbol.for("x" + i) }
bombs.promises = () => { for (;;) kept.push(new Promise(() => {})) }
bombs.errors = () => { for (;;) kept.push(new Error("x")) }
bombs.buffers = () => { for (;;) kept.push(new Uint8Array(10000)) }
bombs.sparse = () => { for (;;) { const s = []; s[4000] = 1; kept.push(s) } }
bombs.texts = () => { for (;;) kept.push("x".repeat(1000) + kept.length) }
bombs.sums = () => { for (let i = 0; ; i++) kept.push("x".repeat(10) + i) }
bombs.parsed = () => { for (;;) kept.push(JSON.parse("[{},[],{}]")) }
bombs.split = () => { for (;;) kept.push("a,b,c,d".split(",")) }
bombs.matches = () => { for (;;) kept.push(/(a)(b)?/.exec("ab")) }
bombs.arguments_ = () => { function f() { return arguments } for (;;) kept.push(f(1, 2, 3)) }
bombs.proxies = () => { for (;;) kept.push(new Proxy({}, {})) }
bombs.recursion = () => { function f(t) { const u = Array(10000).fill(t); return 1 + f(u) } f() }
bombs.in_try = () => { for (;;) try { for (;;) kept.push({}) } catch {} }
bombs.in_sort = () => { [3, 2, 1].sort(() => { for (;;) kept.push({}) }) }
bombs.in_each = (batch) => { batch.each(() => { for (;;) kept.push({}) }) }
bombs.in_a_getter = () => { ({ get x() { for (;;) kept.push({}) } }).x }
bombs.in_async = async () => { for (;;) { kept.push({}); await 0 } }
bombs.copies = (batch) => { for (;;) kept.push(batch[0].copy()) }

// want: limit exceeded
bombs.jobs = () => { for (;;) Promise.resolve().then(() => {}) }
bombs.bound = () => { for (;;) kept.push((() => {}).bind(null, {}, {}, {}, {}, {}, {}, {}, {})) }
bombs.long_texts = () => { for (;;) kept.push("x".repeat(1e6) + kept.length) }
bombs.doubled = () => { let s = "x"; for (;;) s += s }

export default defineTransform({
  metrics(batch) {
    const bomb = bombs[batch[0].labels.bomb]
    if (bomb) {
      kept.length = 0
      return bomb(batch)
    }
    batch.setLabel("ok", "1")
  },
})
