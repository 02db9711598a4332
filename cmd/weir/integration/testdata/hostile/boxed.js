// Logs a boxed number whose valueOf is itself.
import { defineTransform } from "weir"
export default defineTransform({
  metrics(batch) {
    const n = new Number(1); Object.defineProperty(n, "valueOf", { value: n }); console.log({ n })
  },
})
