// Has native functions of the language call each other without end.
import { defineTransform } from "weir"
export default defineTransform({
  metrics(batch) {
    const o = {}; o.toString = String.prototype.trim; "" + o
  },
})
