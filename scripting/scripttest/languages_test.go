package scripttest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// operation is the body of a hook in both languages, with what it makes of its
// input: the batch in text form, and, when it is not empty, what was dropped,
// logged and what failed.
// The want of JavaScript is another where the languages differ by design: what a
// missing value is called, how numbers that are not finite are written.
type operation struct{ lua, js, want, wantJS string }

// runBoth runs operations in both languages and compares what comes out of
// them. The scripts have a hook, state, a route and arguments; the batch is sent
// twice when the operation mentions state.
func runBoth(t *testing.T, hook, input string, ops []operation) {
	t.Helper()
	var files strings.Builder
	for i, op := range ops {
		fmt.Fprintf(&files, `-- scripts/a/lua%03d.lua --
local weir = require "weir"
local json = require "json"
return weir.transform {
  args = { size = weir.arg.number { default = 1.5 }, names = weir.arg.list { default = { "x", "y" } }, tags = weir.arg.map { default = { b = "2", a = "1" } } },
  state = { total = weir.state.counter { max = 3 }, last = weir.state.map { max = 3, ttl = "1m" }, seen = weir.state.set { max = 3 }, recent = weir.state.queue { max = 3 } },
  outputs = { "odd" }, sends = { "metrics", "logs" },
  %s = function(batch, ctx)
%s
  end,
}
-- scripts/a/js%03d.ts --
import { arg, defineTransform, state } from "weir";
import json from "weir/json";
export default defineTransform({
  args: { size: arg.number({ default: 1.5 }), names: arg.list({ default: ["x", "y"] }), tags: arg.map({ default: { b: "2", a: "1" } }) },
  state: { total: state.counter({ max: 3 }), last: state.map({ max: 3, ttl: "1m" }), seen: state.set({ max: 3 }), recent: state.queue({ max: 3 }) },
  outputs: ["odd"], sends: ["metrics", "logs"],
  %s(batch: any, ctx: any) {
%s
  },
});
`, i, hook, op.lua, i, hook, op.js)
	}
	fmt.Fprintf(&files, `-- scripts/a/all_test.lua --
local input = [==[
%s]==]
local function send(name)
  local t = weir.test.component(name)
  local ok, out = pcall(function() t:%s(input) t:logged() return t:%s(input) end)
  if not ok then
    t = weir.test.component(name)
    out = t:failing(input)
  end
  local text = tostring(out)
  local routed = tostring(out:routed "odd")
  if routed ~= "" then text = text .. "routed: " .. routed end
  if out:dropped() > 0 then text = text .. "dropped: " .. out:dropped() .. "\n" end
  for _, e in ipairs(out:errors()) do text = text .. "error: " .. e:gsub("^[^ ]*: ", "") .. "\n" end
  for _, l in ipairs(t:logged()) do text = text .. "logged: " .. l:gsub("pos=[^ ]* ?", "") .. "\n" end
  return text
end
for i = 0, %d do
  for _, name in ipairs { "lua%%03d.lua", "js%%03d.ts" } do
    it(name:format(i), function() print(send(name:format(i))) end)
  end
end
`, input, hook, hook, len(ops)-1)
	write(t, archive(files.String()))
	r := run(t, options())
	f := r.Files[0]
	if f.Name != "scripts/a/all_test.lua" || len(f.Tests) != 2*len(ops) {
		t.Fatalf("got %s with %d tests: %+v", f.Name, len(f.Tests), f.Problem)
	}
	for i, op := range ops {
		for j, body := range []string{op.lua, op.js} {
			test := f.Tests[2*i+j]
			got := strings.Join(test.Output, "\n")
			if test.Problem != nil {
				got = test.Problem.Msg
			} else if _, after, ok := strings.Cut(got, ": "); ok {
				got = after
			}
			want := op.want
			if j == 1 && op.wantJS != "" {
				want = op.wantJS
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", body, diff)
			}
		}
	}
}

// TestLanguagesAgreeOnMetrics runs the same operations on samples in Lua and in
// TypeScript.
func TestLanguagesAgreeOnMetrics(t *testing.T) {
	const in = "# TYPE a counter\na{l=\"x\"} 1\na{l=\"y\"} 2.5\nnan NaN\nend stale\n"
	runBoth(t, "metrics", in, []operation{
		// Values that become labels.
		{`batch:each(function(m) m.labels.l = m.value end)`, `batch.each((m: any) => { m.labels.l = m.value })`,
			"# TYPE a counter\na{l=\"1\"} 1\na{l=\"2.5\"} 2.5\nnan{l=\"nan\"} NaN\nend{l=\"nan\"} stale\n", ""},
		{`batch[1].labels.l = 1e21 batch[2].labels.l = 0.1 + 0.2`, `batch[0].labels.l = 1e21; batch[1].labels.l = 0.1 + 0.2`,
			"# TYPE a counter\na{l=\"1e+21\"} 1\na{l=\"0.30000000000000004\"} 2.5\nnan NaN\nend stale\n", ""},
		{`batch[1].labels.l = true batch[2].labels.l = -0.0`, `batch[0].labels.l = true; batch[1].labels.l = -0`,
			"# TYPE a counter\na{l=\"true\"} 1\na{l=\"-0\"} 2.5\nnan NaN\nend stale\n", "# TYPE a counter\na{l=\"true\"} 1\na{l=\"0\"} 2.5\nnan NaN\nend stale\n"},
		{`batch[1].labels.l = 9007199254740993 batch[2].labels.l = 1/0`, `batch[0].labels.l = 9007199254740993; batch[1].labels.l = 1 / 0`,
			"# TYPE a counter\na{l=\"9007199254740992\"} 1\na{l=\"inf\"} 2.5\nnan NaN\nend stale\n", ""},
		{`batch[1].labels.l = nil batch[2].labels.l = ""`, `batch[0].labels.l = undefined; batch[1].labels.l = ""`,
			"# TYPE a counter\na 1\na 2.5\nnan NaN\nend stale\n", ""},
		{`batch[1].labels.l = {}`, `batch[0].labels.l = {}`,
			"# TYPE a counter\na{l=\"x\"} 1\na{l=\"y\"} 2.5\nnan NaN\nend stale\nerror: in metrics: cannot set label \"l\" to a table: it must be a string\n", "# TYPE a counter\na{l=\"x\"} 1\na{l=\"y\"} 2.5\nnan NaN\nend stale\nerror: in metrics: cannot set label \"l\" to an object: it must be a string\n"},
		{`batch[1].labels.l = "Zürich 🎛\n\"\\"`, `batch[0].labels.l = "Zürich 🎛\n\"\\"`,
			"# TYPE a counter\na{l=\"Zürich 🎛\\n\\\"\\\\\"} 1\na{l=\"y\"} 2.5\nnan NaN\nend stale\n", ""},
		{`batch[1].labels = { z = 1, a = "b" } batch[2].labels = {}`, `batch[0].labels = { z: 1, a: "b" }; batch[1].labels = {}`,
			"# TYPE a counter\na{a=\"b\",z=\"1\"} 1\na 2.5\nnan NaN\nend stale\n", ""},
		// Values and times.
		{`batch[1].value = 1/0 batch[2].value = -1/0`, `batch[0].value = 1 / 0; batch[1].value = -1 / 0`,
			"# TYPE a counter\na{l=\"x\"} +Inf\na{l=\"y\"} -Inf\nnan NaN\nend stale\n", ""},
		{`batch[1].value = "2"`, `batch[0].value = "2"`,
			"# TYPE a counter\na{l=\"x\"} 1\na{l=\"y\"} 2.5\nnan NaN\nend stale\nerror: in metrics: cannot set value to a string: it must be a number\n", ""},
		{`batch[1].value = nil`, `batch[0].value = undefined`,
			"# TYPE a counter\na{l=\"x\"} 1\na{l=\"y\"} 2.5\nnan NaN\nend stale\nerror: in metrics: cannot set value to a nil: it must be a number\n", "# TYPE a counter\na{l=\"x\"} 1\na{l=\"y\"} 2.5\nnan NaN\nend stale\nerror: in metrics: cannot set value to undefined: it must be a number\n"},
		{`batch[1].time = batch[1].time + 1 batch[2].time = 0`, `batch[0].time++; batch[1].time = 0`,
			"# TYPE a counter\na{l=\"x\"} 1 1735689600001\na{l=\"y\"} 2.5 0\nnan NaN\nend stale\n", ""},
		{`batch[1].time = 1.5`, `batch[0].time = 1.5`,
			"# TYPE a counter\na{l=\"x\"} 1\na{l=\"y\"} 2.5\nnan NaN\nend stale\nerror: in metrics: cannot set time to a number: it must be a whole number of milliseconds\n", ""},
		{`batch[1].stale = true batch[4].stale = false`, `batch[0].stale = true; batch[3].stale = false`,
			"# TYPE a counter\na{l=\"x\"} stale\na{l=\"y\"} 2.5\nnan NaN\nend NaN\n", ""},
		{`batch:set_value("value > 2", "value * 2 + 1")`, "batch.setValue(`value > 2`, `value * 2 + 1`)",
			"# TYPE a counter\na{l=\"x\"} 1\na{l=\"y\"} 6\nnan NaN\nend stale\n", ""},
		{`batch:scale(nil, 0.5)`, `batch.scale(null, 0.5)`,
			"# TYPE a counter\na{l=\"x\"} 0.5\na{l=\"y\"} 1.25\nnan NaN\nend stale\n", ""},
		{`batch:scale("name == 'a'", -1)`, `batch.scale("name == 'a'", -1)`,
			"# TYPE a counter\na{l=\"x\"} -1\na{l=\"y\"} -2.5\nnan NaN\nend stale\n", ""},
		// Names.
		{`batch[1].name = "b" batch[2].name = ""`, `batch[0].name = "b"; batch[1].name = ""`,
			"# TYPE a counter\na{l=\"x\"} 1\na{l=\"y\"} 2.5\nnan NaN\nend stale\nerror: in metrics: cannot use an empty name: drop the record instead\n", ""},
		{`batch[1].name = 5`, `batch[0].name = 5`,
			"# TYPE a counter\na{l=\"x\"} 1\na{l=\"y\"} 2.5\nnan NaN\nend stale\nerror: in metrics: cannot set name to a number: it must be a string\n", ""},
		{`batch:rename_label("l", "k") batch:set_label("l", "z") batch:drop_label("none")`, `batch.renameLabel("l", "k"); batch.setLabel("l", "z"); batch.dropLabel("none")`,
			"# TYPE a counter\na{k=\"x\",l=\"z\"} 1\na{k=\"y\",l=\"z\"} 2.5\nnan{l=\"z\"} NaN\nend{l=\"z\"} stale\n", ""},
		{`batch:rename_label("l", "name with spaces")`, `batch.renameLabel("l", "name with spaces")`,
			"# TYPE a counter\na{\"name with spaces\"=\"x\"} 1\na{\"name with spaces\"=\"y\"} 2.5\nnan NaN\nend stale\n", ""},
		// Dropping.
		{`batch:each(function(m) if m.stale then m:drop() end end)`, `batch.each((m: any) => { if (m.stale) m.drop() })`,
			"# TYPE a counter\na{l=\"x\"} 1\na{l=\"y\"} 2.5\nnan NaN\ndropped: 1\n", ""},
		{`batch:drop_where("value != value")`, `batch.dropWhere("value != value")`,
			"# TYPE a counter\na{l=\"x\"} 1\na{l=\"y\"} 2.5\nend stale\ndropped: 1\n", ""},
		{`batch:keep_where("labels.l == 'x' || name == 'end'")`, `batch.keepWhere("labels.l == 'x' || name == 'end'")`,
			"# TYPE a counter\na{l=\"x\"} 1\nend stale\ndropped: 2\n", ""},
		{`for i in batch:rows("name") do batch:drop(i) end`, `for (const [i] of batch.rows("name")) batch.drop(i)`,
			"dropped: 4\n", ""},
		{`local m = batch[1] m:drop() m.value = 7`, `const m = batch[0]; m.drop(); m.value = 7`,
			"# TYPE a counter\na{l=\"y\"} 2.5\nnan NaN\nend stale\ndropped: 1\n", ""},
		// Errors: what was done before them in the hook and in a record.
		{`batch:each(function(m) m.labels.k = "1" if m.value == 2.5 then error("no") end end)`, `batch.each((m: any) => { m.labels.k = "1"; if (m.value === 2.5) throw new Error("no") })`,
			"# TYPE a counter\na{k=\"1\",l=\"x\"} 1\na{l=\"y\"} 2.5\nnan{k=\"1\"} NaN\nend{k=\"1\"} stale\nerror: in each: no\n", ""},
		{`batch:set_label("k", "1") error("no")`, `batch.setLabel("k", "1"); throw new Error("no")`,
			"# TYPE a counter\na{l=\"x\"} 1\na{l=\"y\"} 2.5\nnan NaN\nend stale\nerror: in metrics: no\n", ""},
		{`ctx.emit { name = "e", value = 1 } error("no")`, `ctx.emit({ name: "e", value: 1 }); throw new Error("no")`,
			"# TYPE a counter\na{l=\"x\"} 1\na{l=\"y\"} 2.5\nnan NaN\nend stale\nerror: in metrics: no\n", ""},
		// Emitting.
		{`ctx.emit { name = "e", labels = { n = 1, b = false }, value = 1, time = 5, type = "gauge", help = "An e." }`, `ctx.emit({ name: "e", labels: { n: 1, b: false }, value: 1, time: 5, type: "gauge", help: "An e." })`,
			"# TYPE a counter\na{l=\"x\"} 1\na{l=\"y\"} 2.5\nnan NaN\nend stale\n# TYPE e gauge\n# HELP e An e.\ne{b=\"false\",n=\"1\"} 1 5\n", ""},
		{`ctx.emit { name = "e", stale = true }`, `ctx.emit({ name: "e", stale: true })`,
			"# TYPE a counter\na{l=\"x\"} 1\na{l=\"y\"} 2.5\nnan NaN\nend stale\ne stale\n", ""},
		{`ctx.emit { name = "e" }`, `ctx.emit({ name: "e" })`,
			"# TYPE a counter\na{l=\"x\"} 1\na{l=\"y\"} 2.5\nnan NaN\nend stale\nerror: in metrics: cannot emit a record without a value, or a line if it is a log record\n", ""},
		{`ctx.emit { line = "a line", labels = { l = "1" } }`, `ctx.emit({ line: "a line", labels: { l: "1" } })`,
			"# TYPE a counter\na{l=\"x\"} 1\na{l=\"y\"} 2.5\nnan NaN\nend stale\n{l=\"1\"} a line\n", ""},
		{`local c = batch[2]:copy() c.value = 9 c.labels.k = "c" ctx.emit(c)`, `const c = batch[1].copy(); c.value = 9; c.labels.k = "c"; ctx.emit(c)`,
			"# TYPE a counter\na{l=\"x\"} 1\na{l=\"y\"} 2.5\nnan NaN\nend stale\na{k=\"c\",l=\"y\"} 9\n", ""},
		{`ctx.emit(5)`, `ctx.emit(5)`,
			"# TYPE a counter\na{l=\"x\"} 1\na{l=\"y\"} 2.5\nnan NaN\nend stale\nerror: in metrics: cannot emit a number: it must be a table or a record\n", "# TYPE a counter\na{l=\"x\"} 1\na{l=\"y\"} 2.5\nnan NaN\nend stale\nerror: in metrics: cannot emit a number: it must be an object or a record\n"},
		// Routing.
		{`ctx.route("odd", batch[1])`, `ctx.route("odd", batch[0])`,
			"# TYPE a counter\na{l=\"y\"} 2.5\nnan NaN\nend stale\nrouted: # TYPE a counter\na{l=\"x\"} 1\n", ""},
		{`ctx.route("odd", { name = "e", value = 1 })`, `ctx.route("odd", { name: "e", value: 1 })`,
			"# TYPE a counter\na{l=\"x\"} 1\na{l=\"y\"} 2.5\nnan NaN\nend stale\nrouted: e 1\n", ""},
		{`ctx.route("even", batch[1])`, `ctx.route("even", batch[0])`,
			"# TYPE a counter\na{l=\"x\"} 1\na{l=\"y\"} 2.5\nnan NaN\nend stale\nerror: in metrics: cannot route to \"even\": there is odd\n", ""},
		// Groups.
		{`for g, l in batch:group_by { "l" } do ctx.emit { name = "n", labels = { l = l or "none" }, value = #g } end`, `for (const [g, l] of batch.groupBy(["l"])) ctx.emit({ name: "n", labels: { l: l ?? "none" }, value: g.length })`,
			"# TYPE a counter\na{l=\"x\"} 1\na{l=\"y\"} 2.5\nnan NaN\nend stale\nn{l=\"x\"} 1\nn{l=\"y\"} 1\nn{l=\"none\"} 2\n", ""},
		{`for g, name in batch:group_by { "name" } do if name == "a" then g:drop() end end`, `for (const [g, name] of batch.groupBy(["name"])) if (name === "a") g.drop()`,
			"nan NaN\nend stale\ndropped: 2\n", ""},
		// State, of two batches.
		{`ctx.state.total:add("k", 2) batch[1].value = ctx.state.total:get("k") batch[2].value = ctx.state.total:get("none") or -1`, `ctx.state.total.add("k", 2); batch[0].value = ctx.state.total.get("k"); batch[1].value = ctx.state.total.get("none") ?? -1`,
			"# TYPE a counter\na{l=\"x\"} 4\na{l=\"y\"} 0\nnan NaN\nend stale\n", ""},
		{`local s = ctx.state.last:get("k") or { n = 0, list = {} } s.n = s.n + 1 ctx.state.last:set("k", s) batch[1].labels.l = json.encode(ctx.state.last:get("k"))`, `const s = ctx.state.last.get("k") ?? { n: 0, list: [] }; s.n++; ctx.state.last.set("k", s); batch[0].labels.l = json.encode(ctx.state.last.get("k"))`,
			"# TYPE a counter\na{l=\"{\\\"n\\\":2,\\\"list\\\":{}}\"} 1\na{l=\"y\"} 2.5\nnan NaN\nend stale\n", "# TYPE a counter\na{l=\"{\\\"n\\\":2,\\\"list\\\":[]}\"} 1\na{l=\"y\"} 2.5\nnan NaN\nend stale\n"},
		{`for i = 1, 5 do ctx.state.seen:add("k" .. i) end batch[1].labels.l = tostring(ctx.state.seen:has("k1")) .. tostring(ctx.state.seen:has("k5"))`, `for (let i = 1; i <= 5; i++) ctx.state.seen.add("k" + i); batch[0].labels.l = String(ctx.state.seen.has("k1")) + ctx.state.seen.has("k5")`,
			"# TYPE a counter\na{l=\"truefalse\"} 1\na{l=\"y\"} 2.5\nnan NaN\nend stale\n", "# TYPE a counter\na{l=\"x\"} 1\na{l=\"y\"} 2.5\nnan NaN\nend stale\nerror: in metrics: cannot add to state seen: it has all of its 3 entries (max); make it larger, or let go of old entries with ttl or on_full = \"evict\"\n"},
		{`ctx.state.recent:push(7) ctx.state.recent:push("x") batch[1].value = ctx.state.recent:pop() batch[2].labels.l = ctx.state.recent:pop()`, `ctx.state.recent.push(7); ctx.state.recent.push("x"); batch[0].value = ctx.state.recent.pop(); batch[1].labels.l = ctx.state.recent.pop()`,
			"# TYPE a counter\na{l=\"x\"} 7\na{l=\"x\"} 2.5\nnan NaN\nend stale\n", ""},
		{`ctx.state.last:set("k", function() end)`, `ctx.state.last.set("k", () => {})`,
			"# TYPE a counter\na{l=\"x\"} 1\na{l=\"y\"} 2.5\nnan NaN\nend stale\nerror: in metrics: cannot call set: argument value cannot keep a function in state: it must be text, a number, a bool, or a list or map of these\n", ""},
		{`ctx.state.total:add("k", "one")`, `ctx.state.total.add("k", "one")`,
			"# TYPE a counter\na{l=\"x\"} 1\na{l=\"y\"} 2.5\nnan NaN\nend stale\nerror: in metrics: cannot call add: argument by must be a number, not a string\n", ""},
		// Arguments and the log.
		{`batch[1].value = ctx.args.size + #ctx.args.names batch[1].labels.l = ctx.args.tags.a .. ctx.args.tags.b`, `batch[0].value = ctx.args.size + ctx.args.names.length; batch[0].labels.l = ctx.args.tags.a + ctx.args.tags.b`,
			"# TYPE a counter\na{l=\"12\"} 3.5\na{l=\"y\"} 2.5\nnan NaN\nend stale\n", ""},
		{`ctx.log.info("seen", { b = true, a = 1.5, s = "x y" })`, `ctx.log.info("seen", { b: true, a: 1.5, s: "x y" })`,
			"# TYPE a counter\na{l=\"x\"} 1\na{l=\"y\"} 2.5\nnan NaN\nend stale\nlogged: info: seen b=true a=1.5 s=x y\n", ""},
		{`ctx.log.warn("now", { t = ctx.now() })`, `ctx.log.warn("now", { t: ctx.now() })`,
			"# TYPE a counter\na{l=\"x\"} 1\na{l=\"y\"} 2.5\nnan NaN\nend stale\nlogged: warn: now t=1735689600000\n", ""},
		// Histograms and text.
		{`batch[1].labels.l = tostring(batch[1])`, `batch[0].labels.l = String(batch[0])`,
			"# TYPE a counter\na{l=\"a{l=\\\"x\\\"} 1 1735689600000\"} 1\na{l=\"y\"} 2.5\nnan NaN\nend stale\n", ""},
		{`batch[1].labels.l = tostring(#batch:text())`, `batch[0].labels.l = String(batch.text().length)`,
			"# TYPE a counter\na{l=\"115\"} 1\na{l=\"y\"} 2.5\nnan NaN\nend stale\n", ""},
	})
}

// TestLanguagesAgreeOnLogs runs the same operations on log lines in Lua and in
// TypeScript.
func TestLanguagesAgreeOnLogs(t *testing.T) {
	const in = "{app=\"a\"} {trace=\"t\"} {\"level\":\"info\",\"n\":1.5,\"big\":12345678901234567890}\n{app=\"b\"} level=warn msg=\"a b\"\n{} \"\"\n"
	runBoth(t, "logs", in, []operation{
		{`batch:each(function(r) r.line = r.line:upper() end)`, `batch.each((r: any) => { r.line = r.line.toUpperCase() })`,
			"{app=\"a\"} {trace=\"t\"} {\"LEVEL\":\"INFO\",\"N\":1.5,\"BIG\":12345678901234567890}\n{app=\"b\"} LEVEL=WARN MSG=\"A B\"\n{} \"\"\n", ""},
		{`batch:each(function(r) r.labels.level = r:json("level") or "none" end)`, `batch.each((r: any) => { r.labels.level = r.json("level") ?? "none" })`,
			"{app=\"a\",level=\"info\"} {trace=\"t\"} {\"level\":\"info\",\"n\":1.5,\"big\":12345678901234567890}\n{app=\"b\",level=\"none\"} level=warn msg=\"a b\"\n{level=\"none\"} \"\"\n", ""},
		{`batch:each(function(r) r.labels.n = r:json("n") end)`, `batch.each((r: any) => { r.labels.n = r.json("n") })`,
			"{app=\"a\",n=\"1.5\"} {trace=\"t\"} {\"level\":\"info\",\"n\":1.5,\"big\":12345678901234567890}\n{app=\"b\"} level=warn msg=\"a b\"\n{} \"\"\n", ""},
		{`batch:each(function(r) r.labels.big = tostring(r:json("big")) end)`, `batch.each((r: any) => { r.labels.big = String(r.json("big") ?? "nil") })`,
			"{app=\"a\",big=\"12345678901234567890\"} {trace=\"t\"} {\"level\":\"info\",\"n\":1.5,\"big\":12345678901234567890}\n{app=\"b\",big=\"nil\"} level=warn msg=\"a b\"\n{big=\"nil\"} \"\"\n", ""},
		{`batch[1].metadata.trace = nil batch[2].metadata.x = 5`, `batch[0].metadata.trace = undefined; batch[1].metadata.x = 5`,
			"{app=\"a\"} {\"level\":\"info\",\"n\":1.5,\"big\":12345678901234567890}\n{app=\"b\"} {x=\"5\"} level=warn msg=\"a b\"\n{} \"\"\n", ""},
		{`batch[1].metadata = 5`, `batch[0].metadata = 5`,
			"{app=\"a\"} {trace=\"t\"} {\"level\":\"info\",\"n\":1.5,\"big\":12345678901234567890}\n{app=\"b\"} level=warn msg=\"a b\"\n{} \"\"\nerror: in logs: cannot set metadata to a number: it must be a table\n", "{app=\"a\"} {trace=\"t\"} {\"level\":\"info\",\"n\":1.5,\"big\":12345678901234567890}\n{app=\"b\"} level=warn msg=\"a b\"\n{} \"\"\nerror: in logs: cannot set metadata to a number: it must be an object\n"},
		{`batch[1].line = 5`, `batch[0].line = 5`,
			"{app=\"a\"} {trace=\"t\"} {\"level\":\"info\",\"n\":1.5,\"big\":12345678901234567890}\n{app=\"b\"} level=warn msg=\"a b\"\n{} \"\"\nerror: in logs: cannot set line to a number: it must be a string\n", ""},
		{`batch[1].line = nil`, `batch[0].line = undefined`,
			"{app=\"a\"} {trace=\"t\"} {\"level\":\"info\",\"n\":1.5,\"big\":12345678901234567890}\n{app=\"b\"} level=warn msg=\"a b\"\n{} \"\"\nerror: in logs: cannot set line to a nil: it must be a string\n", "{app=\"a\"} {trace=\"t\"} {\"level\":\"info\",\"n\":1.5,\"big\":12345678901234567890}\n{app=\"b\"} level=warn msg=\"a b\"\n{} \"\"\nerror: in logs: cannot set line to undefined: it must be a string\n"},
		{`batch[1].time = 0 batch[2].ts = batch[1].ts`, `batch[0].time = 0; batch[1].ts = batch[0].ts`,
			"{app=\"a\"} @1970-01-01T00:00:00Z {trace=\"t\"} {\"level\":\"info\",\"n\":1.5,\"big\":12345678901234567890}\n{app=\"b\"} @1970-01-01T00:00:00Z level=warn msg=\"a b\"\n{} \"\"\n", ""},
		{`batch:drop_where [[ line == "" ]]`, "batch.dropWhere(`line == \"\"`)",
			"{app=\"a\"} {trace=\"t\"} {\"level\":\"info\",\"n\":1.5,\"big\":12345678901234567890}\n{app=\"b\"} level=warn msg=\"a b\"\ndropped: 1\n", ""},
		{`batch:keep_where [[ meta.trace == "t" || line contains "warn" ]]`, "batch.keepWhere(`meta.trace == \"t\" || line contains \"warn\"`)",
			"{app=\"a\"} {trace=\"t\"} {\"level\":\"info\",\"n\":1.5,\"big\":12345678901234567890}\n{app=\"b\"} level=warn msg=\"a b\"\ndropped: 1\n", ""},
		{`batch:promote("logfmt.msg", "msg")`, `batch.promote("logfmt.msg", "msg")`,
			"{app=\"a\"} {trace=\"t\"} {\"level\":\"info\",\"n\":1.5,\"big\":12345678901234567890}\n{app=\"b\",msg=\"a b\"} level=warn msg=\"a b\"\n{} \"\"\n", ""},
		{`batch:set_line("{app}: {line}")`, `batch.setLine("{app}: {line}")`,
			"{app=\"a\"} {trace=\"t\"} a: {\"level\":\"info\",\"n\":1.5,\"big\":12345678901234567890}\n{app=\"b\"} b: level=warn msg=\"a b\"\n{} \": \"\n", ""},
		{`batch:match([[(\w+)=(\w+)]], function(k, v, r) r.labels[k] = v end)`, `batch.match("(\\w+)=(\\w+)", (k: string, v: string, r: any) => { r.labels[k] = v })`,
			"{app=\"a\"} {trace=\"t\"} {\"level\":\"info\",\"n\":1.5,\"big\":12345678901234567890}\n{app=\"b\",level=\"warn\"} level=warn msg=\"a b\"\n{} \"\"\n", ""},
		{`batch:json({ "level" }, function(level, r) if not level then r:drop() end end)`, `batch.json(["level"], (level: any, r: any) => { if (!level) r.drop() })`,
			"{app=\"a\"} {trace=\"t\"} {\"level\":\"info\",\"n\":1.5,\"big\":12345678901234567890}\ndropped: 2\n", ""},
		{`batch:each(function(r) if r.line == "" then error("empty") end r.labels.k = "1" end)`, `batch.each((r: any) => { if (r.line === "") throw new Error("empty"); r.labels.k = "1" })`,
			"{app=\"a\",k=\"1\"} {trace=\"t\"} {\"level\":\"info\",\"n\":1.5,\"big\":12345678901234567890}\n{app=\"b\",k=\"1\"} level=warn msg=\"a b\"\n{} \"\"\nerror: in each: empty\n", ""},
		{`ctx.route("odd", batch[2])`, `ctx.route("odd", batch[1])`,
			"{app=\"a\"} {trace=\"t\"} {\"level\":\"info\",\"n\":1.5,\"big\":12345678901234567890}\n{} \"\"\nrouted: {app=\"b\"} level=warn msg=\"a b\"\n", ""},
		{`ctx.emit { name = "lines", value = #batch }`, `ctx.emit({ name: "lines", value: batch.length })`,
			"lines 3\n{app=\"a\"} {trace=\"t\"} {\"level\":\"info\",\"n\":1.5,\"big\":12345678901234567890}\n{app=\"b\"} level=warn msg=\"a b\"\n{} \"\"\n", ""},
		{`ctx.emit { line = "x", metadata = { m = 1 }, ts = "1" }`, `ctx.emit({ line: "x", metadata: { m: 1 }, ts: 1n })`,
			"{app=\"a\"} {trace=\"t\"} {\"level\":\"info\",\"n\":1.5,\"big\":12345678901234567890}\n{app=\"b\"} level=warn msg=\"a b\"\n{} \"\"\n{} @1970-01-01T00:00:00.000000001Z {m=\"1\"} x\n", ""},
		{`for g, app in batch:group_by { "app" } do g[1].line = tostring(app) .. #g end`, `for (const [g, app] of batch.groupBy(["app"])) g[0].line = String(app ?? "nil") + g.length`,
			"{app=\"a\"} {trace=\"t\"} a1\n{app=\"b\"} b1\n{} nil1\n", ""},
		{`batch[1].labels = { ["odd name"] = "x" }`, `batch[0].labels = { "odd name": "x" }`,
			"{\"odd name\"=\"x\"} {trace=\"t\"} {\"level\":\"info\",\"n\":1.5,\"big\":12345678901234567890}\n{app=\"b\"} level=warn msg=\"a b\"\n{} \"\"\n", ""},
	})
}
