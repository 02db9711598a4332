// Makes the level a label, drops debug and shortens the line.
import { defineTransform } from "weir"

export default defineTransform({
  logs(batch) {
    batch.json(["level", "msg", "path", "seq"], (level, msg, path, seq, r) => {
      if (level === "debug") return false
      r.labels.level = level
      r.line = msg + " " + path + " " + seq
    })
  },
})
