// Passes a list of 2**32-1 items that are not there where a function is expected.
import { defineTransform } from "weir"
export default defineTransform({
  metrics(batch) {
    const a = []; a.length = 2 ** 32 - 1; batch.each(a)
  },
})
