package api

import (
	"slices"

	"github.com/weir-run/weir/scripting"
)

// kinds are the functions of weir that make definitions.
func (t *Table) kinds() []scripting.Function {
	function := func(kind scripting.ComponentKind, doc string, uses ...scripting.Use) scripting.Function {
		return scripting.Function{
			Name: string(kind), Doc: doc,
			Params: []scripting.Param{{Name: "definition", Kind: scripting.KindMap, Fields: t.Keys[kind], Doc: "What the component is."}},
			Result: scripting.Result{Kind: scripting.KindObject, Type: t.Definition, Doc: "The definition."},
			Uses:   uses,
		}
	}
	return []scripting.Function{
		function(scripting.Transform, "Makes the definition of a component that is sent data and sends on what it leaves of it. A script ends with it: return weir.transform { … }.",
			scripting.Use{
				Lua:   "local weir = require \"weir\"\n\nreturn weir.transform {\n  args = { region = weir.arg.string { default = \"eu\" } },\n  series = function(s, ctx) s.labels.region = ctx.args.region end,\n}",
				JS:    "import { defineTransform, arg } from \"weir\";\n\nexport default defineTransform({\n  args: { region: arg.string({ default: \"eu\" }) },\n  series(s, ctx) { s.labels.region = ctx.args.region; },\n});",
				Input: "up 1\n", Output: "up{region=\"eu\"} 1\n",
			}),
		function(scripting.Source, "Makes the definition of a component that nothing is sent to: it makes data of what it asks for or is told, or exports, such as the targets that it finds. A script ends with it: return weir.source { … }.",
			scripting.Use{
				Lua: "local weir = require \"weir\"\n\nreturn weir.source {\n" +
					"  every = { [\"10s\"] = function(ctx) ctx.emit { name = \"alive_timestamp_seconds\", value = ctx.now() / 1000 } end },\n}",
				JS: "import { defineSource } from \"weir\";\n\nexport default defineSource({\n" +
					"  every: { \"10s\"(ctx) { ctx.emit({ name: \"alive_timestamp_seconds\", value: ctx.now() / 1000 }); } },\n});",
				TestJS: "const start = t.now();\nexpect(t.advance(\"10s\").value(\"alive_timestamp_seconds\")).toBe(start / 1000 + 10);",
				Test:   `assert.equals(t:now() / 1000 + 10, t:advance("10s"):value("alive_timestamp_seconds"))`,
			}),
		function(scripting.Sink, "Makes the definition of a component that is sent data and delivers it to something that is not weir. Batches, the journal, retries and the end are weir's affair. A script ends with it: return weir.sink { … }.",
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

// keys are those of definitions.
func (t *Table) keys() {
	ctx := object("ctx", t.Context, "The context.")
	args := entries("args", "Arguments of the block by name, each of a type of weir.arg. They are checked with line and column, and are ctx.args in the hooks.", object("", t.Argument, ""))
	sends := func(doc string) scripting.Param { return listOf("sends", doc, text("", "")) }
	common := []scripting.Param{
		entries("every", `Timers: functions by how often they are called, such as { ["30s"] = function(ctx) … end }. They keep their phase over a reload.`, callback("", "", scripting.Result{}, ctx)),
		hook("setup", "Called once before all other hooks. An error keeps data waiting and is tried again.", ctx),
		hook("teardown", "Called once after all other hooks, when weir stops or a new version takes over.", ctx),
		hook("migrate", "Called when the version has changed, or what state declares has in more than limits: it makes what ctx.state is to have of what the version before kept. What fits as it is is in ctx.state already. An error keeps the version before.",
			scripting.Param{Name: "old_state", Kind: scripting.KindMap, Doc: "What the version before kept, by name, to be read with get, has, size, full, peek and entries: for k, v in pairs(old_state.seen:entries())."}, integerParam("old_version", "Its version."), ctx),
		optional(integerParam("version", "The version of what the script keeps in state, for migrate; 1 by default.")),
		entries("state", "What hooks, VMs and versions share, by name, each of a kind of weir.state. It is ctx.state in the hooks.", object("", t.State, "")),
	}
	onError := func(doc string) scripting.Param {
		return optional(text("on_error", `What becomes of data whose hook failed unless the block's script.on_error says it: `+doc))
	}
	outputs := listOf("outputs", "Names of outputs beside forward_to: the block gives each its receivers in routes, and ctx.route sends a record there.", text("", ""))
	needs := scripting.Param{Name: "needs", Kind: scripting.KindMap, Optional: true, Doc: "What the script needs of the world outside, which the block must grant under script.allow.", Fields: []scripting.Param{
		need("http", "URLs that ctx.http asks, as patterns; true: which ones is the block's affair.", true),
		need("env", "Variables of the environment that ctx.env reads.", false),
		need("read", "Files that ctx.read reads, as patterns; true: which ones is the block's affair.", true),
		need("exec", "Programs that ctx.exec runs; true: which ones is the block's affair.", true),
	}}
	t.Keys = map[scripting.ComponentKind][]scripting.Param{
		scripting.Transform: slices.Concat([]scripting.Param{
			args,
			hook("series", "Asked once for each new series, and its answer is remembered: it may depend on labels and ctx.args only. No return value means keep as edited.",
				object("s", t.Series, "The series."), object("ctx", t.Remembered, "The context.")),
			hook("metrics", "Called for each batch of metrics. Records are kept unless they are dropped.", object("batch", t.Batch, "The batch."), ctx),
			hook("stream", "As series, for the streams of log lines.", object("s", t.Stream, "The stream."), object("ctx", t.Remembered, "The context.")),
			hook("logs", "Called for each batch of log lines. Records are kept unless they are dropped.", object("batch", t.Logs, "The batch."), ctx),
			sends(`What leaves the component, "metrics" and "logs"; by default what its hooks take. What is left of another signal ends here, counted as dropped.`),
			onError(`"pass" (the default), "drop", "quarantine" or "hold": a script that hides what must not be seen says "hold".`),
		}, common, []scripting.Param{outputs, needs}),
		scripting.Source: slices.Concat([]scripting.Param{
			args,
			hook("poll", "Called every interval, the first time at once. What it emits is sent when it returns, and again until the next poll is due; a series that it does not emit again ends. An error drops what it emitted, and is tried again sooner than a long interval is over.", ctx),
			optional(text("interval", `How often poll is called unless the block says so: "1m". Without it the block must.`)),
			hook("run", "Called once, on a VM of its own, for a source that goes on by itself: it loops and waits. What it emits is sent when it waits, as in ctx.sleep, or by ctx.flush. It is called again after an error, with back-off; when it returns it is done. When weir stops or a new version takes over, what waits returns an error.", ctx),
			entries("http", httpDoc, callback("", "", scripting.Result{Kind: scripting.KindAny, Optional: true, Doc: "The answer."}, object("req", t.Request, "The request."), ctx)),
			sends(`What it emits, "metrics" and "logs"; metrics by default, and nothing by default when it has exports. The block of one that sends nothing has no forward_to.`),
			entries("exports", "What other blocks may refer to, by name, each of a type of weir.arg: ctx.export gives the values. Such blocks wait until there are some; a reload keeps them until the new version gives others.", object("", t.Argument, "")),
		}, common, []scripting.Param{outputs, needs}),
		scripting.Sink: slices.Concat([]scripting.Param{
			args,
			hook("send", "Called with a batch that is to be delivered: it is when the hook returns. An error, and ctx.retry, have it sent again with back-off, ctx.reject gives it up. Nobody else sees the batch: what is changed shows in what the hook reads of it, and what is dropped is not delivered, which is counted.",
				object("batch", t.Batch, "The batch; of a sink that accepts logs also one of log lines."), ctx),
			listOf("accepts", `What it takes, "metrics" and "logs"; metrics by default. It gets batches of one signal each.`, text("", "")),
			{Name: "batch", Kind: scripting.KindMap, Optional: true, Doc: "How large the batches for send are, unless the block's batch says it.", Fields: []scripting.Param{
				optional(integerParam("max_records", "At most so many records; 1000 by default.")),
				optional(text("max_bytes", `About so many bytes of records at most; "1MiB" by default.`)),
				optional(text("max_wait", `How long records wait for more; "1s" by default. They are accepted before.`)),
				optional(integerParam("in_flight", "How many batches of a signal are sent at once, 1 to 8; 4 by default. Those of one source never are, as its records stay in order.")),
			}},
			onError(`"hold" (the default), "drop" or "quarantine".`),
		}, common, []scripting.Param{needs}),
	}
}

// httpDoc is what is said of the key http.
const httpDoc = `Requests that it answers: functions by method and path, such as { ["POST /hook/{team}"] = function(req, ctx) … end }; ` +
	`{name} stands for a part of the path, {name...} for the rest of it, and a route without a method is for all. ` +
	`They are served below /api/v0/component/<id>/ on weir's own address, and at these paths on one of its own when the block has listen { port = … }. ` +
	`It returns nothing (200), a text, a status, or a table with status, headers, and body or json. ` +
	`What it emits was accepted when the answer goes out; what cannot be accepted in time is answered 503 with Retry-After, an error 500. ` +
	`Routes are open to whoever reaches the address: see req:authorized. ` +
	`On weir's own address a browser isolates the answers (Content-Security-Policy: sandbox): HTML is shown, its scripts and forms do not work, and Set-Cookie is left out.`
