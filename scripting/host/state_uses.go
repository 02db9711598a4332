package host

import (
	"fmt"

	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/state"
)

// stateUses returns the examples of a method of a kind of state.
func stateUses(kind state.Kind, method string) []scripting.Use {
	body := map[string]string{
		"add":     `r.value = ctx.state.s:add(r.labels.job, r.value)`,
		"get":     `ctx.state.s:set(r.labels.job, r.value); r.value = ctx.state.s:get(r.labels.job) + 1`,
		"set":     `local ok, err = ctx.state.s:set(r.labels.job, r.value); r.value = ok and ctx.state.s:get(r.labels.job)`,
		"update":  `r.value = ctx.state.s:update(r.labels.job, function(old) return (old or 0) + r.value end)`,
		"has":     fmt.Sprintf(`ctx.state.s:%s; r.value = ctx.state.s:has("api") and 1 or 0`, stateWrite(kind)),
		"delete":  fmt.Sprintf(`ctx.state.s:%s; r.value = ctx.state.s:delete("api") and 1 or 0`, stateWrite(kind)),
		"push":    `ctx.state.s:push(r.value); r.value = ctx.state.s:size()`,
		"pop":     `ctx.state.s:push(r.value); r.value = ctx.state.s:pop() + 1`,
		"peek":    `ctx.state.s:push(r.value); r.value = ctx.state.s:peek() + ctx.state.s:size()`,
		"size":    fmt.Sprintf(`ctx.state.s:%s; r.value = ctx.state.s:size()`, stateWrite(kind)),
		"full":    fmt.Sprintf(`ctx.state.s:%s; r.value = ctx.state.s:full() and 1 or 0`, stateWrite(kind)),
		"clear":   fmt.Sprintf(`ctx.state.s:%s; ctx.state.s:clear(); r.value = ctx.state.s:size()`, stateWrite(kind)),
		"entries": fmt.Sprintf("ctx.state.s:%s\n      for k, v in pairs(ctx.state.s:entries()) do r.labels.entry = tostring(k) .. \"=\" .. tostring(v) end", stateWrite(kind)),
	}[method]
	js := map[string]string{
		"add":     `r.value = ctx.state.s.add(r.labels.job ?? "", r.value);`,
		"get":     `ctx.state.s.set("api", r.value); r.value = ctx.state.s.get("api") + 1;`,
		"set":     `ctx.state.s.set("api", r.value); r.value = ctx.state.s.get("api") ?? 0;`,
		"update":  `r.value = ctx.state.s.update("api", (old) => (old ?? 0) + r.value);`,
		"has":     fmt.Sprintf(`ctx.state.s.%s; r.value = ctx.state.s.has("api") ? 1 : 0;`, stateWrite(kind)),
		"delete":  fmt.Sprintf(`ctx.state.s.%s; r.value = ctx.state.s.delete("api") ? 1 : 0;`, stateWrite(kind)),
		"push":    `ctx.state.s.push(r.value); r.value = ctx.state.s.size();`,
		"pop":     `ctx.state.s.push(r.value); r.value = ctx.state.s.pop() + 1;`,
		"peek":    `ctx.state.s.push(r.value); r.value = ctx.state.s.peek() + ctx.state.s.size();`,
		"size":    fmt.Sprintf(`ctx.state.s.%s; r.value = ctx.state.s.size();`, stateWrite(kind)),
		"full":    fmt.Sprintf(`ctx.state.s.%s; r.value = ctx.state.s.full() ? 1 : 0;`, stateWrite(kind)),
		"clear":   fmt.Sprintf(`ctx.state.s.%s; ctx.state.s.clear(); r.value = ctx.state.s.size();`, stateWrite(kind)),
		"entries": fmt.Sprintf("ctx.state.s.%s;\n      for (const [k, v] of Object.entries(ctx.state.s.entries())) r.labels.entry = k + \"=\" + v;", stateWrite(kind)),
	}[method]
	want := map[string]string{
		"add": "7", "get": "8", "set": "7", "update": "7", "has": "1", "delete": "1",
		"push": "1", "pop": "8", "peek": "8", "size": "1", "full": "0", "clear": "0", "entries": "7",
	}[method]
	entry := ""
	switch {
	case method == "add" && kind == state.Set:
		body, want = `if ctx.state.s:add(r.labels.job) == false then r:drop() end -- all but the first; nil: it is full`, "7"
	case method == "entries":
		entry = `entry="` + map[state.Kind]string{
			state.Counter: "api=7", state.Map: "api=7", state.LRU: "api=7", state.Set: "api", state.Queue: "7"}[kind] + `",`
		if kind == state.Set || kind == state.Queue {
			body = fmt.Sprintf("ctx.state.s:%s\n      for _, v in ipairs(ctx.state.s:entries()) do r.labels.entry = tostring(v) end", stateWrite(kind))
			js = fmt.Sprintf("ctx.state.s.%s;\n      for (const v of ctx.state.s.entries()) r.labels.entry = String(v);", stateWrite(kind))
		}
	}
	if method == "add" && kind == state.Set {
		js = `if (!ctx.state.s.add(r.labels.job ?? "")) r.drop(); // all but the first; an error: it is full`
	}
	return []scripting.Use{{
		JS: fmt.Sprintf(`import { defineTransform, state } from "weir";

export default defineTransform({
  state: { s: state.%s({ max: 1000, ttl: "1h" }) },

  metrics(batch, ctx) {
    batch.each((r) => {
      %s
    });
  },
});`, kind, js),
		Lua: fmt.Sprintf(`local weir = require "weir"

return weir.transform {
  state = { s = weir.state.%s { max = 1000, ttl = "1h" } },

  metrics = function(batch, ctx)
    batch:each(function(r)
      %s
    end)
  end,
}`, kind, body),
		Input:  "jobs{job=\"api\"} 7\n",
		Output: fmt.Sprintf("jobs{%sjob=\"api\"} %s\n", entry, want),
	}}
}

// stateWrite returns a call that writes an entry.
func stateWrite(kind state.Kind) string {
	switch kind {
	case state.Set:
		return `add("api")`
	case state.Queue:
		return `push(r.value)`
	}
	return `set("api", r.value)`
}
