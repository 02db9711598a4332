// Keeps more with every call.
import { defineTransform } from "weir"
const kept = []
export default defineTransform({ metrics() { for (;;) kept.push(new Array(1000).fill({})) } })
