// Passes a Map that contains itself where a function is expected.
import { defineTransform } from "weir"
export default defineTransform({
  metrics(batch) {
    const m = new Map(); m.set(m, m); batch.each(m)
  },
})
