package scripttest_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/scripting/scripttest"
)

// outsideRecording is a recording of a script that uses everything outside of weir.
// Masked arguments make other requests than those that were recorded.
func outsideRecording() scripttest.Recording {
	at := time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)
	answer := func(after time.Duration, kind, key, text string) component.Answer {
		return component.Answer{Time: at.Add(after), Kind: kind, Key: key, Text: text, Status: map[string]int{component.AnswerHTTP: 200}[kind]}
	}
	setup := answer(-time.Hour, component.AnswerFile, "/etc/site", "lab\n")
	setup.Setup = true
	region := answer(0, component.AnswerEnv, "REGION", "eu")
	region.Setup = true
	typed := answer(11*time.Second, component.AnswerHTTP, "GET http://a.test/owner/web-1?key=(secret)", `{"owner":"bob"}`)
	typed.Header = map[string]string{"Content-Type": "application/json"}
	failed := component.Answer{Time: at.Add(21 * time.Second), Kind: component.AnswerHTTP, Key: "GET http://a.test/owner/web-1?key=(secret)", Error: "no route"}
	return scripttest.Recording{
		Node: "a.ask.default", Component: "a.ask", Args: map[string]any{"key": "(secret)"}, Mask: []string{"pod"},
		State: map[string]any{"seen": map[string]any{"web-1": json.Number("41")}, "names": []any{"x"}, "last": []any{json.Number("1"), "web-1"}},
		Answers: []component.Answer{
			region, setup,
			answer(1*time.Second, component.AnswerHTTP, "GET http://a.test/owner/web-1?key=(secret)", `{"owner":"ann"}`),
			answer(1*time.Second, component.AnswerExec, "hostid -s", "7"), typed,
			answer(11*time.Second, component.AnswerExec, "hostid -s", "8"), failed,
			answer(21*time.Second, component.AnswerExec, "hostid -s", "9"),
		},
		Calls: []scripttest.RecordedCall{
			{Began: at, Ended: at.Add(2 * time.Second), In: "up{pod=\"web-1\"} 1 5000\n", Out: "up{id=\"7\",owner=\"ann\",pod=\"web-1\",region=\"eu\",seen=\"42\",site=\"lab\"} 1 5000\n"},
			{Began: at.Add(10 * time.Second), Ended: at.Add(12 * time.Second), In: "up{pod=\"web-1\"} 1 5000\n", Out: "up{id=\"8\",owner=\"bob\",pod=\"web-1\",region=\"eu\",seen=\"43\",site=\"lab\"} 1 5000\n"},
			{Began: at.Add(20 * time.Second), Ended: at.Add(22 * time.Second), In: "up{pod=\"web-1\"} 1 5000\n", Out: "up{id=\"9\",owner=\"none\",pod=\"web-1\",region=\"eu\",seen=\"44\",site=\"lab\"} 1 5000\n"},
		},
	}
}

const askLua = `
-- scripts/a/ask.lua --
local weir = require "weir"
local json = require "json"
local site
return weir.transform {
  args = { key = weir.arg.secret {} },
  needs = { http = true, env = { "REGION" }, read = true, exec = { "hostid" } },
  state = { seen = weir.state.counter { max = 10 }, names = weir.state.set { max = 10 }, last = weir.state.queue { max = 10 } },
  setup = function(ctx) site = assert(ctx.read("/etc/site")):gsub("\n", "") end,
  metrics = function(batch, ctx)
    local pod = batch[1].labels.pod
    local answer = ctx.http.get("http://a.test/owner/" .. pod, { query = { key = ctx.args.key } })
    batch:set_label("owner", answer and json.decode(answer.body).owner or "none")
    batch:set_label("id", assert(ctx.exec("hostid", { "-s" })).stdout)
    batch:set_label("region", ctx.env.REGION)
    batch:set_label("site", site)
    batch:set_label("seen", tostring(ctx.state.seen:add(pod)))
  end,
}
`

// A recorded test has mocks of everything outside of weir and the state, and secrets
// and labels are masked in it. It passes, and fails after a change of the script.
func TestRecordOutside(t *testing.T) {
	f := func(path string, want []string) {
		t.Helper()
		write(t, archive(askLua))
		test, err := scripttest.Record(t.Context(), options(), path, outsideRecording())
		if err != nil {
			t.Fatal(err)
		}
		text := test.Text
		want = append(want, `seen="42"`, `seen="44"`, `owner="ann"`, `owner="bob"`, `owner="none"`, `id="9"`, `"GET http://a.test/owner/pod-1?key=%28secret%29"`, `"no route"`)
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("the test does not contain %q", w)
			}
		}
		for _, w := range []string{"web-1", "different output"} {
			if strings.Contains(text, w) {
				t.Errorf("the test contains %q", w)
			}
		}
		save := func() {
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		save()
		o := options()
		o.Paths = []string{path}
		if rep, err := scripttest.Run(t.Context(), o); err != nil || !rep.OK() {
			t.Fatalf("the test does not pass: %v, %+v\n%s", err, rep, text)
		}
		for _, bug := range []struct{ from, to string }{{`.owner or`, `.owne or`}, {`seen:add(pod)`, `seen:add("x")`}, {`.. pod, {`, `.. "x", {`}} {
			write(t, archive(strings.Replace(askLua, bug.from, bug.to, 1)))
			save()
			if rep, err := scripttest.Run(t.Context(), o); err != nil || rep.OK() {
				t.Errorf("the test did not find the bug %q: %v, %+v\n%s", bug.to, err, rep, text)
			}
		}
		if t.Failed() {
			t.Log(text)
		}
	}
	f("scripts/a/ask_test.lua", []string{
		`weir.test.env { REGION = "eu" }`, `weir.test.files { ["/etc/site"] = "lab\n" }`, `weir.test.exec { ["hostid -s"] = { code = 0, stdout = "7" } }`,
		`t:set_state("seen", { ["pod-1"] = 41 })`, `t:set_state("names", { "x" })`, `t:set_state("last", { 1, "pod-1" })`,
	})
	f("scripts/a/ask.test.ts", []string{
		`import { component, describe, env, exec, expect, files, http, test } from "weir/test";`,
		`env({ REGION: "eu" });`, `files({ "/etc/site": "lab\n" });`, `t.setState("seen", { "pod-1": 41 });`,
	})
}

// Answers that were not recorded, or are too large, are errors.
func TestRecordOutsideRefuses(t *testing.T) {
	f := func(change func(r *scripttest.Recording), want string) {
		t.Helper()
		write(t, archive(askLua))
		r := outsideRecording()
		change(&r)
		if _, err := scripttest.Record(t.Context(), options(), "", r); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	f(func(r *scripttest.Recording) { r.Answers = r.Answers[:2] }, "call 1: the test needs an answer that was not recorded: GET http://a.test/owner/pod-1")
	f(func(r *scripttest.Recording) { r.Answers[1].Large = true }, "an answer is too large to be recorded: the file /etc/site")
	f(func(r *scripttest.Recording) { r.Answers = r.Answers[:1] }, "not recorded: the file /etc/site")
	f(func(r *scripttest.Recording) { r.State["seen"] = []any{"x"} }, "cannot fill the state seen")
	f(func(r *scripttest.Recording) { r.State["other"] = []any{"x"} }, `cannot find state "other"`)
}

// A test fills ctx.state.
func TestSetState(t *testing.T) {
	write(t, archive(`
-- scripts/a/keep.lua --
local weir = require "weir"
return weir.transform {
  state = {
    map = weir.state.map { max = 9 }, lru = weir.state.lru { max = 9 }, counter = weir.state.counter { max = 9 },
    set = weir.state.set { max = 9 }, queue = weir.state.queue { max = 2 },
  },
  metrics = function(batch, ctx) ctx.state.counter:add("n") end,
}
-- scripts/a/keep_test.lua --
local weir = require "weir"
it("replaces the contents", function()
  local t = weir.test.component "keep.lua"
  t:metrics "up 1"
  t:set_state("counter", { a = 2 })
  assert.same({ a = 2 }, t:state "counter")
  t:metrics "up 1"
  assert.same({ a = 2, n = 1 }, t:state "counter")
  for _, name in ipairs { "map", "lru" } do
    t:set_state(name, { a = 1, b = { "x", { y = true } } })
    assert.same({ a = 1, b = { "x", { y = true } } }, t:state(name))
    t:set_state(name, {})
    assert.same({}, t:state(name))
  end
  t:set_state("set", { "b", "a" })
  assert.same({ "a", "b" }, t:state "set")
  t:set_state("queue", { "b", 1 })
  assert.same({ "b", 1 }, t:state "queue")
  t:set_state("queue", {})
  assert.same({}, t:state "queue")
end)
it("checks them", function()
  local t = weir.test.component "keep.lua"
  assert.has_error(function() t:set_state("sett", {}) end, 'did you mean')
  assert.has_error(function() t:set_state("set", { a = 1 }) end, 'a set needs a list')
  assert.has_error(function() t:set_state("set", { 1 }) end, 'a set has strings')
  assert.has_error(function() t:set_state("map", { "a" }) end, 'a map needs values by key')
  assert.has_error(function() t:set_state("map", "a") end, 'a map needs values by key')
  assert.has_error(function() t:set_state("counter", { a = "b" }) end, 'a counter has numbers')
end)
`))
	rep, err := scripttest.Run(t.Context(), options())
	if err != nil || !rep.OK() || rep.Count(scripttest.Passed) != 2 {
		t.Errorf("got %v, %+v", err, rep)
	}
}
