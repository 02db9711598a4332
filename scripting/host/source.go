package host

import "github.com/weir-run/weir/scripting"

// exportFunc is ctx.export.
func exportFunc(h *Binding) scripting.Function {
	return scripting.Function{
		Name: "export",
		Doc: "Gives values of what the definition's exports declare, which other blocks of the config refer to. What is not given stays as it is; " +
			"when there is a value for each, blocks that refer to one are evaluated, if it is another than before.",
		Params: []scripting.Param{{Name: "values", Kind: scripting.KindMap, Doc: "Values by name."}},
		Uses: []scripting.Use{{
			Lua: `local weir = require "weir"
return weir.source {
  interval = "1m",
  exports = { targets = weir.arg.targets { doc = "What was found." } },
  poll = function(ctx)
    ctx.export { targets = { { __address__ = "localhost:9100", job = "node" } } }
  end,
}`,
			JS: `import { arg, defineSource } from "weir";

export default defineSource({
  interval: "1m",
  exports: { targets: arg.targets({ doc: "What was found." }) },
  poll(ctx) {
    ctx.export({ targets: [{ __address__: "localhost:9100", job: "node" }] });
  },
});`,
			Test:   `assert.equals("", t:advance("1m"):text())`,
			TestJS: `expect(t.advance("1m").text()).toBe("");`,
		}},
		Fn: func(args []scripting.Value) (scripting.Value, error) {
			if err := h.Export(args[0].(*scripting.Map)); err != nil {
				return nil, &scripting.ArgError{Func: "export", Param: "values", Msg: "is wrong: " + err.Error()}
			}
			return nil, nil
		},
	}
}

// flushFunc is ctx.flush.
func flushFunc(h *Binding) scripting.Function {
	return scripting.Function{
		Name:   "flush",
		Doc:    "Sends what the hook run has emitted until now, and waits until it is accepted. Whatever waits does that as well.",
		Result: scripting.Result{Fails: true, Doc: "Nothing; an error when the component stops, after which run should return."},
		Waits:  true,
		Uses: []scripting.Use{{
			Lua: `local weir = require "weir"
return weir.source {
  run = function(ctx)
    for i = 1, 3 do
      ctx.emit { name = "i", value = i }
      local _, err = ctx.flush()
      if err then return end
    end
  end,
}`,
			JS: `import { defineSource } from "weir";

export default defineSource({
  async run(ctx) {
    for (let i = 1; i <= 3; i++) {
      ctx.emit({ name: "i", value: i });
      await ctx.flush();
    }
  },
});`,
			Test:   `assert.same("i 1\ni 2\ni 3", t:advance(0))`,
			TestJS: `expect(t.advance(0)).toEqual("i 1\ni 2\ni 3");`,
		}},
		Fn: func([]scripting.Value) (scripting.Value, error) {
			flush := h.Call().Flush
			if flush == nil {
				return nil, &scripting.ArgError{Func: "flush", Msg: "it is for the hook run; what others emit is sent when they return"}
			}
			return nil, flush()
		},
	}
}
