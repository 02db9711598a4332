// Binds a function to a bound function 20,000 times.
import { defineTransform } from "weir"
export default defineTransform({
  metrics(batch) {
    let f = () => 1; for (let i = 0; i < 20000; i++) { f = f.bind(null, 1); Object.defineProperty(f, "name", { value: "" }) } f()
  },
})
