// Matches short texts by patterns that take exponential and quadratic time.
import { defineTransform } from "weir"
export default defineTransform({ metrics() {
  for (;;) {
    try { /^(?=(x+x+)+y)/.test("x".repeat(40)) } catch {}
    try { "x".repeat(4000).match(/(x{1,9}){1,90}y|x/g) } catch {}
    try { ("é" + "x".repeat(4000)).split(/x(?:x*y)?/) } catch {}
  }
} })
