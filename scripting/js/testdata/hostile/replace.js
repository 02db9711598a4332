// Replacements that make strings beyond the limit. They are refused at once, so the time
// has room for a busy machine.
//
// script: limits { time = "10s" memory = "64MiB" }
import { defineTransform } from "weir"
const bombs = {}
const wide = "é" + "x".repeat(2000)

// want: cannot make a string of
bombs.replace_long = () => "x".repeat(1000).replace(/x/g, "y".repeat(8e6))
bombs.replace_dollars = () => "x".repeat(1000).replace(/x/g, "$'".repeat(1e5))
bombs.replace_all_text = () => "x".repeat(1000).replaceAll("x", "y".repeat(8e6))
bombs.replace_by = () => { const y = "y".repeat(5e6); "xx".replace(/x/g, () => y) }
bombs.replace_text_by = () => { const y = "y".repeat(5e6); "xx".replaceAll("x", () => y) }
bombs.wide_replace = () => wide.replace(/x/g, "y".repeat(8e6))

export default defineTransform({ metrics(batch, ctx) {
  const bomb = bombs[batch[0].labels.bomb]
  if (bomb) bomb(batch, ctx)
  batch.setLabel("ok", "1")
} })
