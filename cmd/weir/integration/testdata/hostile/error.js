// Throws an error that is its own name and message.
import { defineTransform } from "weir"
export default defineTransform({
  metrics(batch) {
    const e = new Error("x"); e.name = e; e.message = e; throw e
  },
})
