package api

import (
	"slices"

	"github.com/weir-run/weir/scripting"
)

// kinds returns the functions of weir that create definitions.
func (t *Table) kinds() []scripting.Function {
	function := func(kind scripting.ComponentKind, doc string, uses ...scripting.Use) scripting.Function {
		return scripting.Function{
			Name: string(kind), Doc: doc,
			Params: []scripting.Param{{Name: "definition", Kind: scripting.KindMap, Fields: t.Keys[kind], Doc: "The arguments, state and hooks of the component."}},
			Result: scripting.Result{Kind: scripting.KindObject, Type: t.Definition, Doc: "The definition."},
			Uses:   uses,
		}
	}
	return []scripting.Function{
		function(scripting.Transform, "Defines a component that receives data, may change it, and forwards it. A script ends with it: return weir.transform { … }.",
			scripting.Use{
				Lua:   "local weir = require \"weir\"\n\nreturn weir.transform {\n  args = { region = weir.arg.string { default = \"eu\" } },\n  series = function(s, ctx) s.labels.region = ctx.args.region end,\n}",
				JS:    "import { defineTransform, arg } from \"weir\";\n\nexport default defineTransform({\n  args: { region: arg.string({ default: \"eu\" }) },\n  series(s, ctx) { s.labels.region = ctx.args.region; },\n});",
				Input: "up 1\n", Output: "up{region=\"eu\"} 1\n",
			}),
		function(scripting.Source, "Defines a component that receives no data from other components. It produces data from requests that it sends or receives, or it exports values, such as discovered targets. A script ends with it: return weir.source { … }.",
			scripting.Use{
				Lua: "local weir = require \"weir\"\n\nreturn weir.source {\n" +
					"  every = { [\"10s\"] = function(ctx) ctx.emit { name = \"alive_timestamp_seconds\", value = ctx.now() / 1000 } end },\n}",
				JS: "import { defineSource } from \"weir\";\n\nexport default defineSource({\n" +
					"  every: { \"10s\"(ctx) { ctx.emit({ name: \"alive_timestamp_seconds\", value: ctx.now() / 1000 }); } },\n});",
				TestJS: "const start = t.now();\nexpect(t.advance(\"10s\").value(\"alive_timestamp_seconds\")).toBe(start / 1000 + 10);",
				Test:   `assert.equals(t:now() / 1000 + 10, t:advance("10s"):value("alive_timestamp_seconds"))`,
			}),
		function(scripting.Sink, "Defines a component that receives data and delivers it to an external system. weir handles batching, the journal, retries and shutdown. A script ends with it: return weir.sink { … }.",
			scripting.Use{
				Lua: "local weir = require \"weir\"\n\nreturn weir.sink {\n  needs = { http = { \"https://hook.example/*\" } },\n" +
					"  send = function(batch, ctx) assert(ctx.http.post(\"https://hook.example/v1\", batch:text())) end,\n}",
				JS: "import { defineSink } from \"weir\";\n\nexport default defineSink({\n  needs: { http: [\"https://hook.example/*\"] },\n" +
					"  async send(batch, ctx) { await ctx.http.post(\"https://hook.example/v1\", batch.text()); },\n});",
				Test: "local seen = weir.test.http { [\"POST https://hook.example/v1\"] = \"\" }\n" +
					"t:metrics(\"a 1\")\nassert.matches(\"^a 1\", seen:calls()[1].body)",
				TestJS: "const seen = http({ \"POST https://hook.example/v1\": \"\" });\n" +
					"t.metrics(\"a 1\");\nexpect(seen.calls()[0].body).toMatch(/^a 1/);",
			}),
	}
}

// keys defines the keys of definitions.
func (t *Table) keys() {
	ctx := object("ctx", t.Context, "The context.")
	args := entries("args", "The arguments of the block, by name, each declared with a type from weir.arg. weir validates them and reports errors with line and column. Hooks read them from ctx.args.", object("", t.Argument, ""))
	sends := func(doc string) scripting.Param { return listOf("sends", doc, text("", "")) }
	common := []scripting.Param{
		entries("every", `Timers: functions by interval, such as { ["30s"] = function(ctx) … end }. They keep their phase across reloads.`, callback("", "", scripting.Result{}, ctx)),
		hook("setup", "Called once, before all other hooks. If it fails, incoming data waits and weir calls it again.", ctx),
		hook("teardown", "Called once, after all other hooks, when weir stops or a new version takes over.", ctx),
		hook("migrate", "Called when version changes, or when the declaration of state changes in more than its limits. It builds ctx.state from the state of the previous version. Entries that fit unchanged are already in ctx.state. If it fails, the previous version stays active.",
			scripting.Param{Name: "old_state", Kind: scripting.KindMap, Doc: "The state of the previous version, by name. Read it with get, has, size, full, peek and entries: for k, v in pairs(old_state.seen:entries())."}, integerParam("old_version", "The version of that state."), ctx),
		optional(integerParam("version", "The version of the data that the script keeps in state, for migrate; 1 by default.")),
		entries("state", "The state that hooks, VMs and versions share, by name, each declared with a kind from weir.state. Hooks access it as ctx.state.", object("", t.State, "")),
	}
	onError := func(doc string) scripting.Param {
		return optional(text("on_error", `The action for data whose hook failed, unless the block sets script.on_error: `+doc))
	}
	outputs := listOf("outputs", "The names of outputs in addition to forward_to. The block lists the receivers of each output in routes; ctx.route sends a record to an output.", text("", ""))
	needs := scripting.Param{Name: "needs", Kind: scripting.KindMap, Optional: true, Doc: "The access to external resources that the script needs. The block must grant it under script.allow.", Fields: []scripting.Param{
		need("http", "Patterns of the URLs that ctx.http requests; true leaves the choice to the block.", true),
		need("env", "The environment variables that ctx.env reads.", false),
		need("read", "Patterns of the files that ctx.read reads; true leaves the choice to the block.", true),
		need("exec", "The programs that ctx.exec runs; true leaves the choice to the block.", true),
	}}
	t.Keys = map[scripting.ComponentKind][]scripting.Param{
		scripting.Transform: slices.Concat([]scripting.Param{
			args,
			hook("series", "Called once for each new series; the result is cached. It may depend only on labels and ctx.args. Without a return value the series is kept, with the changes.",
				object("s", t.Series, "The series."), object("ctx", t.Remembered, "The context.")),
			hook("metrics", "Called for each batch of metrics. Records are kept unless they are dropped.", object("batch", t.Batch, "The batch."), ctx),
			hook("stream", "Like series, for the streams of log lines.", object("s", t.Stream, "The stream."), object("ctx", t.Remembered, "The context.")),
			hook("logs", "Called for each batch of log lines. Records are kept unless they are dropped.", object("batch", t.Logs, "The batch."), ctx),
			sends(`The signals that the component sends, "metrics" and "logs"; by default those that its hooks receive. Records of any other signal are dropped and counted.`),
			onError(`"pass" (the default), "drop", "quarantine" or "hold". Use "hold" in a script that removes confidential data.`),
		}, common, []scripting.Param{outputs, needs}),
		scripting.Source: slices.Concat([]scripting.Param{
			args,
			hook("poll", "Called once at the start and then every interval. The records that it emits are sent when it returns, and again until the next poll is due. A series that it does not emit again ends. If it fails, the records that it emitted are dropped; if the interval is long, it is called again earlier.", ctx),
			optional(text("interval", `The interval between calls of poll, such as "1m", unless the block sets one. If the script sets none, the block must set it.`)),
			hook("run", "Called once, on its own VM, for a source that runs continuously in a loop with waits. The records that it emits are sent whenever it waits, as in ctx.sleep, or calls ctx.flush. If it fails, it is called again with backoff; if it returns, it is not called again. When weir stops or a new version takes over, waiting calls return an error.", ctx),
			entries("http", httpDoc, callback("", "", scripting.Result{Kind: scripting.KindAny, Optional: true, Doc: "The answer."}, object("req", t.Request, "The request."), ctx)),
			sends(`The signals that it emits, "metrics" and "logs"; by default metrics, or nothing if it has exports. If a source sends nothing, its block has no forward_to.`),
			entries("exports", "The values that other blocks may refer to, by name, each declared with a type from weir.arg. ctx.export sets them. Blocks that refer to them wait until the values are set. A reload keeps the values until the new version sets them.", object("", t.Argument, "")),
		}, common, []scripting.Param{outputs, needs}),
		scripting.Sink: slices.Concat([]scripting.Param{
			args,
			hook("send", "Called with a batch to deliver. The batch counts as delivered when the hook returns. After an error or ctx.retry, weir sends the batch again with backoff; after ctx.reject, it gives the batch up. The batch is private to the hook: changes are visible only in the values that the hook reads from it. Records that the hook drops are counted and not delivered.",
				object("batch", t.Batch, "The batch; for a sink that accepts logs, it can also be a batch of log lines."), ctx),
			listOf("accepts", `The signals that it accepts, "metrics" and "logs"; metrics by default. Each batch contains one signal.`, text("", "")),
			{Name: "batch", Kind: scripting.KindMap, Optional: true, Doc: "The size of the batches for send, unless the block sets it in batch.", Fields: []scripting.Param{
				optional(integerParam("max_records", "The maximum number of records; 1000 by default.")),
				optional(text("max_bytes", `The approximate maximum size of the records; "1MiB" by default.`)),
				optional(text("max_wait", `The maximum time that records wait for a batch to fill; "1s" by default. Records are accepted before they wait.`)),
				optional(integerParam("in_flight", "The number of batches of a signal that are sent concurrently, 1 to 8; 4 by default. Batches of the same source are sent one at a time, so its records stay in order.")),
			}},
			onError(`"hold" (the default), "drop" or "quarantine".`),
		}, common, []scripting.Param{needs}),
	}
}

// httpDoc is the doc of the key http.
const httpDoc = `HTTP requests that the source serves: functions by method and path, such as { ["POST /hook/{team}"] = function(req, ctx) … end }. ` +
	`{name} matches one segment of the path and {name...} matches the rest of it. A route without a method matches all methods. ` +
	`weir serves the routes below /api/v0/component/<id>/ on its own address, or at the paths given if the block sets a separate address with listen { port = … }. ` +
	`The function returns nothing (status 200), a string, a status, or a table with status, headers, and body or json. ` +
	`Emitted records are accepted before the response is sent. If they cannot be accepted in time, the response is 503 with Retry-After; after an error it is 500. ` +
	`Anyone who can reach the address can call the routes: see req:authorized. ` +
	`On weir's own address, browsers sandbox the responses (Content-Security-Policy: sandbox): HTML is displayed, but its scripts and forms do not work, and Set-Cookie is removed.`
