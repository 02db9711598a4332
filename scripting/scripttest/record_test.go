package scripttest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir/scripting/scripttest"
)

// A recorded test passes, in each language, and fails after a change of the script.
func TestRecord(t *testing.T) {
	f := func(script, path string, r scripttest.Recording, bugFrom, bugTo string, want, not []string) {
		t.Helper()
		write(t, archive(script))
		r.Node = r.Component + ".default"
		test, err := scripttest.Record(t.Context(), options(), path, r)
		if err != nil {
			t.Fatal(err)
		}
		text := test.Text
		if differ := strings.Contains(text, "different output"); differ != (len(test.Differ) > 0) {
			t.Errorf("the calls that differ are %d in\n%s", test.Differ, text)
		}
		if name := filepath.Base(path); strings.Replace(name, "_test.lua", "_recorded_test.lua", 1) != test.Name && strings.Replace(name, ".test.js", "_recorded.test.js", 1) != test.Name {
			t.Errorf("got the name %s for %s", test.Name, path)
		}
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("the test does not contain %q:\n%s", w, text)
			}
		}
		for _, w := range not {
			if strings.Contains(text, w) {
				t.Errorf("the test contains %q:\n%s", w, text)
			}
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		o := options()
		o.Paths = []string{path}
		if rep, err := scripttest.Run(t.Context(), o); err != nil || !rep.OK() {
			t.Fatalf("the test does not pass: %v, %+v\n%s", err, rep, text)
		}
		write(t, archive(strings.Replace(script, bugFrom, bugTo, 1)))
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if rep, err := scripttest.Run(t.Context(), o); err != nil || rep.Count(scripttest.Failed) != 1 {
			t.Errorf("the test did not find the bug: %v, %+v\n%s", err, rep, text)
		}
	}
	at := time.Date(2026, 2, 3, 4, 5, 6, 700_800_900, time.UTC)
	calls := []scripttest.RecordedCall{
		{Began: at, In: "up{job=\"a\",pod=\"x\"} 1 5000\n", Out: "up{job=\"a\",mark=\"m]]\",pod=\"x\"} 1 5000\n"},
		{Began: at.Add(1500 * time.Millisecond), In: "up{job=\"a\",pod=\"y\"} 2 5000\n", Out: "up{job=\"a\",mark=\"other\",pod=\"y\"} 2 5000\n", Outside: 3},
		{Began: at, In: "up{job=\"a\",pod=\"x\"} 3 5000\n", Partial: true},
	}
	args := map[string]any{"mark": "m]]", "size": 2.0, "forward_to": []any{"a.b.c.receiver"}, "left": "default"}
	const lua = `
-- scripts/a/mark.lua --
local weir = require "weir"
return weir.transform {
  args = { mark = weir.arg.string {}, size = weir.arg.number {}, left = weir.arg.string { default = "default" } },
  metrics = function(batch, ctx) batch:set_label("mark", ctx.args.mark) end,
}
`
	common := []string{"different output in these calls: 2.", "The input of 1 calls is a part", "3 records outside", "2026-02-03T04:05:06.700Z", "1500ms", `pod="pod-2"`}
	f(lua, "scripts/a/mark_test.lua", scripttest.Recording{Component: "a.mark", Args: args, Calls: calls, Mask: []string{"pod"}}, `"mark", ctx`, `"marc", ctx`,
		append(common, `{ mark = "m]]", size = 2 }`), []string{"default =", `pod="x"`, `pod="y"`})
	f(lua, "scripts/a/mark.test.js", scripttest.Recording{Component: "a.mark", Args: args, Calls: calls, Mask: []string{"pod"}}, `"mark", ctx`, `"marc", ctx`,
		append(common, `{ mark: "m]]", size: 2 }`), []string{`pod="x"`})

	// Log lines, the time, and a call that fails.
	f(`
-- scripts/a/when.lua --
local weir = require "weir"
return weir.transform { logs = function(batch, ctx)
  batch:each(function(l)
    if l.line == "bad" then error("no") end
    l.line = l.line .. " at " .. ctx.now()
  end)
end }
`, "scripts/a/when_test.lua", scripttest.Recording{Component: "a.when", Calls: []scripttest.RecordedCall{
		{Began: at, In: "{app=\"a\"} @2026-02-03T04:05:06Z x\n", Out: "{app=\"a\"} @2026-02-03T04:05:06Z x at 1770091506700\n"},
		{Began: at, In: "{app=\"a\"} @2026-02-03T04:05:06Z bad\n", Out: "{app=\"a\"} @2026-02-03T04:05:06Z bad\n"},
	}}, `" at "`, `" AT "`, []string{"x at 1770091506700", "t:failing(input)", "t:logs(input)"}, []string{"different"})
}

// A test can have input that somebody wrote, and an edited script.
func TestRecordEdited(t *testing.T) {
	const script = "local weir = require \"weir\"\nreturn weir.transform { metrics = function(batch) batch:set_label(\"v\", \"1\") end }\n"
	write(t, archive("\n-- scripts/a/x.lua --\n"+script))
	o := options()
	o.Edited = map[string]string{"a.x": strings.Replace(script, `"1"`, `"edited"`, 1)}
	r := scripttest.Recording{Node: "a.x.default", Component: "a.x", Calls: []scripttest.RecordedCall{{Began: time.Unix(1_800_000_000, 0), In: "up 1\n", Given: true}}}
	test, err := scripttest.Record(t.Context(), o, "", r)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(test.Text, `up{v="edited"} 1`) || !strings.Contains(test.Text, "-- Written in the playground of a.x.default;") || strings.Contains(test.Text, "different output") || len(test.Differ) > 0 {
		t.Errorf("got the test\n%s", test.Text)
	}
	o.Edited["a.x"] = "return ("
	if _, err := scripttest.Record(t.Context(), o, "", r); err == nil || !strings.Contains(err.Error(), "x.lua:1") {
		t.Errorf("got %v", err)
	}
}

// Scripts whose tests could not repeat the output are refused.
func TestRecordRefuses(t *testing.T) {
	f := func(script string, r scripttest.Recording, path, want string) {
		t.Helper()
		write(t, archive("\n-- scripts/a/x.lua --\nlocal weir = require \"weir\"\n"+script))
		r.Node, r.Component = "a.x.default", "a.x"
		if r.Calls == nil {
			r.Calls = []scripttest.RecordedCall{{Began: time.Unix(1_800_000_000, 0), In: "up 1 5000\n"}}
		}
		if _, err := scripttest.Record(t.Context(), options(), path, r); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	const plain = "return weir.transform { metrics = function() end }"
	f(`return weir.transform { needs = { http = true }, metrics = function(_, ctx) ctx.http.get("http://a/") end }`, scripttest.Recording{}, "", "an answer that was not recorded: GET http://a/")
	f(`return weir.sink { send = function() end }`, scripttest.Recording{}, "", "it is a sink, which sends no records to other nodes; write a test by hand with mocks for its requests, with input from 'weir tap ")
	f(`return weir.transform { outputs = { "b" }, metrics = function() end }`, scripttest.Recording{}, "", "its script has several outputs; write a test by hand with input from 'weir tap ")
	f(`return weir.source { poll = function() end }`, scripttest.Recording{}, "", "it is a source, whose output does not follow")
	f(plain, scripttest.Recording{}, "scripts/a/y.lua", "ends in _test.lua")
	f(plain, scripttest.Recording{Args: map[string]any{"nothing": 1.0}}, "", "nothing")
	f(`local n = {}
return weir.transform { metrics = function(batch) batch:set_label("n", tostring(n):gsub("^table: ", "")) end }`, scripttest.Recording{}, "", "its output differs from run to run")
	// 'weir test' reads no file that is larger.
	large := []scripttest.RecordedCall{{Began: time.Unix(1_800_000_000, 0), In: strings.Repeat("up 1 5000\n", 20_000)}}
	f(plain, scripttest.Recording{Calls: large}, "", "KiB, and the limit is 256 KiB; record fewer calls")
}

// A test chooses the time at which the clock of a component begins.
func TestTimeOfComponent(t *testing.T) {
	write(t, archive(`
-- scripts/a/when.lua --
local weir = require "weir"
return weir.transform { metrics = function(batch, ctx) batch:set_label("at", tostring(ctx.now())) end }
-- scripts/a/when_test.lua --
local weir = require "weir"
it("begins at a time", function()
  assert.same('up{at="1770091506700"} 1', weir.test.component("when.lua", nil, "2026-02-03T04:05:06.7Z"):metrics "up 1")
end)
it("has a default", function()
  assert.same('up{at="1735689600000"} 1', weir.test.component("when.lua"):metrics "up 1")
end)
it("checks the time", function()
  assert.has_error(function() weir.test.component("when.lua", {}, "noon") end, 'cannot use "noon" as the time of the clock')
end)
`))
	rep, err := scripttest.Run(t.Context(), options())
	if err != nil || !rep.OK() || rep.Count(scripttest.Passed) != 3 {
		t.Errorf("got %v, %+v", err, rep)
	}
}
