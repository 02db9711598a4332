package host

import "github.com/weir-run/weir/scripting"

// exportFunc implements ctx.export.
func exportFunc(h *Binding) scripting.Function {
	return scripting.Function{
		Name: "export",
		Doc: "Sets values that the definition declares in exports and that other blocks of the config refer to. Values that are not passed stay unchanged. " +
			"Once all values are set, weir evaluates the blocks that refer to a value whenever that value changes.",
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

// flushFunc implements ctx.flush.
func flushFunc(h *Binding) scripting.Function {
	return scripting.Function{
		Name:   "flush",
		Doc:    "Sends the records that the hook run has emitted so far, and waits until they are accepted. Every call that waits does this too.",
		Result: scripting.Result{Fails: true, Doc: "Nothing. It fails when the component stops; run should then return."},
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
				return nil, &scripting.ArgError{Func: "flush", Msg: "only the hook run can use it; records emitted by other hooks are sent when the hook returns"}
			}
			return nil, flush()
		},
	}
}
