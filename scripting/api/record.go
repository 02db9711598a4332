package api

import "github.com/weir-run/weir/scripting"

const typeDoc = `The metric's type: "counter", "gauge", "histogram", "summary" and so on, "" when it is not known.`

// record is the type of a batch's records, and that of their copies.
func (t *Table) record() {
	stale := settable(flag("stale", "Whether it is the marker that ends a series. It has no value then, and what changes values leaves it alone."))
	name := settable(text("name", "The name of the metric."))
	labels := settable(object("labels", t.Labels, "The labels. Setting it to a table replaces all of them."))
	time := settable(whole("time", "Its time in Unix ms."))
	value := settable(number("value", "The value: NaN of a stale record, nil of a native histogram."))

	t.Record.Doc = "One sample of a batch. It ends with its hook; keep a copy() instead. What is not set goes on as it came, bit for bit."
	t.Record.Fields = []scripting.Param{
		name, text("type", typeDoc), value, labels, time, stale,
		text("help", "The metric's help."), text("unit", "The metric's unit."),
	}
	t.Record.Methods = []scripting.Function{
		{
			Name: "drop", Doc: "Drops the record.",
			Uses: []scripting.Use{use("batch:each(function(r)\n  if r.value < 0 then r:drop() end\nend)", "a -1\nb 1\n", "b 1\n")},
		},
		{
			Name: "copy", Doc: "Returns a copy, which may be kept, changed and emitted.",
			Result: scripting.Result{Kind: scripting.KindObject, Type: t.Copy, Doc: "The copy."},
			Uses: []scripting.Use{use(
				"local max\nfor r in batch:records() do\n  if not max or r.value > max.value then max = r:copy() end\nend\nmax.name = \"largest\"\nctx.emit(max)",
				"a 1\nb 2\n", "a 1\nb 2\nlargest 2\n")},
		},
	}

	t.Copy.Doc = "What copy() of a record returns: a record of the script's own, that may be kept. ctx.emit sends it."
	t.Copy.Fields = []scripting.Param{
		name, settable(text("type", typeDoc)), value, labels, time, stale,
		settable(text("help", "The metric's help.")), settable(text("unit", "The metric's unit.")),
	}
}
