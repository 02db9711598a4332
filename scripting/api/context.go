package api

import (
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/host"
)

// context is ctx. Functions that the component binds are those of
// scripting.Host.Context; here are those that the language binds, as they
// handle records.
func (t *Table) context() {
	t.Arguments.Doc = "The arguments of the block, as args of the definition declares them."
	args := object("args", t.Arguments, t.Arguments.Doc)

	t.Context.Doc = "What a hook has beside its data."
	t.Context.Fields = []scripting.Param{args, object("log", t.Log, "Writes to weir's log.")}
	t.Context.Methods = []scripting.Function{
		{
			Name: "emit", Doc: "Sends a record more: a copy of one, or a table. A series that is emitted ends when a record of it is emitted with stale set: a copy of a stale record is one.",
			Params: []scripting.Param{{Name: "record", Kind: scripting.KindMap, Fields: t.Emitted(), Doc: "The record.",
				Or: t.emitted(object("", t.Copy, ""), object("", t.Record, ""))}},
			Uses: []scripting.Use{newUse(`ctx.emit { name = "records", labels = { job = "weir" }, value = #batch }`,
				`ctx.emit({ name: "records", labels: { job: "weir" }, value: batch.length });`, "a 1\nb 1\n", "a 1\nb 1\nrecords{job=\"weir\"} 2\n")},
		},
	}
	t.Context.Methods = append(t.Context.Methods, scripting.Function{
		Name: "route", Doc: "Sends a record of the batch to an output instead of forward_to, as it is when the hook returns; what is said of a record last holds. A copy or a table is sent there beside what is in the batch. The marker that ends a series goes wherever its records went.",
		Params: []scripting.Param{
			text("output", "The name of an output, one of outputs of the definition."),
			{Name: "record", Kind: scripting.KindMap, Fields: t.Emitted(), Doc: "The record, or its number as rows gives it.",
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

	t.Remembered.Doc = "ctx of the hooks whose answer is remembered: it has what cannot change the answer later."
	t.Remembered.Fields = []scripting.Param{args}

	t.Log.Doc = "Writes a line to weir's log, with the component and the line of the script. Lines beyond 100 a second are counted and left out."
	for _, level := range []string{"debug", "info", "warn", "error"} {
		t.Log.Methods = append(t.Log.Methods, scripting.Function{
			Name: level, Doc: "Logs at level " + level + ".",
			Params: []scripting.Param{text("message", "The message."), {Name: "fields", Kind: scripting.KindMap, Optional: true, Doc: "Names and values that go with it."}},
			Uses: []scripting.Use{{
				Lua:    `ctx.log.` + level + `("seen", { records = #batch })`,
				JS:     `ctx.log.` + level + `("seen", { records: batch.length });`,
				Test:   `t:metrics("a 1"); assert.matches("seen", t:logged()[1])`,
				TestJS: "t.metrics(\"a 1\");\nexpect(t.logged()[0]).toContain(\"seen\");",
			}},
		})
	}
}

// Emitted are the keys of a table that is given to ctx.emit.
func (t *Table) Emitted() []scripting.Param {
	labels := scripting.Param{Name: "labels", Kind: scripting.KindMap, Optional: true, Doc: "Its labels."}
	value := labelValue("", "")
	labels.Of = &value
	labels.Or = []scripting.Param{object("", t.Labels, "")}
	return []scripting.Param{
		text("name", "The name of the metric."), optional(number("value", "The value; it may only be left out of a stale record.")),
		labels, optional(integerParam("time", "Unix ms; the time of the batch's first record when it is left out.")),
		optional(text("type", typeDoc)), optional(text("help", "The metric's help.")), optional(text("unit", "The metric's unit.")),
		optional(flag("stale", "Whether it is the marker that ends the series.")),
	}
}

// EmittedLine are the keys of a table that is given to ctx.emit as a log line.
func (t *Table) EmittedLine() []scripting.Param {
	texts := func(name, doc string, of *scripting.ObjectType) scripting.Param {
		value := labelValue("", "")
		return scripting.Param{Name: name, Kind: scripting.KindMap, Optional: true, Doc: doc, Of: &value, Or: []scripting.Param{object("", of, "")}}
	}
	return []scripting.Param{
		text("line", "The line."), texts("labels", "The labels of its stream.", t.Labels), texts("metadata", "Its structured metadata.", t.Metadata),
		optional(integerParam("time", "Unix ms; the time of the batch's first record when it is left out.")),
		optional(text("ts", "The time in Unix ns, as a text of digits.")),
	}
}

// emitted is what may be given to ctx.emit and ctx.route in place of a sample
// as a table.
func (t *Table) emitted(samples ...scripting.Param) []scripting.Param {
	line := scripting.Param{Kind: scripting.KindMap, Fields: t.EmittedLine()}
	return append(samples, line, object("", t.Line, ""), object("", t.LineCopy, ""))
}

// host adds what the component binds: functions, constants and parts.
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
