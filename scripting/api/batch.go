package api

import (
	"github.com/weir-run/weir/engine/expr"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/operation"
)

// exprHelp refers to the description of expressions.
const exprHelp = "'weir help expr' describes expressions."

// batch defines the type of batch in the hook metrics: its operations, cheapest
// first.
func (t *Table) batch() {
	where := optional(expression("where", expr.Bool, "An expression that selects the records; nil selects all. "+exprHelp))
	label := text("name", "The name of the label.")
	fields := scripting.Param{
		Name: "fields", Kind: scripting.KindList, Of: &scripting.Param{Kind: scripting.KindString},
		Doc: "The fields to pass to fn: name, value, time, type, stale or the name of a label; at most 32.",
	}
	row := integerParam("i", "The number of the record, as returned by batch:rows.")

	t.Batch.Doc = "The records of one scrape of a target, or of one request. Records that the script does not change are forwarded unchanged. Operations are listed from cheapest to most expensive. The batch is valid only while its hook runs."
	t.Batch.Methods = []scripting.Function{
		{
			Name: "drop_where", Doc: "Drops the records for which the expression is true. Subexpressions that read only labels are evaluated once per series.",
			Params: []scripting.Param{expression("where", expr.Bool, "A Boolean expression. "+exprHelp)},
			Op:     does(operation.Lines, func(c *operation.Call) error { return c.Window.DropWhere(c.Text(0)) }),
			Uses: []scripting.Use{newUse(`batch:drop_where [[ name startsWith "go_" && labels.job != "api" ]]`,
				`batch.dropWhere('name startsWith "go_" && labels.job != "api"');`,
				"go_threads{job=\"api\"} 1\ngo_threads{job=\"web\"} 2\n", "go_threads{job=\"api\"} 1\n")},
		},
		{
			Name: "keep_where", Doc: "Drops the records for which the expression is false.",
			Params: []scripting.Param{expression("where", expr.Bool, "A Boolean expression. "+exprHelp)},
			Op:     does(operation.Lines, func(c *operation.Call) error { return c.Window.KeepWhere(c.Text(0)) }),
			Uses: []scripting.Use{newUse(`batch:keep_where [[ value > 10 ]]`,
				`batch.keepWhere("value > 10");`, "a 1\nb 11\n", "b 11\n")},
		},
		{
			Name: "set_label", Doc: "Sets a label on all records; nil removes it.",
			Params: []scripting.Param{label, labelValue("value", "The value.")},
			Op:     does(operation.Rows, func(c *operation.Call) error { return c.Window.SetLabelAll(c.Text(0), c.Text(1)) }),
			Uses: []scripting.Use{newUse(`batch:set_label("region", "eu")`,
				`batch.setLabel("region", "eu");`, "up 1\n", "up{region=\"eu\"} 1\n")},
		},
		{
			Name: "drop_label", Doc: "Removes a label from all records.",
			Params: []scripting.Param{label},
			Op:     does(operation.Rows, func(c *operation.Call) error { return c.Window.DropLabel(c.Text(0)) }),
			Uses: []scripting.Use{newUse(`batch:drop_label("pod")`,
				`batch.dropLabel("pod");`, "up{pod=\"a-1\"} 1\n", "up 1\n")},
		},
		{
			Name: "keep_labels", Doc: "Removes all labels except the named ones from all records. le and quantile are labels too: name them if the batch contains histograms or summaries.",
			Params: []scripting.Param{{
				Name: "labels", Kind: scripting.KindList, Of: &scripting.Param{Kind: scripting.KindString}, Doc: "The names of the labels to keep; at most 32.",
			}},
			Op: does(operation.Rows, func(c *operation.Call) error { return c.Window.KeepLabels(c.Names(0)) }),
			Uses: []scripting.Use{newUse(`batch:keep_labels { "job", "le" }`,
				`batch.keepLabels(["job", "le"]);`, "up{job=\"api\",pod=\"a-1\"} 1\n", "up{job=\"api\"} 1\n")},
		},
		{
			Name: "rename_label", Doc: "Renames a label of all records that have it.",
			Params: []scripting.Param{label, text("new", "The new name.")},
			Op:     does(operation.Rows, func(c *operation.Call) error { return c.Window.RenameLabel(c.Text(0), c.Text(1)) }),
			Uses: []scripting.Use{newUse(`batch:rename_label("svc", "service")`,
				`batch.renameLabel("svc", "service");`, "up{svc=\"a\"} 1\n", "up{service=\"a\"} 1\n")},
		},
		{
			Name: "scale", Doc: "Multiplies values by a factor. For a native histogram, it multiplies the counts and the sum.",
			Params: []scripting.Param{where, number("factor", "The factor.")},
			Op:     does(operation.Rows, func(c *operation.Call) error { return c.Metrics.Scale(c.Text(0), c.Number(1)) }),
			Uses: []scripting.Use{newUse(`batch:scale([[ name endsWith "_ms" ]], 0.001)`,
				`batch.scale('name endsWith "_ms"', 0.001);`, "a_ms 1500\nb 2\n", "a_ms 1.5\nb 2\n")},
		},
		{
			Name: "set_value", Doc: "Sets values to the result of an expression.",
			Params: []scripting.Param{where, expression("value", expr.Number, "An expression that returns the value, a number. "+exprHelp)},
			Op:     does(operation.Rows, func(c *operation.Call) error { return c.Metrics.SetValueWhere(c.Text(0), c.Text(1)) }),
			Uses: []scripting.Use{newUse(`batch:set_value([[ value < 0 ]], "0")`,
				`batch.setValue("value < 0", "0");`, "a -1\nb 2\n", "a 0\nb 2\n")},
		},
		{
			Name: "map_label", Doc: "Replaces the value of a label with the result of fn. fn is called once per distinct value and its result is cached, so the result must depend on that value only. nil leaves the label unchanged; an empty string removes it.",
			Params: []scripting.Param{label, callback("fn", "The function.",
				scripting.Result{Kind: scripting.KindString, Optional: true}, text("value", "The label's value."))},
			Op: does(operation.Rows, operation.MapLabel),
			Uses: []scripting.Use{newUse(`batch:map_label("path", function(p) return (p:gsub("/%d+", "/:id")) end)`,
				`batch.mapLabel("path", (p) => p.replace(/\/\d+/g, "/:id"));`,
				"hits{path=\"/users/42\"} 1\n", "hits{path=\"/users/:id\"} 1\n")},
		},
		{
			Name: "map_value", Doc: "Replaces values with the result of fn; nil leaves a value unchanged. Stale records and native histograms are skipped.",
			Params: []scripting.Param{callback("fn", "The function.",
				scripting.Result{Kind: scripting.KindNumber, Optional: true}, number("value", "The value."))},
			Op: does(operation.Free, operation.MapValue),
			Uses: []scripting.Use{newUse(`batch:map_value(function(v) return math.floor(v) end)`,
				`batch.mapValue((v) => Math.floor(v));`, "a 1.5\n", "a 1\n")},
		},
		{
			Name: "filter", Doc: "Keeps the records for which fn returns true and drops those for which it returns false. Only the named fields are passed to the script.",
			Params: []scripting.Param{fields, callback("fn", "The function; it receives the fields in the given order.",
				scripting.Result{Kind: scripting.KindBool}, rest(scripting.KindAny))},
			Op: does(operation.Free, operation.Filter),
			Uses: []scripting.Use{newUse("batch:filter({ \"job\", \"value\" }, function(job, v)\n  return job == \"api\" or v > 10\nend)",
				`batch.filter(["job", "value"], (job, v) => job === "api" || v > 10);`,
				"a{job=\"api\"} 1\na{job=\"web\"} 2\na{job=\"db\"} 20\n", "a{job=\"api\"} 1\na{job=\"db\"} 20\n")},
		},
		{
			Name: "rows", Doc: "Returns an iterator over the record numbers and the named fields, for use with batch:set and batch:drop.",
			Params: []scripting.Param{{Name: "field", Kind: scripting.KindString, Rest: true, Doc: "The fields to read: name, value, time, type, stale or the name of a label; at most 32."}},
			Result: scripting.Result{Kind: scripting.KindSequence, Doc: "The iterator.", Yields: []scripting.Param{integerParam("i", "The number."), rest(scripting.KindAny)}},
			Op:     does(operation.Free, operation.ListRows),
			Uses: []scripting.Use{newUse("for i, job, v in batch:rows(\"job\", \"value\") do\n  if job == \"web\" then batch:set(i, \"value\", v * 2) end\nend",
				"for (const [i, job, v] of batch.rows(\"job\", \"value\")) {\n  if (job === \"web\") batch.set(i, \"value\", v * 2);\n}",
				"a{job=\"api\"} 1\na{job=\"web\"} 2\n", "a{job=\"api\"} 1\na{job=\"web\"} 4\n")},
		},
		{
			Name: "set", Doc: "Sets a field of the record with a given number: name, value, time, stale or the name of a label. Use labels.NAME for a label that has the same name as a field.",
			Params: []scripting.Param{row,
				{Name: "field", Kind: scripting.KindString, Doc: "The field, or a table of fields and values.", Or: []scripting.Param{{Kind: scripting.KindMap}}},
				{Name: "value", Kind: scripting.KindAny, Doc: "The value; nil removes a label."}},
			Op: results(operation.Free, operation.SetValues),
			Uses: []scripting.Use{newUse("for i, v in batch:rows(\"value\") do\n  batch:set(i, { value = v + 1, level = \"high\" })\nend",
				"for (const [i, v] of batch.rows(\"value\")) {\n  batch.set(i, { value: v + 1, level: \"high\" });\n}", "a 1\n", "a{level=\"high\"} 2\n")},
		},
		{
			Name: "drop", Doc: "Drops the record with a given number.",
			Params: []scripting.Param{row},
			Op:     does(operation.Free, dropRow),
			Uses: []scripting.Use{newUse("for i, v in batch:rows(\"value\") do\n  if v == 0 then batch:drop(i) end\nend",
				"for (const [i, v] of batch.rows(\"value\")) {\n  if (v === 0) batch.drop(i);\n}", "a 0\nb 1\n", "b 1\n")},
		},
		{
			Name: "each", Doc: "Calls fn for each record. If fn fails, its changes to that record are undone and script.on_error decides what happens to the record; the remaining records are still processed.",
			Params: []scripting.Param{callback("fn", "The function.", scripting.Result{}, object("record", t.Record, "The record."))},
			Op:     results(operation.Free, operation.EachRecord),
			Uses: []scripting.Use{newUse("batch:each(function(r)\n  if r.name == \"request_ms\" then\n    r.name  = \"request_seconds\"\n    r.value = r.value / 1000\n  end\nend)",
				"batch.each((r) => {\n  if (r.name === \"request_ms\") {\n    r.name = \"request_seconds\";\n    r.value = r.value / 1000;\n  }\n});",
				"request_ms 1500\n", "request_seconds 1.5\n")},
		},
		{
			Name: "records", Doc: "Returns an iterator over the records. An error in the loop affects the whole batch; use each to limit it to one record.",
			Result: scripting.Result{Kind: scripting.KindSequence, Doc: "The iterator.", Yields: []scripting.Param{object("record", t.Record, "The record.")}},
			Op:     results(operation.Free, operation.RecordList),
			Uses: []scripting.Use{newUse("for r in batch:records() do r.labels.n = r.value end",
				`for (const r of batch.records()) r.labels.n = String(r.value);`, "a 1\n", "a{n=\"1\"} 1\n")},
		},
		groupBy(operation.Free, fields, t.Group, newUse("for group, name in batch:group_by { \"name\" } do\n  group[1].labels.of = #group\nend",
			"for (const [group, name] of batch.groupBy([\"name\"])) {\n  group[0].labels.of = String(group.length);\n}",
			"a{x=\"1\"} 1\na{x=\"2\"} 1\n", "a{of=\"2\",x=\"1\"} 1\na{x=\"2\"} 1\n")),
		{
			Name: "text", Doc: "Returns the batch as text, in the format of a scrape.",
			Result: scripting.Result{Kind: scripting.KindString, Doc: "The text."},
			Op:     does(operation.BatchText, metricsText),
			Uses: []scripting.Use{{
				Lua:    `ctx.log.info(batch:text())`,
				JS:     `ctx.log.info(batch.text());`,
				Test:   `t:metrics [[ up{job="api"} 1 ]]; assert.matches('up{job="api"} 1', t:logged()[1])`,
				TestJS: "t.metrics('up{job=\"api\"} 1');\nexpect(t.logged()[0]).toContain('up{job=\"api\"} 1');",
			}},
		},
	}
	t.Batch.Len = func(any) int { panic("BUG: a batch of the table has no records") }
	t.Batch.Index = func(any, int) scripting.Value { panic("BUG: a batch of the table has no records") }
	t.Batch.Element = t.Record
}

// rest returns a parameter for any number of values.
func rest(k scripting.Kind) scripting.Param { return scripting.Param{Name: "…", Kind: k, Rest: true} }

// does returns an operation with its cost.
func does(cost operation.Cost, run func(c *operation.Call) error) *operation.Operation {
	return &operation.Operation{Cost: cost, Run: run}
}

// results returns an operation that is fully described by its result.
func results(cost operation.Cost, r operation.Result) *operation.Operation {
	return &operation.Operation{Cost: cost, Result: r}
}

func metricsText(c *operation.Call) error {
	c.Result, c.String = operation.IsString, string(c.Metrics.Text())
	return nil
}

// dropRow drops the record with the number in argument 0.
func dropRow(c *operation.Call) error {
	c.Window.Drop(c.Row(0))
	return nil
}
