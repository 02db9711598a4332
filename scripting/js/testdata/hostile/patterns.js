// Patterns that take quadratic or exponential time, or much memory, also on short
// texts and by functions that a script makes of them.
//
// script: limits { time = "100ms" memory = "64MiB" }
import { defineTransform } from "weir"
import re from "weir/re"
const bombs = {}
const kept = []
const x = "x".repeat(60000)
const wide = "é" + "x".repeat(2000)
const nested = "ax".repeat(2000) + "b"

// want: limit exceeded
bombs.match = () => x.match(/x(?:x*y)?/g)
bombs.matchAll = () => [...x.matchAll(/x(?:x*y)?/g)]
bombs.replace = () => x.replace(/x(?:x*y)?/g, "z")
bombs.replaceAll = () => x.replaceAll(/x(?:x*y)?/g, () => "z")
bombs.split = () => x.split(/x(?:x*y)?/)
bombs.exec = () => { const re = /x(?:x*y)?/g; while (re.exec(x)); }
bombs.wide_match = () => { for (;;) wide.match(/x(?:x*y)?/g) }
bombs.wide_split = () => { for (;;) wide.split(/x(?:x*y)?/) }
bombs.short_match = () => { for (;;) "x".repeat(4000).match(/(x{1,9}){1,90}y|x/g) }
bombs.ahead_match = () => { for (;;) "x".repeat(2000).match(/x(?=(x*y)?)/g) }
bombs.ahead_split = () => { for (;;) "x".repeat(2000).split(/x(?=(x*y)?)/) }
bombs.ahead_replace = () => { for (;;) "x".repeat(2000).replace(/x(?=(x*y)?)/g, "") }
bombs.species = () => {
  class R extends RegExp { static get [Symbol.species]() { return function () { return /x(?:x*y)?/g } } }
  for (;;) x.split(new R("x(?:x*y)?", "g"))
}
bombs.own_exec = () => {
  class R extends RegExp { exec = undefined }
  for (;;) [...x.matchAll(new R("x(?:x*y)?", "g"))]
}
bombs.memory = () => { for (let i = 0; ; i++) kept.push(new RegExp("\\w{999}".repeat(15) + i)) }
bombs.classes = () => { for (let i = 0; ; i++) kept.push(new RegExp("[\\w\\s]".repeat(1000) + i, "i")) }
bombs.ahead_memory = () => { for (let i = 0; ; i++) kept.push(new RegExp("(?=" + "[a-z]x".repeat(1300) + ")" + i)) }
bombs.own_patterns = () => { for (let i = 0; ; i++) kept.push(re.compile("\\w{999}".repeat(15) + i)) }

bombs.backwards = () => /^(?=(x+x+)+y)/.test("x".repeat(40))
bombs.backwards_match = () => "x".repeat(40).match(/(?=(x+x+)+y)x/g)
bombs.backwards_split = () => "x".repeat(40).split(/(?=(x+x+)+y)x/)
bombs.backwards_search = () => "x".repeat(40).search(/(?=(x+x+)+y)x/)

// want: of memory, and the limit is 4.0 MiB
bombs.large = () => new RegExp("(" + "abcdefgh".repeat(400) + "){900}")
bombs.large_call = () => RegExp("(" + "abcdefgh".repeat(400) + "){900}")
bombs.large_groups = () => new RegExp("(a)".repeat(2700))
bombs.large_compile = () => /x/.compile("(" + "abcdefgh".repeat(400) + "){900}")
bombs.large_like = () => new RegExp({ [Symbol.match]: true, source: "(" + "abcdefgh".repeat(400) + "){900}", flags: "g" })
bombs.large_once = () => { let n = 0; new RegExp({ toString() { return n++ ? "(" + "abcdefgh".repeat(400) + "){900}" : "(" + "abcdefgh".repeat(400) + "){900}" } }) }

// want: cannot compile a pattern of
bombs.long_like = () => new RegExp({ [Symbol.match]: true, source: "x".repeat(1e6), flags: "g" })

export default defineTransform({ metrics(batch, ctx) {
  const bomb = bombs[batch[0].labels.bomb]
  if (bomb) bomb(batch, ctx)
  batch.setLabel("ok", "1")
} })
