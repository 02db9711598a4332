package api

import (
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/state"
)

// stateDocs describe the kinds of state.
var stateDocs = map[state.Kind]string{
	state.Counter: "Numbers by key, for counting.",
	state.Map:     "Values by key.",
	state.Set:     "A set of keys, such as those already seen.",
	state.LRU:     "Values by key, with least-recently-used eviction when it is full: a cache.",
	state.Queue:   "Values in the order in which they were added.",
}

// state defines weir.state.
func (t *Table) state() *scripting.Module {
	m := &scripting.Module{Name: "state", Doc: "Kinds of state, for the key state of a definition. All kinds have a size limit."}
	for _, kind := range scripting.StateKinds {
		options := scripting.Param{Name: "options", Kind: scripting.KindMap, Optional: true, Doc: "Options."}
		for _, o := range scripting.StateOptions {
			if kind != state.LRU || o.Name != "on_full" {
				options.Fields = append(options.Fields, o)
			}
		}
		m.Funcs = append(m.Funcs, scripting.Function{
			Name: string(kind), Doc: stateDocs[kind], Params: []scripting.Param{options},
			Result: scripting.Result{Kind: scripting.KindObject, Type: t.State, Doc: "The declaration."},
			Uses: []scripting.Use{{
				Lua: "local weir = require \"weir\"\n\nreturn weir.transform {\n  state = { x = weir.state." + string(kind) + " { max = 1000, ttl = \"1h\" } },\n" +
					"  metrics = function(batch, ctx) batch:map_value(function() return ctx.state.x:size() end) end,\n}",
				JS: "import { defineTransform, state } from \"weir\";\n\nexport default defineTransform({\n  state: { x: state." + string(kind) + "({ max: 1000, ttl: \"1h\" }) },\n" +
					"  metrics(batch, ctx) { batch.mapValue(() => ctx.state.x.size()); },\n});",
				Input: "up 1\n", Output: "up 0\n",
			}},
		})
	}
	return m
}
