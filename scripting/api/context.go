package api

import (
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/host"
)

// context defines ctx. scripting.Host.Context contains the functions that the
// component binds. The functions here are bound by the language, because they
// handle records.
func (t *Table) context() {
	t.Arguments.Doc = "The arguments of the block, as declared by args in the definition."
	args := object("args", t.Arguments, t.Arguments.Doc)

	t.Context.Doc = "The context of a hook: arguments, state and the functions of the host."
	t.Context.Fields = []scripting.Param{args, object("log", t.Log, "Writes to weir's log.")}
	t.Context.Methods = []scripting.Function{
		{
			Name: "emit", Doc: "Emits an additional record: a copy of a record, or a table. To end an emitted series, emit a record of it with stale set, such as a copy of a stale record.",
			Params: []scripting.Param{{Name: "record", Kind: scripting.KindMap, Fields: t.Emitted(), Doc: "The record.",
				Or: t.emitted(object("", t.Copy, ""), object("", t.Record, ""))}},
			Uses: []scripting.Use{newUse(`ctx.emit { name = "records", labels = { job = "weir" }, value = #batch }`,
				`ctx.emit({ name: "records", labels: { job: "weir" }, value: batch.length });`, "a 1\nb 1\n", "a 1\nb 1\nrecords{job=\"weir\"} 2\n")},
		},
	}
	t.Context.Methods = append(t.Context.Methods, scripting.Function{
		Name: "route", Doc: "Sends a record of the batch to an output instead of forward_to, in the state it has when the hook returns. If ctx.route is called several times for a record, the last call applies. A copy or a table is sent to the output in addition to the batch. The staleness marker of a series is sent to every output that received its records.",
		Params: []scripting.Param{
			text("output", "The name of an output that the definition lists in outputs."),
			{Name: "record", Kind: scripting.KindMap, Fields: t.Emitted(), Doc: "The record, or its number as returned by rows.",
				Or: t.emitted(object("", t.Record, ""), object("", t.Copy, ""), integerParam("", ""))},
		},
		Uses: []scripting.Use{
			{
				Lua: `local weir = require "weir"` + "\n" + `return weir.transform { outputs = { "large" }, metrics = function(batch, ctx)` + "\n" + `for i, value in batch:rows("value") do if value > 10 then ctx.route("large", i) end end end }`,
				JS: `import { defineTransform } from "weir";

export default defineTransform({
  outputs: ["large"],
  metrics(batch, ctx) {
    for (const [i, value] of batch.rows("value")) if (value > 10) ctx.route("large", i);
  },
});`,
				Test: `local out = t:metrics("a 1\nb 20"); assert.equals("a 1\n", out:text()); assert.equals("b 20\n", out:routed("large"):text())`,
				TestJS: `const out = t.metrics("a 1\nb 20");
expect(out.text()).toBe("a 1\n");
expect(out.routed("large").text()).toBe("b 20\n");`,
			},
			{
				Lua: `local weir = require "weir"` + "\n" + `return weir.transform { outputs = { "errors" }, metrics = function(batch, ctx)` + "\n" + `batch:each(function(m) if m.value < 0 then ctx.route("errors", m) end end) end }`,
				JS: `import { defineTransform } from "weir";

export default defineTransform({
  outputs: ["errors"],
  metrics(batch, ctx) {
    batch.each((m) => { if (m.value < 0) ctx.route("errors", m); });
  },
});`,
				Test:   `assert.equals(-1, t:metrics("a -1"):routed("errors"):value("a"))`,
				TestJS: `expect(t.metrics("a -1").routed("errors").value("a")).toBe(-1);`,
			},
		},
	})
	t.host(t.Context, host.Context())

	t.Remembered.Doc = "The context of hooks whose result is cached. It contains only values that cannot change the result later."
	t.Remembered.Fields = []scripting.Param{args}

	t.Log.Doc = "Writes a line to weir's log, with the component and the line of the script. At most 100 lines a second are written; further lines are counted and dropped."
	for _, level := range []string{"debug", "info", "warn", "error"} {
		t.Log.Methods = append(t.Log.Methods, scripting.Function{
			Name: level, Doc: "Logs at level " + level + ".",
			Params: []scripting.Param{text("message", "The message."), {Name: "fields", Kind: scripting.KindMap, Optional: true, Doc: "Names and values to log with the message."}},
			Uses: []scripting.Use{{
				Lua:    `ctx.log.` + level + `("seen", { records = #batch })`,
				JS:     `ctx.log.` + level + `("seen", { records: batch.length });`,
				Test:   `t:metrics("a 1"); assert.matches("seen", t:logged()[1])`,
				TestJS: "t.metrics(\"a 1\");\nexpect(t.logged()[0]).toContain(\"seen\");",
			}},
		})
	}
}

// Emitted returns the keys of a table passed to ctx.emit.
func (t *Table) Emitted() []scripting.Param {
	labels := scripting.Param{Name: "labels", Kind: scripting.KindMap, Optional: true, Doc: "The labels."}
	value := labelValue("", "")
	labels.Of = &value
	labels.Or = []scripting.Param{object("", t.Labels, "")}
	return []scripting.Param{
		text("name", "The name of the metric."), optional(number("value", "The value; required unless the record is stale.")),
		labels, optional(integerParam("time", "The time in Unix milliseconds; by default the time of the first record of the batch.")),
		optional(text("type", typeDoc)), optional(text("help", "The metric's help.")), optional(text("unit", "The metric's unit.")),
		optional(flag("stale", "Whether the record is the staleness marker that ends the series.")),
	}
}

// EmittedLine returns the keys of a log line passed to ctx.emit as a table.
func (t *Table) EmittedLine() []scripting.Param {
	texts := func(name, doc string, of *scripting.ObjectType) scripting.Param {
		value := labelValue("", "")
		return scripting.Param{Name: name, Kind: scripting.KindMap, Optional: true, Doc: doc, Of: &value, Or: []scripting.Param{object("", of, "")}}
	}
	return []scripting.Param{
		text("line", "The line."), texts("labels", "The labels of the stream.", t.Labels), texts("metadata", "The structured metadata.", t.Metadata),
		optional(integerParam("time", "The time in Unix milliseconds; by default the time of the first record of the batch.")),
		optional(text("ts", "The time in Unix nanoseconds, as a string of digits.")),
	}
}

// emitted returns the alternatives to a table in ctx.emit and ctx.route.
func (t *Table) emitted(samples ...scripting.Param) []scripting.Param {
	line := scripting.Param{Kind: scripting.KindMap, Fields: t.EmittedLine()}
	return append(samples, line, object("", t.Line, ""), object("", t.LineCopy, ""))
}

// host adds everything that the component binds: functions, constants and
// parts.
func (t *Table) host(to *scripting.ObjectType, m *scripting.Module) {
	to.Methods = append(to.Methods, m.Funcs...)
	for _, c := range m.Consts {
		to.Fields = append(to.Fields, scripting.Param{Name: c.Name, Kind: scripting.KindAny, Doc: c.Doc})
	}
	for _, part := range m.Tables {
		typ := &scripting.ObjectType{Name: m.Name + "." + part.Name, Doc: part.Doc}
		whole := *part
		whole.Name = typ.Name
		t.host(typ, &whole)
		t.parts = append(t.parts, typ)
		to.Fields = append(to.Fields, object(part.Name, typ, part.Doc))
	}
	t.made = append(t.made, m.Types...)
}
