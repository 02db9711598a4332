// Errors that are no Errors, that fail when they are looked at, and errors in
// what handles errors.
//
// script: limits { time = "100ms" }
import { defineTransform } from "weir"
const bombs = {}
const loop = () => { for (;;) {} }

// want: in metrics: 
bombs.undefined_ = () => { throw undefined }
bombs.null_ = () => { throw null }
bombs.boolean = () => { throw false }
bombs.number = () => { throw 42 }
bombs.empty = () => { throw "" }
bombs.object = () => { throw {} }
bombs.symbol = () => { throw Symbol("x") }
bombs.func = () => { throw () => {} }
bombs.batch = (batch) => { throw batch }
bombs.record = (batch) => { throw batch[0] }
bombs.cycle = () => { const t = {}; t.message = t; throw t }
bombs.no_prototype = () => { throw Object.create(null) }
bombs.proxy = () => { throw new Proxy({}, { get() { throw 1 } }) }
bombs.proxy_loops = () => { throw new Proxy({}, { get: loop, getPrototypeOf: loop, has: loop }) }
bombs.to_string_fails = () => { throw { toString() { throw new Error("again") } } }
bombs.to_string_loops = () => { throw { toString: loop } }
bombs.message_loops = () => { throw { get message() { return loop() } } }
bombs.error_message_loops = () => { const e = new Error("x"); Object.defineProperty(e, "message", { get: loop }); throw e }
bombs.error_name_loops = () => { const e = new Error("x"); Object.defineProperty(e, "name", { get: loop }); throw e }
bombs.error_stack_loops = () => { const e = new Error("x"); Object.defineProperty(e, "stack", { get: loop }); throw e }
bombs.message_is_object = () => { const e = new Error("x"); e.message = { toString: loop }; throw e }
bombs.name_is_object = () => { const e = new Error("x"); e.name = { toString: loop }; throw e }
bombs.long = () => { throw new Error("x".repeat(8e6)) }
bombs.long_name = () => { const e = new Error("x"); e.name = "y".repeat(8e6); throw e }
bombs.binary = () => { throw new Error("\0\x01\x1b[31m\ud800") }
bombs.in_finally = () => { try { throw 1 } finally { throw 2 } }
bombs.in_async = async () => { throw {} }
bombs.rejected = () => { Promise.reject({ get message() { return loop() } }) }
bombs.in_sort = () => { [3, 2, 1].sort(() => { throw {} }) }
bombs.in_replace = () => { "a".replace(/a/, () => { throw {} }) }
bombs.in_an_iterator = () => { for (const x of { [Symbol.iterator]() { throw {} } }) ; }
bombs.in_each = (batch) => { batch.filter(["value"], () => { throw {} }) }

export default defineTransform({
  metrics(batch) {
    const bomb = bombs[batch[0].labels.bomb]
    if (bomb) return bomb(batch)
    batch.setLabel("ok", "1")
  },
})
