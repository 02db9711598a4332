package api

import (
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/operation"
)

const typeDoc = `The metric's type: "counter", "gauge", "histogram", "summary" and so on, "" when it is not known.`

// record defines the type of a batch's records, and that of their copies.
func (t *Table) record() {
	stale := settable(flag("stale", "Whether the record is the staleness marker that ends a series. Such a record has no value, and operations that change values skip it."))
	name := settable(text("name", "The name of the metric."))
	labels := settable(object("labels", t.Labels, "The labels. Setting it to a table replaces all of them."))
	time := settable(integerParam("time", "The time in Unix milliseconds."))
	value := settable(number("value", "The value: NaN for a stale record, nil for a native histogram."))

	more := []scripting.Param{
		{Name: "histogram", Kind: scripting.KindMap, Doc: "The native histogram, read-only: count, sum, schema, zero_count, zero_threshold and buckets, a list of lower, upper and count. nil for any other record.",
			Fields: []scripting.Param{number("count", "The number of observations."), number("sum", "The sum of the observations."), integerParam("schema", "The schema."), number("zero_count", "The number of observations in the zero bucket."),
				number("zero_threshold", "The largest absolute value in the zero bucket."), {Name: "buckets", Kind: scripting.KindList, Of: &scripting.Param{Kind: scripting.KindMap, Fields: []scripting.Param{
					number("lower", "The lower bound."), number("upper", "The upper bound."), number("count", "The number of observations in the bucket.")}}, Doc: "The buckets that are not empty."}}},
		{Name: "exemplars", Kind: scripting.KindList, Doc: "The exemplars, read-only: tables of labels, value and time. nil if there are none.",
			Of: &scripting.Param{Kind: scripting.KindMap, Fields: []scripting.Param{{Name: "labels", Kind: scripting.KindMap, Of: &scripting.Param{Kind: scripting.KindString}, Doc: "The labels."},
				number("value", "The value."), optional(integerParam("time", "The time in Unix milliseconds."))}}},
	}
	t.Record.Doc = "One sample of a batch. It is valid only while its hook runs; keep a copy() instead. Fields that the script does not set are forwarded unchanged, bit for bit."
	t.Record.Fields = []scripting.Param{
		name, text("type", typeDoc), value, labels, time, stale,
		text("help", "The metric's help."), text("unit", "The metric's unit."),
	}
	t.Record.Fields = append(t.Record.Fields, more...)
	t.Record.Methods = []scripting.Function{
		{
			Name: "drop", Doc: "Drops the record.",
			Op: does(operation.Free, dropRecord),
			Uses: []scripting.Use{newUse("local last\nbatch:each(function(r)\n  if r.value == last then r:drop() end\n  last = r.value\nend)",
				"let last = NaN;\nbatch.each((r) => {\n  if (r.value === last) r.drop();\n  last = r.value;\n});", "a 1\nb 1\nc 2\n", "a 1\nc 2\n")},
		},
		{
			Name: "copy", Doc: "Returns a copy that the script may keep, change and emit.",
			Result: scripting.Result{Kind: scripting.KindObject, Type: t.Copy, Doc: "The copy."},
			Op:     does(operation.Record, copyRecord),
			Uses: []scripting.Use{newUse(
				"local max\nfor r in batch:records() do\n  if not max or r.value > max.value then max = r:copy() end\nend\nmax.name = \"largest\"\nctx.emit(max)",
				"let max = batch[0].copy();\nfor (const r of batch) if (r.value > max.value) max = r.copy();\nmax.name = \"largest\";\nctx.emit(max);",
				"a 1\nb 2\n", "a 1\nb 2\nlargest 2\n")},
		},
	}

	t.Copy.Doc = "The result of copy() of a record. The script owns it and may keep it. ctx.emit sends it."
	t.Copy.Fields = []scripting.Param{
		name, settable(text("type", typeDoc)), value, labels, time, stale,
		settable(text("help", "The metric's help.")), settable(text("unit", "The metric's unit.")),
	}
	t.Copy.Fields = append(t.Copy.Fields, more...)
}

// dropRecord drops the record.
func dropRecord(c *operation.Call) error {
	c.Window.Drop(c.Record)
	return nil
}

func copyRecord(c *operation.Call) error {
	c.Result, c.Sample = operation.SampleCopy, c.Metrics.Copy(c.Record)
	return nil
}
