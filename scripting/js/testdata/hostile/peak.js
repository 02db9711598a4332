// Bombs at the usual limit of memory, for the peak of the process.
//
// script: limits { time = "60s" }
import { defineTransform } from "weir"
const bombs = {}

// want: holds more than 64 MiB
bombs.objects = () => { const t = []; for (;;) t.push({ a: 1 }) }
bombs.linked = () => { let t; for (;;) t = { t } }
bombs.closures = () => { let f; for (;;) { const g = f; f = () => g } }
bombs.parsed = () => { const t = [], s = "[" + "{},".repeat(20000) + "{}]"; for (;;) t.push(JSON.parse(s)) }
bombs.doubled = () => { let s = "x"; for (;;) s += s }

export default defineTransform({
  metrics(batch) {
    const bomb = bombs[batch[0].labels.bomb]
    if (bomb) return bomb()
    batch.setLabel("ok", "1")
  },
})
