// Never ends.
import { defineTransform } from "weir"
export default defineTransform({ logs() { for (;;); } })
