package lua_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/lua"
	"github.com/weir-run/weir/scripting/scripttest"
	"github.com/weir-run/weir/stdlib"
)

func lint(t *testing.T, src string) string {
	t.Helper()
	p, err := lua.New().Compile(scripting.File{Name: "x.lua", Text: src}, scripting.Env{Modules: stdlib.Modules()})
	if err != nil {
		t.Fatalf("cannot compile: %v", err)
	}
	return findings(p.(scripting.Linted).Lint())
}

// findings are lines of position, message and hint.
func findings(fs []scripting.Finding) string {
	var b strings.Builder
	for _, f := range fs {
		if f.Warning {
			b.WriteString("warning: ")
		}
		fmt.Fprintf(&b, "%s: %v", strings.TrimPrefix(f.Err.Pos(), "x.lua:"), f.Err.Err)
		if f.Err.Hint != "" {
			b.WriteString(" | " + f.Err.Hint)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

const lintHead = "local weir, re, json = require \"weir\", require \"re\", require \"json\"\n"

func TestLint(t *testing.T) {
	f := func(body string, want ...string) {
		t.Helper()
		src := lintHead + "return weir.transform { args = { region = weir.arg.string { default = \"eu\" }, match = weir.arg.regexp { default = \"x\" }, auth = weir.arg.block { fields = { user = weir.arg.string {} }, optional = true } },\nmetrics = function(batch, ctx)\n" + body + "\nend }"
		text := strings.Join(want, "\n")
		if text != "" {
			text += "\n"
		}
		if diff := cmp.Diff(text, lint(t, src)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", body, diff)
		}
	}
	// Operations and fields.
	f(`batch:drop_wher [[ value > 1 ]]`, `4:7: a batch has no "drop_wher": did you mean drop_where?`)
	f(`batch:each(function(m) m.valeu = 1 end)`, `4:26: cannot set "valeu" of a record: did you mean value?`)
	f(`batch:each(function(m) local x = m.labls end)`, `4:36: a record has no "labls": did you mean labels?`)
	f(`for r in batch:records() do r.type = "x" end`, `4:31: cannot set "type" of a record: what can be set is name, value, labels, time and stale`)
	f(`batch[1].help = "x"`, `4:10: cannot set "help" of a record: what can be set is name, value, labels, time and stale`)
	f(`local c = batch[1]:copy() c.help = "x" c.hlep = "y"`, `4:42: cannot set "hlep" of a copy of a record: did you mean help?`)
	f(`batch.drop_where("value > 1")`, `4:7: cannot call batch.drop_where without its batch: write a colon, batch:drop_where`)
	f(`batch.drop_where(batch, "value > 1")`)
	f(`ctx.args = {}`, `4:5: cannot set "args" of ctx: it is read-only`)
	f("local b = batch\n"+`b:txet()`, `5:3: a batch has no "txet": did you mean text?`)
	// ctx.
	f(`ctx.log.inof("x")`, `4:9: ctx.log has no "inof": did you mean info?`)
	f(`ctx.log:info("x")`)
	f(`local x = ctx.args.regoin`, `4:20: there is no argument "regoin": declare it in args | did you mean region?`)
	f(`local x = ctx.args.auth.usre`, `4:25: there is no argument "usre": declare it in args | did you mean user?`)
	f(`local x = ctx.args.auth.user .. ctx.args.region`)
	f(`ctx.args.match:mtach("x")`, `4:16: a re.Pattern has no "mtach": did you mean match?`)
	f(`ctx.args.region = "x"`, `4:10: cannot assign to ctx.args.region: it is read-only`)
	f(`ctx.emit { name = "a", vlaue = 1 }`, `4:24: there is no key "vlaue" here | did you mean value?`)
	f(`ctx.http.get("https://x")`, `4:5: cannot use ctx.http: the script does not say that it needs it | write needs = { http = … } in the definition; 'weir doc weir.transform' tells more`)
	// Modules and constants.
	f(`json.decod("1")`, `4:6: module json has no "decod" | did you mean decode?`)
	f(`json.decode()`, `4:6: cannot call json.decode: argument s is missing; it is a string`)
	f(`json.decode(1, 2)`, `4:6: cannot call json.decode: it takes 1 arguments, not 2`, `4:6: cannot call json.decode: argument s must be a string, not a number`)
	f(`json.decode(json.encode({}))`)
	f(`local x = re.compile [[(]]`, "4:14: cannot call re.compile: argument pattern is wrong: cannot compile pattern \"(\": missing closing ): `(`")
	f(`local x = re.match("a)", "b")`, "4:14: cannot call re.match: argument pattern is wrong: cannot compile pattern \"a)\": unexpected ): `a)`")
	f(`local x = re.compile("a"):fnid("b")`, `4:27: a re.Pattern has no "fnid": did you mean find?`)
	f(`batch:scale(nil, "x")`, `4:7: cannot call batch.scale: argument factor must be a number, not a string`)
	f(`batch:set_label("a", 1) batch:drop_label(1)`)
	f(`batch:drop_label()`, `4:7: cannot call batch.drop_label: argument name is missing; it is a string`)
	f(`batch:drop_label("a", "b")`, `warning: 4:7: cannot call batch.drop_label: it takes 1 arguments, not 2`)
	f(`json.decode = nil`, `4:6: cannot assign to json.decode: it is read-only`)
	f(`batch:drop_label(unpack { "a" })`)
	// Globals.
	f(`foo()`, `4:1: there is no global "foo": it is nil`)
	f(`local t = tostrign(1)`, `4:11: there is no global "tostrign": it is nil | did you mean tostring?`)
	f(`local t = os.time()`, `4:11: there is no global "os": it is nil | there is no os in a script: the clock of a batch is ctx.now, times are formatted by require "time"`)
	f(`local s = time.now()`, `4:11: there is no global "time": it is nil | write local time = require "time" above`)
	// Values that are not known are not reported.
	f("local batch = { drop_wher = function() end }\nbatch:drop_wher()")
	f("if ctx then batch = {} end\nbatch:drop_wher()")
	f(`local function f(batch) batch:drop_wher() end`)
	f(`for k, v in pairs(batch[1].labels) do batch[1].labels[k] = v .. 1 end batch[1].labels.any = "x"`)
	f(`local t = {} t.x = 1 t:y() t["a" .. 1] = nil`)
	f(`for i, job, v in batch:rows("job", "value") do batch:set(i, "value", v.x) batch:set(i, { value = 1 }) end`)
}

func TestLintFiles(t *testing.T) {
	f := func(src, want string) {
		t.Helper()
		if diff := cmp.Diff(want, lint(t, lintHead+src)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", src, diff)
		}
	}
	// The hook series.
	f(`return weir.transform { series = function(s, ctx) local x = s.value ctx.log.info("x") s.labels.a = s.nam s.help = "" end }`,
		`2:63: cannot read value in series: the hook can read only labels because its result is cached; use metrics
2:73: cannot use ctx.log in series: its result is cached and may depend only on labels and ctx.args; use metrics
2:102: a series has no "nam": did you mean name?
2:108: cannot set "help" of a series: what can be set is name and labels
`)
	// A hook that is written before.
	f("local function hook(b, c)\n  b:drop_wher()\n  c.args.x = 1\nend\nreturn weir.transform { metrics = hook }",
		"3:5: a batch has no \"drop_wher\": did you mean drop_where?\n4:10: cannot assign to ctx.args.x: it is read-only\n")
	// Timers.
	f(`return weir.transform { every = { ["30s"] = function(ctx) ctx.emitt {} end }, series = function() end }`,
		"2:63: ctx has no \"emitt\": did you mean emit?\n")
	// Names that the definition declares.
	f("return weir.transform { outputs = { \"errors\" }, state = { seen = weir.state.set {} }, metrics = function(batch, ctx)\n"+
		"  ctx.state.sene:has(\"x\")\n  ctx.state.seen:hass(\"x\")\n  ctx.state.seen = 1\n  ctx.route(\"erors\", batch[1])\n  ctx.route(\"errors\", batch[1])\nend }",
		`3:13: there is no state "sene": declare it in state | did you mean seen?
4:18: a state.set has no "hass": did you mean has?
5:13: cannot set "seen" of ctx.state: it is read-only
6:14: cannot route to "erors": there is errors; did you mean errors?
`)
	// Tables that live as long as a VM.
	f("local seen, buf = {}, {}\nreturn weir.transform { metrics = function(batch)\n  for i, p in batch:rows(\"path\") do\n    seen[p] = true\n    seen[p] = nil\n    buf[#buf + 1] = p\n  end\nend }",
		`warning: 5:5: seen lives as long as its VM: each VM has its own, and a reload empties it | declare it as state = { seen = weir.state.lru { max = 10000 } }, which is shared, bounded and kept over a reload
warning: 6:5: seen keeps the key although its value is nil: what is removed from a table takes up its place | declare it as state = { seen = weir.state.lru { max = 10000 } }, which is shared, bounded and kept over a reload
`)
	f("local names = {}\nfor _, n in ipairs { \"a\" } do names[n] = true end\nreturn weir.transform { metrics = function() end }", "")
}

func TestLintTests(t *testing.T) {
	f := func(src, want string) {
		t.Helper()
		found, err := lua.New().LintTest(scripting.File{Name: "x.lua", Text: src}, scripting.Env{Modules: stdlib.Modules()}, scripttest.API(scripting.Busted))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, findings(found)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", src, diff)
		}
	}
	f(`local t = weir.test.component("a.lua")
it("x", function()
  local out = t:metrics [[ a 1 ]]
  assert.same({}, out:lable_values("x"))
  t:metricss("a 1")
  t:advance("30s")
end)`, `4:23: a batch has no "lable_values": did you mean label_values?
5:5: a component has no "metricss": did you mean metrics?
`)
	f("local s = spy.on({}, \"x\")\nstub({}, \"x\")\nmock({})", "")
	f("describe(\"x\")", "1:1: cannot call describe: argument fn is missing; it is a function\n")
	f("weir.test.componnet()", "1:11: module weir.test has no \"componnet\" | did you mean component?\n")
}
