package api

import (
	"strings"

	"github.com/weir-run/weir/engine/expr"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/operation"
)

// logs defines the types for the hooks logs and stream.
func (t *Table) logs() {
	t.line()
	t.groups()
	t.Metadata.Doc = "The structured metadata of a line. Read, set and iterate over it like labels."
	t.Stream.Doc = "A stream in the hook stream. It has labels but no line, because the result is cached for the stream. It is valid only while its hook runs."
	t.Stream.Fields = []scripting.Param{settable(object("labels", t.Labels, "The labels. Setting it to a table replaces all of them."))}
	t.Stream.Methods = []scripting.Function{{
		Name: "drop", Doc: "Drops the stream with all its lines.",
		Op: does(operation.Free, dropSeries),
		Uses: []scripting.Use{{
			Hook: "stream", Lua: `if s.labels.env == "dev" then return s:drop() end`, JS: `if (s.labels.env === "dev") s.drop();`,
			Input: "{env=\"dev\"} one\n{env=\"prod\"} two\n", Output: "{env=\"prod\"} two\n",
		}},
	}}
	t.logBatch()
}

// logUse returns an example with one batch of log lines.
func logUse(lua, js, input, output string) scripting.Use {
	return scripting.Use{Hook: "logs", Lua: lua, JS: js, Input: input, Output: output}
}

// line defines the type of a batch's log records, and that of their copies.
func (t *Table) line() {
	fields := []scripting.Param{
		settable(text("line", "The line; it may contain any bytes.")),
		settable(object("labels", t.Labels, "The labels of the stream. Setting it to a table replaces all of them.")),
		settable(object("metadata", t.Metadata, "The structured metadata. Setting it to a table replaces all of it.")),
		settable(integerParam("time", "The time in Unix milliseconds. Setting it to the millisecond that contains the time changes nothing.")),
		settable(text("ts", "The time in Unix nanoseconds, as a string of digits because a number cannot hold it.")),
	}
	t.Line.Doc = "One line of a batch. It is valid only while its hook runs; keep a copy() instead. Fields that the script does not set are forwarded unchanged, with nanosecond precision."
	t.Line.Fields = fields
	t.Line.Methods = []scripting.Function{
		{
			Name: "json", Doc: "Returns the value at a path in the line, parsed as JSON. A path contains names and list indexes, separated by dots. The result is nil for null or a missing value, JSON text for an object or a list, and a string for a number that Lua would round.",
			Params: []scripting.Param{text("path", `The path, such as "user.id".`)},
			Result: scripting.Result{Kind: scripting.KindAny, Doc: "The value."},
			Op:     does(operation.Line, lineJSON),
			Uses: []scripting.Use{logUse("batch:each(function(r)\n  r.labels.user = r:json(\"user.id\")\nend)",
				"batch.each((r) => {\n  r.labels.user = String(r.json(\"user.id\"));\n});",
				"{app=\"a\"} {\"user\":{\"id\":7}}\n", "{app=\"a\",user=\"7\"} {\"user\":{\"id\":7}}\n")},
		},
		{
			Name: "contains", Doc: "Reports whether the line contains a string.",
			Params: []scripting.Param{text("s", "The string.")},
			Result: scripting.Result{Kind: scripting.KindBool, Doc: "Whether the line contains it."},
			Op:     does(operation.Line, lineContains),
			Uses: []scripting.Use{logUse("batch:each(function(r)\n  if r:contains(\"GET /health\") then r.labels.kind = \"health\" end\nend)",
				"batch.each((r) => {\n  if (r.contains(\"GET /health\")) r.labels.kind = \"health\";\n});",
				"{app=\"a\"} GET /health 200\n{app=\"a\"} GET / 200\n", "{app=\"a\",kind=\"health\"} GET /health 200\n{app=\"a\"} GET / 200\n")},
		},
		{
			Name: "match", Doc: "Returns the groups of the first match of a regular expression (RE2), the whole match if the expression has no groups, or nil if the line does not match.",
			Params: []scripting.Param{pattern()},
			Result: scripting.Result{Kind: scripting.KindString, Optional: true, Doc: "The groups, as separate results."},
			Op:     results(operation.Free, operation.IsMatch),
			Uses: []scripting.Use{logUse("batch:each(function(r)\n  local method, status = r:match [[^(\\w+) \\S+ (\\d+)$]]\n  r.labels.method, r.labels.status = method, status\nend)",
				"batch.each((r) => {\n  const found = r.match(\"^(\\\\w+) \\\\S+ (\\\\d+)$\");\n  if (found) [r.labels.method, r.labels.status] = found;\n});",
				"{app=\"a\"} GET / 200\n", "{app=\"a\",method=\"GET\",status=\"200\"} GET / 200\n")},
		},
		{
			Name: "drop", Doc: "Drops the record.",
			Op: does(operation.Free, dropRecord),
			Uses: []scripting.Use{logUse("local last\nbatch:each(function(r)\n  if r.line == last then r:drop() end\n  last = r.line\nend)",
				"let last = \"\";\nbatch.each((r) => {\n  if (r.line === last) r.drop();\n  last = r.line;\n});", "{app=\"a\"} x\n{app=\"a\"} x\n{app=\"a\"} y\n", "{app=\"a\"} x\n{app=\"a\"} y\n")},
		},
		{
			Name: "copy", Doc: "Returns a copy that the script may keep, change and emit.",
			Result: scripting.Result{Kind: scripting.KindObject, Type: t.LineCopy, Doc: "The copy."},
			Op:     does(operation.OwnLine, copyLine),
			Uses: []scripting.Use{logUse("batch:each(function(r)\n  if r:contains(\"panic\") then\n    local alert = r:copy()\n    alert.labels.kind = \"alert\"\n    ctx.emit(alert)\n  end\nend)",
				"batch.each((r) => {\n  if (r.contains(\"panic\")) {\n    const alert = r.copy();\n    alert.labels.kind = \"alert\";\n    ctx.emit(alert);\n  }\n});",
				"{app=\"a\"} panic: oops\n", "{app=\"a\"} panic: oops\n{app=\"a\",kind=\"alert\"} panic: oops\n")},
		},
	}
	t.LineCopy.Doc = "The result of copy() of a log record. The script owns it and may keep it. ctx.emit sends it."
	t.LineCopy.Fields = fields
}

// groups defines the types of the results of group_by.
func (t *Table) groups() {
	for _, g := range []struct {
		typ, of *scripting.ObjectType
		records scripting.Use
		drop    scripting.Use
	}{
		{
			t.Group, t.Record,
			newUse("for group, job in batch:group_by { \"job\" } do\n  local sum = 0\n  for r in group:records() do sum = sum + r.value end\n  ctx.emit { name = \"sum\", labels = { job = job }, value = sum }\nend",
				"for (const [group, job] of batch.groupBy([\"job\"])) {\n  let sum = 0;\n  for (const r of group.records()) sum += r.value;\n  ctx.emit({ name: \"sum\", labels: { job }, value: sum });\n}",
				"a{job=\"x\"} 1\nb{job=\"x\"} 2\n", "a{job=\"x\"} 1\nb{job=\"x\"} 2\nsum{job=\"x\"} 3\n"),
			newUse("for group in batch:group_by { \"job\" } do\n  if #group > 1 then group:drop() end\nend",
				"for (const [group] of batch.groupBy([\"job\"])) {\n  if (group.length > 1) group.drop();\n}", "a{job=\"x\"} 1\nb{job=\"x\"} 2\nc{job=\"y\"} 3\n", "c{job=\"y\"} 3\n"),
		},
		{
			t.LineGroup, t.Line,
			logUse("for group, trace in batch:group_by { \"meta.trace\" } do\n  for r in group:records() do r.labels.n = #group end\nend",
				"for (const [group, trace] of batch.groupBy([\"meta.trace\"])) {\n  for (const r of group.records()) r.labels.n = String(group.length);\n}",
				"{app=\"a\"} {trace=\"t\"} one\n{app=\"a\"} {trace=\"t\"} two\n", "{app=\"a\",n=\"2\"} {trace=\"t\"} one\n{app=\"a\",n=\"2\"} {trace=\"t\"} two\n"),
			logUse("for group in batch:group_by { \"line\" } do\n  if #group > 2 then group:drop() end\nend",
				"for (const [group] of batch.groupBy([\"line\"])) {\n  if (group.length > 2) group.drop();\n}", "{} x\n{} x\n{} x\n{} y\n", "{} y\n"),
		},
	} {
		g.typ.Doc = "The records of a batch that have the same values of the fields passed to group_by, in their original order. #group is their original number and group[i] is one of them. The group is valid only while its hook runs."
		g.typ.Methods = []scripting.Function{
			{
				Name: "records", Doc: "Returns an iterator over the remaining records.",
				Result: scripting.Result{Kind: scripting.KindSequence, Doc: "The iterator.", Yields: []scripting.Param{object("record", g.of, "The record.")}},
				Op:     results(operation.Free, operation.RecordList),
				Uses:   []scripting.Use{g.records},
			},
			{Name: "drop", Doc: "Drops all records of the group.", Op: does(operation.Free, operation.DropGroup), Uses: []scripting.Use{g.drop}},
		}
		g.typ.Len = func(any) int { panic("BUG: a group of the table has no records") }
		g.typ.Index = func(any, int) scripting.Value { panic("BUG: a group of the table has no records") }
		g.typ.Element = g.of
	}
}

// groupBy defines group_by of a batch.
func groupBy(cost operation.Cost, fields scripting.Param, of *scripting.ObjectType, example scripting.Use) scripting.Function {
	return scripting.Function{
		Name: "group_by", Doc: "Returns an iterator over groups of records that have the same values of some fields, and these values.",
		Params: []scripting.Param{fields},
		Result: scripting.Result{Kind: scripting.KindSequence, Doc: "The iterator.", Yields: []scripting.Param{object("group", of, "The group."), rest(scripting.KindAny)}},
		Op:     does(cost, operation.ListGroups),
		Uses:   []scripting.Use{example},
	}
}

func pattern() scripting.Param {
	p := text("pattern", "The regular expression, or the result of re.compile.")
	p.Or = []scripting.Param{{Kind: scripting.KindObject}}
	return p
}

// logBatch defines the type of batch in the hook logs: its operations, cheapest
// first.
func (t *Table) logBatch() {
	const fieldDoc = "line, time, ts, labels.app or app, meta.trace_id, json.user.id, logfmt.level"
	where := expression("where", expr.Bool, "A Boolean expression over line, labels, meta, time and args. "+exprHelp)
	fields := scripting.Param{
		Name: "fields", Kind: scripting.KindList, Of: &scripting.Param{Kind: scripting.KindString}, Doc: "The fields to pass to fn: " + fieldDoc + "; at most 32.",
	}
	paths := func(doc string) scripting.Param {
		p := fields
		p.Doc = doc
		return p
	}
	answer := scripting.Result{Kind: scripting.KindBool, Optional: true, Doc: "false drops the record."}
	t.Logs.Doc = "A batch of log lines. Records that the script does not change are forwarded unchanged. Operations are listed from cheapest to most expensive. The batch is valid only while its hook runs."
	shared := map[string]scripting.Use{
		"drop_label": logUse(`batch:drop_label("pod")`,
			`batch.dropLabel("pod");`, "{app=\"a\",pod=\"a-1\"} x\n", "{app=\"a\"} x\n"),
		"keep_labels": logUse(`batch:keep_labels { "app", "env" }`,
			`batch.keepLabels(["app", "env"]);`, "{app=\"a\",pod=\"a-1\"} x\n", "{app=\"a\"} x\n"),
		"rename_label": logUse(`batch:rename_label("svc", "service")`,
			`batch.renameLabel("svc", "service");`, "{svc=\"a\"} x\n", "{service=\"a\"} x\n"),
		"set_label": logUse(`batch:set_label("region", "eu")`,
			`batch.setLabel("region", "eu");`, "{app=\"a\"} x\n", "{app=\"a\",region=\"eu\"} x\n"),
		"map_label": logUse(`batch:map_label("host", function(h) return (h:gsub("%..*", "")) end)`,
			`batch.mapLabel("host", (h) => h.replace(/\..*/, ""));`,
			"{host=\"a.example\"} x\n", "{host=\"a\"} x\n"),
		"drop": logUse("for i, line in batch:rows(\"line\") do\n  if line == \"\" then batch:drop(i) end\nend",
			"for (const [i, line] of batch.rows(\"line\")) {\n  if (line === \"\") batch.drop(i);\n}", "{} \"\"\n{} x\n", "{} x\n"),
	}
	labelOps := func(names ...string) (fs []scripting.Function) {
		for _, name := range names {
			f, _ := t.Batch.Method(name)
			own := *f
			own.Uses = []scripting.Use{shared[name]}
			fs = append(fs, own)
		}
		return fs
	}
	t.Logs.Methods = []scripting.Function{
		{
			Name: "drop_where", Doc: "Drops the records for which the expression is true. Subexpressions that read only labels are evaluated once per stream.",
			Params: []scripting.Param{where},
			Op:     does(operation.Lines, func(c *operation.Call) error { return c.Window.DropWhere(c.Text(0)) }),
			Uses: []scripting.Use{logUse(`batch:drop_where [[ labels.env == "dev" && line contains "debug" ]]`,
				`batch.dropWhere('labels.env == "dev" && line contains "debug"');`,
				"{env=\"dev\"} debug: x\n{env=\"prod\"} debug: x\n", "{env=\"prod\"} debug: x\n")},
		},
		{
			Name: "keep_where", Doc: "Drops the records for which the expression is false.",
			Params: []scripting.Param{where},
			Op:     does(operation.Lines, func(c *operation.Call) error { return c.Window.KeepWhere(c.Text(0)) }),
			Uses: []scripting.Use{logUse(`batch:keep_where [[ line matches "^(warn|error)" || meta.keep != "" ]]`,
				`batch.keepWhere('line matches "^(warn|error)" || meta.keep != ""');`, "{} info\n{} error\n{} {keep=\"1\"} debug\n", "{} error\n{} {keep=\"1\"} debug\n")},
		},
	}
	t.Logs.Methods = append(t.Logs.Methods, labelOps("set_label", "drop_label", "keep_labels", "rename_label")...)
	t.Logs.Methods = append(t.Logs.Methods,
		scripting.Function{
			Name: "promote", Doc: "Copies a field of each record to a label, if the record has the field.",
			Params: []scripting.Param{text("field", "The field, such as json.level, logfmt.level or meta.level."), text("label", "The name of the label.")},
			Op:     does(operation.Lines, func(c *operation.Call) error { return c.Logs.Promote(c.Text(0), c.Text(1)) }),
			Uses: []scripting.Use{logUse(`batch:promote("json.level", "level")`,
				`batch.promote("json.level", "level");`,
				"{app=\"a\"} {\"level\":\"warn\"}\n{app=\"a\"} plain\n", "{app=\"a\",level=\"warn\"} {\"level\":\"warn\"}\n{app=\"a\"} plain\n")},
		},
		scripting.Function{
			Name: "set_line", Doc: "Replaces each line with the result of a template: text with field names in braces. A missing field is replaced with an empty string; {{ and }} are literal braces.",
			Params: []scripting.Param{text("template", "The template; fields are "+fieldDoc+".")},
			Op:     does(operation.Lines, func(c *operation.Call) error { return c.Logs.SetLineAll(c.Text(0)) }),
			Uses: []scripting.Use{logUse(`batch:set_line("{app}: {json.msg}")`,
				`batch.setLine("{app}: {json.msg}");`, "{app=\"a\"} {\"msg\":\"hi\"}\n", "{app=\"a\"} a: hi\n")},
		},
	)
	t.Logs.Methods = append(t.Logs.Methods, labelOps("map_label")...)
	t.Logs.Methods = append(t.Logs.Methods,
		scripting.Function{
			Name: "json", Doc: "Parses each line as JSON and calls fn with the values at the given paths. If fn has one more parameter, it also receives the record. If fn fails, its changes to that record are undone, as in each.",
			Params: []scripting.Param{paths("Paths such as level or user.id; at most 32."), callback("fn", "The function; it receives the values in the given order.", answer, rest(scripting.KindAny))},
			Op:     does(operation.Lines, operation.EachJSON),
			Uses: []scripting.Use{logUse("batch:json({ \"level\", \"msg\" }, function(level, msg, r)\n  if level == \"debug\" then return false end\n  r.labels.level, r.line = level, msg\nend)",
				"batch.json([\"level\", \"msg\"], (level, msg, r) => {\n  if (level === \"debug\") return false;\n  r.labels.level = level;\n  r.line = msg;\n});",
				"{} {\"level\":\"debug\",\"msg\":\"a\"}\n{} {\"level\":\"warn\",\"msg\":\"b\"}\n", "{level=\"warn\"} b\n")},
		},
		scripting.Function{
			Name: "logfmt", Doc: "Like json, for lines in logfmt.",
			Params: []scripting.Param{paths("Keys; at most 32."), callback("fn", "The function; it receives the values in the given order.", answer, rest(scripting.KindAny))},
			Op:     does(operation.Lines, operation.EachLogfmt),
			Uses: []scripting.Use{logUse("batch:logfmt({ \"level\" }, function(level)\n  return level ~= \"debug\"\nend)",
				`batch.logfmt(["level"], (level) => level !== "debug");`,
				"{} level=debug a=1\n{} level=warn\n", "{} level=warn\n")},
		},
		scripting.Function{
			Name: "match", Doc: "Calls fn for each line that matches a regular expression. fn receives the groups of the first match, or the whole match if the expression has no groups, followed by the record. Results and errors are handled as in json.",
			Params: []scripting.Param{pattern(), callback("fn", "The function.", answer, rest(scripting.KindAny))},
			Op:     results(operation.Lines, operation.EachMatch),
			Uses: []scripting.Use{logUse("batch:match([[status=(\\d+)]], function(status, r)\n  r.labels.status = status\nend)",
				"batch.match(\"status=(\\\\d+)\", (status, r) => {\n  r.labels.status = status;\n});",
				"{} status=200\n{} other\n", "{status=\"200\"} status=200\n{} other\n")},
		},
		scripting.Function{
			Name: "filter", Doc: "Keeps the records for which fn returns true and drops those for which it returns false. Only the named fields are passed to the script.",
			Params: []scripting.Param{fields, callback("fn", "The function; it receives the fields in the given order.", scripting.Result{Kind: scripting.KindBool}, rest(scripting.KindAny))},
			Op:     does(operation.Lines, operation.Filter),
			Uses: []scripting.Use{logUse("batch:filter({ \"app\", \"json.level\" }, function(app, level)\n  return app == \"a\" or level ~= \"debug\"\nend)",
				`batch.filter(["app", "json.level"], (app, level) => app === "a" || level !== "debug");`,
				"{app=\"a\"} {\"level\":\"debug\"}\n{app=\"b\"} {\"level\":\"debug\"}\n", "{app=\"a\"} {\"level\":\"debug\"}\n")},
		},
		scripting.Function{
			Name: "rows", Doc: "Returns an iterator over the record numbers and the named fields, for use with batch:set and batch:drop.",
			Params: []scripting.Param{{Name: "field", Kind: scripting.KindString, Rest: true, Doc: "The fields to read: " + fieldDoc + "; at most 32."}},
			Result: scripting.Result{Kind: scripting.KindSequence, Doc: "The iterator.", Yields: []scripting.Param{integerParam("i", "The number."), rest(scripting.KindAny)}},
			Op:     does(operation.Lines, operation.ListRows),
			Uses: []scripting.Use{logUse("for i, line, trace in batch:rows(\"line\", \"json.trace\") do\n  if trace then batch:set(i, \"meta.trace\", trace) end\nend",
				"for (const [i, line, trace] of batch.rows(\"line\", \"json.trace\")) {\n  if (trace) batch.set(i, \"meta.trace\", trace);\n}",
				"{} {\"trace\":\"t1\"}\n", "{} {trace=\"t1\"} {\"trace\":\"t1\"}\n")},
		},
		scripting.Function{
			Name: "set", Doc: "Sets a field of the record with a given number: line, time, ts, the name of a label, or meta.NAME for structured metadata.",
			Params: []scripting.Param{integerParam("i", "The number of the record, as returned by batch:rows."),
				{Name: "field", Kind: scripting.KindString, Doc: "The field, or a table of fields and values.", Or: []scripting.Param{{Kind: scripting.KindMap}}},
				{Name: "value", Kind: scripting.KindAny, Doc: "The value; nil removes a label."}},
			Op: results(operation.Free, operation.SetValues),
			Uses: []scripting.Use{logUse("for i, line in batch:rows(\"line\") do\n  batch:set(i, { line = line:upper(), level = \"info\" })\nend",
				"for (const [i, line] of batch.rows(\"line\")) {\n  batch.set(i, { line: line.toUpperCase(), level: \"info\" });\n}", "{} hi\n", "{level=\"info\"} HI\n")},
		},
	)
	t.Logs.Methods = append(t.Logs.Methods, labelOps("drop")...)
	t.Logs.Methods = append(t.Logs.Methods,
		scripting.Function{
			Name: "each", Doc: "Calls fn for each record. If fn fails, its changes to that record are undone and script.on_error decides what happens to the record; the remaining records are still processed.",
			Params: []scripting.Param{callback("fn", "The function.", scripting.Result{}, object("record", t.Line, "The record."))},
			Op:     results(operation.Free, operation.EachRecord),
			Uses: []scripting.Use{logUse("batch:each(function(r)\n  r.metadata.length = #r.line\n  r.line = r.line:sub(1, 3)\nend)",
				"batch.each((r) => {\n  r.metadata.length = String(r.line.length);\n  r.line = r.line.slice(0, 3);\n});", "{} abcdef\n", "{} {length=\"6\"} abc\n")},
		},
		scripting.Function{
			Name: "records", Doc: "Returns an iterator over the records. An error in the loop affects the whole batch; use each to limit it to one record.",
			Result: scripting.Result{Kind: scripting.KindSequence, Doc: "The iterator.", Yields: []scripting.Param{object("record", t.Line, "The record.")}},
			Op:     results(operation.Free, operation.RecordList),
			Uses: []scripting.Use{logUse("for r in batch:records() do r.ts = \"1735689600000000001\" end",
				`for (const r of batch) r.ts = "1735689600000000001";`, "{} x\n", "{} @2025-01-01T00:00:00.000000001Z x\n")},
		},
		groupBy(operation.Lines, fields, t.LineGroup, logUse("for group, app in batch:group_by { \"app\" } do\n  ctx.emit { line = app .. \": \" .. #group, labels = { kind = \"count\" } }\n  group:drop()\nend",
			"for (const [group, app] of batch.groupBy([\"app\"])) {\n  ctx.emit({ line: `${app}: ${group.length}`, labels: { kind: \"count\" } });\n  group.drop();\n}",
			"{app=\"a\"} one\n{app=\"a\"} two\n", "{kind=\"count\"} a: 2\n")),
		scripting.Function{
			Name: "text", Doc: "Returns the batch as text.",
			Result: scripting.Result{Kind: scripting.KindString, Doc: "The text."},
			Op:     does(operation.BatchText, logsText),
			Uses: []scripting.Use{{
				Hook: "logs", Lua: `ctx.log.info(batch:text())`, JS: `ctx.log.info(batch.text());`,
				Test:   `t:logs [[ {app="a"} hi ]]; assert.matches('{app="a"} .*hi', t:logged()[1])`,
				TestJS: "t.logs('{app=\"a\"} hi');\nexpect(t.logged()[0]).toMatch(/{app=\"a\"} .*hi/);",
			}},
		},
	)
	t.Logs.Len = func(any) int { panic("BUG: a batch of the table has no records") }
	t.Logs.Index = func(any, int) scripting.Value { panic("BUG: a batch of the table has no records") }
	t.Logs.Element = t.Line
}

// lineJSON returns the value at the path in the line.
func lineJSON(c *operation.Call) (err error) {
	c.Result = operation.IsValue
	c.Value, err = c.Logs.JSON(c.Record, c.Text(0))
	return err
}

func lineContains(c *operation.Call) error {
	c.Result, c.Bool = operation.IsBool, strings.Contains(c.Logs.Line(c.Record), c.Text(0))
	return nil
}

func copyLine(c *operation.Call) error {
	c.Result, c.Line = operation.LineCopy, c.Logs.Copy(c.Record)
	return nil
}

// logsText returns the text form of the lines that are not dropped. It stops if
// the text is too long, which the language reports.
func logsText(c *operation.Call) error {
	var out []byte
	for i := c.Logs.Next(0); i >= 0 && len(out) <= scripting.MaxString; i = c.Logs.Next(i + 1) {
		out = c.Logs.Text(out, i)
	}
	c.Result, c.String = operation.IsString, string(out)
	return nil
}
