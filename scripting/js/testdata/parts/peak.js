// Pieces of long strings: a script that keeps many must not keep the long strings.
//
// script: limits { time = "500ms" memory = "8MiB" }
import { defineTransform } from "weir"
import * as csv from "weir/csv"
import * as json from "weir/json"
import * as logfmt from "weir/logfmt"
import * as re from "weir/re"
import * as text from "weir/text"
const bombs = {}, kept = []

let n = 0
const long = () => "x".repeat(100) + " " + ++n + "-" + "y".repeat(1000000)
const keep = (x) => { if (!x) throw new Error("nothing to keep"); kept.push(x); return x }

// want: limit exceeded
bombs.index = () => { for (;;) keep(long()[100 + 1]) }
bombs.values = () => { for (;;) { const s = long(); keep(Array.prototype.map.call({ length: 3, 0: s[0], 1: s[1], 2: s[2] }, (c) => c)) } }
bombs.spread = () => { for (;;) { const [first] = long(); keep(first) } }
bombs.char_at = () => { for (;;) keep(long().charAt(1)) }
bombs.at = () => { for (;;) keep(long().at(1)) }
bombs.slice = () => { for (;;) keep(long().slice(0, 20)) }
bombs.template = () => { for (;;) keep(`${long().slice(0, 20)}`) }
bombs.concat = () => { for (;;) keep(long().slice(0, 20) + "") }
bombs.step_by_step = () => { for (;;) { let s = long(); while (s.length > 20) s = s.slice(0, s.length * 0.7); keep(s) } }
bombs.substring = () => { for (;;) keep(long().substring(0, 20)) }
bombs.substr = () => { for (;;) keep(long().substr(0, 20)) }
bombs.trim = () => { for (;;) keep((" ".repeat(1000000) + "abc" + ++n).trim()) }
bombs.trim_start = () => { for (;;) keep((" ".repeat(1000000) + "abc" + ++n).trimStart()) }
bombs.trim_left = () => { for (;;) keep((" ".repeat(1000000) + "abc" + ++n).trimLeft()) }
bombs.trim_end = () => { for (;;) keep(("abc" + ++n + " ".repeat(1000000)).trimEnd()) }
bombs.trim_right = () => { for (;;) keep(("abc" + ++n + " ".repeat(1000000)).trimRight()) }
bombs.trim_wide = () => { for (;;) keep(("abc" + ++n + "\u2003".repeat(300000)).trim()) }
bombs.split = () => { for (;;) keep(long().split("-")[0]) }
bombs.split_limit = () => { for (;;) keep(long().split("-", 1)) }
bombs.split_by_pattern = () => { for (;;) keep(long().split(/-/)[0]) }
bombs.split_by_groups = () => { for (;;) keep(long().split(/(\d+)-/)[1]) }
bombs.exec = () => { for (;;) keep(/\d+/.exec(long())[0]) }
bombs.exec_groups = () => { for (;;) keep(/(\d+)-/.exec(long())[1]) }
bombs.exec_named = () => { for (;;) keep(/(?<id>\d+)-/.exec(long()).groups.id) }
bombs.exec_backwards = () => { for (;;) keep(/(?<= )\d+/.exec(long().slice(0, 600000))[0]) }
bombs.exec_again = () => { for (;;) { const r = /\d+/g, s = long(); r.lastIndex = 10; keep(r.exec(s)[0]) } }
bombs.match = () => { for (;;) keep(long().match(/(\d+)-/)[1]) }
bombs.match_g = () => { for (;;) keep(long().match(/\d+/g)) }
bombs.match_all = () => { for (;;) for (const m of long().matchAll(/(\d+)-/g)) keep(m[1]) }
bombs.replace = () => { for (;;) long().replace("-", keep) }
bombs.replace_pattern = () => { for (;;) long().replace(/(\d+)-/, (m, id) => keep(id)) }
bombs.replace_named = () => { for (;;) long().replace(/(?<id>\d+)-/, (...args) => keep(args.at(-1).id)) }
bombs.replace_all = () => { for (;;) long().replaceAll(/\d+/g, keep) }
bombs.keys = () => { const t = {}; for (;;) t[long().slice(95, 110)] = 1 }
bombs.map = () => { const t = new Map(); kept.push(t); for (;;) t.set(long().slice(95, 110), 1) }
bombs.json_parse = () => { for (;;) keep(JSON.parse('{"a":"' + ++n + 'abc","b":"' + long() + '"}').a) }
bombs.json = () => { for (;;) keep(json.decode('{"a":"' + ++n + 'abc","b":"' + long() + '"}').a) }
bombs.re = () => { for (;;) keep(re.find("[0-9]+", long())[0]) }
bombs.text_split = () => { for (;;) keep(text.split(long(), "-", 2)[0]) }
bombs.text_trim = () => { for (;;) keep(text.trim(long(), "y")) }
bombs.text_truncate = () => { for (;;) keep(text.truncate(long(), 50)) }
bombs.csv = () => { for (;;) keep(csv.decode("a," + ++n + ",b" + long())[0][1]) }
bombs.logfmt = () => { for (;;) keep(logfmt.decode("a=b" + ++n + " b=" + long()).a) }

export default defineTransform({
  metrics(batch) {
    const bomb = bombs[batch[0].labels.bomb]
    if (bomb) {
      kept.length = 0
      return bomb(batch)
    }
    batch.setLabel("ok", "1")
  },
})
