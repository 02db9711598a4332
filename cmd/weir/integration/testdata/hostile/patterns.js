// Compiles patterns that are as large as they may be, and keeps them.
import { defineTransform } from "weir"
const kept = []
export default defineTransform({ metrics() {
  for (;;) {
    kept.push(new RegExp("\\w{999}".repeat(15) + kept.length))
    try { new RegExp("(" + "abcdefgh".repeat(400) + "){900}") } catch {}
  }
} })
