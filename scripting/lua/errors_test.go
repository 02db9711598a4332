package lua_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/api"
)

// TestLoadErrors checks position and message of what makes a script unusable.
func TestLoadErrors(t *testing.T) {
	f := func(name, src string, want ...string) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			t.Helper()
			r := load(t, src)
			if r.Err == nil {
				t.Fatal("it loads")
			}
			if diff := cmp.Diff(want, strings.Split(r.Err.Error(), "\n")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if r.NewArgs != nil || r.Build != nil || r.Version == "" {
				t.Error("a broken registration has a version, but no arguments and no component")
			}
		})
	}
	const head = "local weir = require \"weir\"\n"

	f("syntax", head+"local x = = 1\n",
		`embedded/test/script.lua:2:11: syntax error near "="`, `  2 | local x = = 1`, `    |           ^`)
	f("syntax, a long token", head+"\tif x local then end\n",
		`embedded/test/script.lua:2:7: syntax error near "local"`, `  2 | if x local then end`, `    |      ^`)
	f("end missing", head+"local function f()\n  return 1\n",
		`embedded/test/script.lua:3: syntax error at the end of the file`, `  3 | return 1`, `  hint: an end or a bracket is missing`)
	f("empty", "",
		`embedded/test/script.lua: cannot use a script that does not return its definition`, `  hint: end the file with return weir.transform { … }`)
	f("half", head+"return weir.transform {\n  metrics = function(batch, ctx)\n    batch:dr",
		`embedded/test/script.lua:4: syntax error at the end of the file`, `  4 | batch:dr`, `  hint: an end or a bracket is missing`)
	f("global", head+"count = 0\nreturn weir.transform { metrics = function()\n  total = 1\nend }",
		`embedded/test/script.lua:2: cannot assign to global "count": globals are read-only [global-write]`, `  2 | count = 0`, `  hint: write local count`,
		`embedded/test/script.lua:4: cannot assign to global "total": globals are read-only [global-write]`, `  4 | total = 1`, `  hint: write local total`)
	f("unknown keys", head+"return weir.transform {\n  metrcs = function() end,\n  metrics = function() end,\n  logs = {},\n}",
		`embedded/test/script.lua:3: cannot use "metrcs" in weir.transform: there is args, series, metrics, stream, logs, sends, on_error, every, setup, teardown, migrate, version, state, outputs, needs`, `  3 | metrcs = function() end,`,
		`  hint: did you mean metrics?`,
		`embedded/test/script.lua:5: cannot use a map as hook logs: it must be a function`, `  5 | logs = {},`)
	f("hook is nil", head+"return weir.transform {\n  metrics = proces,\n}",
		`embedded/test/script.lua:3: cannot use nil as hook metrics: it must be a function`, `  3 | metrics = proces,`)
	f("no hook", head+"return weir.transform {\n}",
		`embedded/test/script.lua:2: cannot use a transform without a hook: write series or metrics, for logs stream or logs`, `  2 | return weir.transform {`)
	f("no send", head+"return weir.sink {}",
		`embedded/test/script.lua:2: cannot use a sink without the hook send: write send = function(batch, ctx) … end`, `  2 | return weir.sink {}`)
	f("key twice", head+"return weir.transform {\n  metrics = function() end,\n  metrics = function() end,\n}",
		`embedded/test/script.lua:4: cannot have "metrics" twice in one table: it is in line 3 already`, `  4 | metrics = function() end,`)
	f("args", head+"return weir.transform {\n  args = {\n    script = weir.arg.string {},\n    forward_to = weir.arg.int {},\n    n = 5,\n  },\n  metrics = function() end,\n}",
		`embedded/test/script.lua:5: cannot name an argument "forward_to": the name is reserved (forward_to, routes, script, interval, listen)`, `  5 | forward_to = weir.arg.int {},`,
		`embedded/test/script.lua:3: cannot use 5 as argument "n": write weir.arg.string{} or another type`, `  3 | args = {`,
		`embedded/test/script.lua:4: cannot name an argument "script": the name is reserved (forward_to, routes, script, interval, listen)`, `  4 | script = weir.arg.string {},`)
	f("arg default", head+"\nlocal a = weir.arg.int { default = \"x\" }",
		`embedded/test/script.lua:3: cannot use this default of weir.arg.int: "x" is not an integer`, `  3 | local a = weir.arg.int { default = "x" }`)
	f("arg option", head+"\nlocal a = weir.arg.int { min = 1, of = 2 }",
		`embedded/test/script.lua:3: cannot use "min" in weir.arg.int: there is default, optional, doc`,
		`cannot use "of" in weir.arg.int: there is default, optional, doc`, `  3 | local a = weir.arg.int { min = 1, of = 2 }`)
	f("arg type", head+"local a = weir.arg.block {}",
		`embedded/test/script.lua:2: cannot declare weir.arg.block without fields: write fields = { name = weir.arg.string {} }`, `  2 | local a = weir.arg.block {}`)
	f("expression", head+"return weir.transform { metrics = function(batch)\n  batch:drop_where(\"value >\")\n  batch:keep_where(\"args.nope == 1\")\nend }",
		`embedded/test/script.lua:3: cannot use expression: unexpected token EOF (1:7)`, ` | value >`, ` |       ^`, ` 'weir help expr' describes expressions`, `  3 | batch:drop_where("value >")`,
		`embedded/test/script.lua:4: cannot use expression: args has no "nope"; it is empty (1:6)`, ` | args.nope == 1`, ` |      ^`, ` 'weir help expr' describes expressions`, `  4 | batch:keep_where("args.nope == 1")`)
	f("module", head+"\nlocal x = require \"nope\"",
		`embedded/test/script.lua:3: cannot require "nope": module not found: there is no lib/nope.lua in the scripts folder, and the standard library has base64, csv, fake, hash, json, logfmt, math, net, prom, re, semver, text, time, url, uuid, weir, yaml`, `  3 | local x = require "nope"`)
	f("dynamic require", head+"local n = \"json\"\nlocal x = require(n)",
		`embedded/test/script.lua:3: cannot require what is no constant string: weir must know which files a component is made of`, `  3 | local x = require(n)`)
	f("runtime", head+"local x = os.time()",
		`embedded/test/script.lua:2: attempt to index a nil value with key 'time'`, `  2 | local x = os.time()`,
		`  hint: there is no os in a script: the clock of a batch is ctx.now, times are formatted by require "time"`)
	f("forever", head+"while true do end",
		`embedded/test/script.lua:2: limit exceeded: the call ran longer than 1s`, `  2 | while true do end`)
	f("error unheard", head+"local re = require \"re\"\nlocal ID = re.compile \"((\"",
		"embedded/test/script.lua:3: cannot compile pattern \"((\": missing closing ): `((`", `  3 | local ID = re.compile "(("`)
	f("error unheard in a table", head+"local re = require \"re\"\nlocal M = {}\nM.id = re.compile(\"((\")",
		"embedded/test/script.lua:4: cannot compile pattern \"((\": missing closing ): `((`", `  4 | M.id = re.compile("((")`)
	f("nil from the library", head+"local re = require \"re\"\nlocal M = { id = (re.compile(\"((\")) }\nlocal x = M.id:find(\"x\")",
		`embedded/test/script.lua:4: attempt to index a nil value with key 'find'`, `  4 | local x = M.id:find("x")`,
		"  hint: re.compile at embedded/test/script.lua:3 returned nil and an error: cannot compile pattern \"((\": missing closing ): `((`")
	for _, c := range []struct{ src, near, hint string }{
		{"if 1 != 2 then end", "Invalid token near \"!\"", "write ~= for values that differ"},
		{"if !x then end", "Invalid token near \"!\"", "write not"},
		{"if a && b then end", "Invalid token near \"&\"", "write and"},
		{"if a || b then end", "Invalid token near \"|\"", "write or"},
		{"n += 1", "parse error near \"+\"", "write n = n + 1"},
		{"n++", "parse error near \"+\"", "write n = n + 1"},
		{"// why", "syntax error near \"/\"", "a comment begins with --"},
	} {
		if got := load(t, head+c.src).Err.Error(); !strings.Contains(got, c.near) || !strings.Contains(got, "\n  hint: "+c.hint) {
			t.Errorf("%s: got %s, want %s with the hint %s", c.src, got, c.near, c.hint)
		}
	}
	f("weir not required", "return weir.transform {}",
		`embedded/test/script.lua:1: attempt to index a nil value with key 'transform'`, `  1 | return weir.transform {}`, `  hint: write local weir = require "weir" above`)
	f("module not required", head+"local x = json.decode(\"1\")",
		`embedded/test/script.lua:2: attempt to index a nil value with key 'decode'`, `  2 | local x = json.decode("1")`, `  hint: write local json = require "json" above`)
	f("enum as a list", head+"local x = weir.arg.enum { \"a\", \"b\" }",
		`embedded/test/script.lua:2: cannot use weir.arg.enum without values: write weir.arg.enum { values = { "a", "b" } }`, `  2 | local x = weir.arg.enum { "a", "b" }`)
	f("integer", head+"local x = weir.arg.integer {}",
		`embedded/test/script.lua:2: there is no argument type "integer" (did you mean weir.arg.int?): there is string, int, number, bool, duration, size, list, map, enum, secret, targets, regexp, block`, `  2 | local x = weir.arg.integer {}`)
	f("float", head+"local x = weir.arg.float {}",
		`embedded/test/script.lua:2: there is no argument type "float" (did you mean weir.arg.number?): there is string, int, number, bool, duration, size, list, map, enum, secret, targets, regexp, block`, `  2 | local x = weir.arg.float {}`)
	f("text", head+"local x = weir.arg.text {}",
		`embedded/test/script.lua:2: there is no argument type "text" (did you mean weir.arg.string?): there is string, int, number, bool, duration, size, list, map, enum, secret, targets, regexp, block`, `  2 | local x = weir.arg.text {}`)
	f("no such type", head+"local x = weir.arg.x {}",
		`embedded/test/script.lua:2: there is no argument type "x": there is string, int, number, bool, duration, size, list, map, enum, secret, targets, regexp, block`, `  2 | local x = weir.arg.x {}`)
	f("byte order mark", "\ufefflocal x = = 1",
		`embedded/test/script.lua:1:11: syntax error near "="`, `  1 | local x = = 1`, `    |           ^`)
	f("not its definition", head+"return { metrics = function() end }",
		`embedded/test/script.lua: cannot use a script that does not return its definition`, `  hint: end the file with return weir.transform { … }`)
	f("deep", head+"local x = "+strings.Repeat("(", 300)+"1"+strings.Repeat(")", 300),
		`embedded/test/script.lua:2: cannot use a file that nests deeper than 200 levels`, `  2 | local x = `+strings.Repeat("(", 147)+"…")
}

func TestErrorsInModules(t *testing.T) {
	src := "local a = require \"a\"\nlocal weir = require \"weir\"\nreturn weir.transform { metrics = function(batch)\n  a.f()\nend }"
	if got := load(t, src, "a", "\n\nlocal x = )").Err.Error(); got != "embedded/lib/a.lua:3:11: syntax error near \")\"\n  3 | local x = )\n    |           ^" {
		t.Errorf("got %s", got)
	}
	if got := load(t, src, "a", `return require "b"`, "b", `return require "a"`).Err.Error(); !strings.HasPrefix(got, `embedded/lib/b.lua:1: cannot require "a": it requires itself, directly or through others`) {
		t.Errorf("got %s", got)
	}
	f := build(t, src, "", "a", "local M = {}\nfunction M.f()\n  return nil + 1\nend\nreturn M")
	f.send(t, "m 1\n")
	if got := f.Health().Message; got != "embedded/lib/a.lua:3: in metrics: attempt to add nil and number\n  3 | return nil + 1\n  stack: embedded/lib/a.lua:3 < embedded/test/script.lua:4" {
		t.Errorf("got %s", got)
	}
}

// TestRuntimeErrors checks what health says of a hook that fails, and what
// becomes of the data.
func TestRuntimeErrors(t *testing.T) {
	f := func(body, want string) {
		t.Helper()
		fx := build(t, metrics(body), "")
		equal(t, fx.send(t, "m 1\nn 2\n"), "m 1\nn 2\n")
		h := fx.Health()
		if diff := cmp.Diff(want, h.Message); diff != "" || h.State != component.Unhealthy {
			t.Errorf("%s: %s (-want +got):\n%s", body, h.State, diff)
		}
	}
	const at = "embedded/test/script.lua:3: "
	f(`error("boom")`, at+"in metrics: boom\n  3 | error(\"boom\")")
	f(`error({ code = 1, message = "table" })`, at+"in metrics: table\n  3 | error({ code = 1, message = \"table\" })")
	f(`error("no position", 0)`, at+"in metrics: no position\n  3 | error(\"no position\", 0)")
	f(`local x = nil .. "a"`, at+"in metrics: attempt to concatenate a nil value\n  3 | local x = nil .. \"a\"")
	var operations strings.Builder
	for _, m := range api.Get().Batch.Methods {
		operations.WriteString(m.Name + "(), ")
	}
	f(`batch:nope()`, at+`in metrics: a batch has no "nope": there is `+operations.String()+"#batch and batch[i]\n  3 | batch:nope()")
	f(`batch.drop_where("x")`, at+"in metrics: cannot use string as a batch: call methods with a colon\n  3 | batch.drop_where(\"x\")")
	f(`local e = "nam == 1" batch:drop_where(e)`, at+"in metrics: cannot use expression: unknown name nam (1:1)\n | nam == 1\n | ^\n 'weir help expr' describes expressions\n  3 | local e = \"nam == 1\" batch:drop_where(e)")
	f(`batch:filter({"name"}, function() end)`, at+"in metrics: cannot filter by a nil: the function must return true to keep or false to drop\n  3 | batch:filter({\"name\"}, function() end)")
	f(`batch:set_label("__name__", "x")`, at+"in metrics: cannot use __name__ as a label: it is the record's name\n  3 | batch:set_label(\"__name__\", \"x\")")
	f(`batch:set(0.5, "value", 1)`, at+"in metrics: cannot find record 0.5: its number is a whole number, as batch:rows gives it\n  3 | batch:set(0.5, \"value\", 1)")
	f(`batch:set(1.5, "value", 1)`, at+"in metrics: cannot find record 1.5: its number is a whole number, as batch:rows gives it\n  3 | batch:set(1.5, \"value\", 1)")
	f(`batch:drop(0/0)`, at+"in metrics: cannot find record nan: its number is a whole number, as batch:rows gives it\n  3 | batch:drop(0/0)")
	f(`batch:drop(3)`, at+"in metrics: cannot find record 3: the batch has 2\n  3 | batch:drop(3)")
	f(`string.foo = 1`, at+"in metrics: cannot assign to string.foo: it is read-only\n  3 | string.foo = 1")
	f(`ctx.x = 1`, at+"in metrics: cannot assign to ctx.x: it is read-only\n  3 | ctx.x = 1")
	f(`ctx.state.x = 1`, at+"in metrics: cannot assign to ctx.state.x: it is read-only\n  3 | ctx.state.x = 1")
	f(`ctx.state.x:add("k")`, at+"in metrics: there is no state \"x\": declare it in state\n  3 | ctx.state.x:add(\"k\")")
	f(`local x = ctx.args.nope`, at+"in metrics: there is no argument \"nope\": declare it in args\n  3 | local x = ctx.args.nope")
	f(`for k in pairs(print) do end`, at+"in metrics: cannot go over a function with pairs: an iterator, such as records() and group_by() return, stands alone behind in\n  3 | for k in pairs(print) do end")
	f(`local n = #nil`, at+"in metrics: attempt to get the length of a value that has none, such as nil\n  3 | local n = #nil")
	f(`local n = -nil`, at+"in metrics: attempt to negate a value that is no number, such as nil\n  3 | local n = -nil")
	f(`local f = load("return 1")`, at+"in metrics: attempt to call a value that is no function\n  3 | local f = load(\"return 1\")\n  hint: code cannot be loaded at run time: put it into scripts/lib and require it")
	f(`local function f() return f() + 1 end f()`, at+"in metrics: stack overflow\n  3 | local function f() return f() + 1 end f()")
	f(`ctx.emit { name = "x" }`, at+"in metrics: cannot emit a record without a value, or a line if it is a log record\n  3 | ctx.emit { name = \"x\" }")
	f(`(require "re").compile()`, at+"in metrics: cannot call compile: argument pattern is missing; it is a string\n  3 | (require \"re\").compile()")
}

// TestNilOfTheLibrary checks that the error of a library function is the hint at the
// place where its nil is used.
func TestNilOfTheLibrary(t *testing.T) {
	f := func(locals, body, want string) {
		t.Helper()
		fx := build(t, "local re, json = require \"re\", require \"json\"\n"+locals+"\n"+metrics(body), "")
		fx.send(t, "m 1\n")
		if got := fx.Health().Message; !strings.HasSuffix(got, want) || want == "" && got != "" {
			t.Errorf("%s; %s: got %s, want %s", locals, body, fx.Health().Message, want)
		}
	}
	f(`local M = { id = (re.compile("((")) }`, `local _ = M.id:replace("a", "b")`,
		"\n  hint: re.compile at embedded/test/script.lua:2 returned nil and an error: cannot compile pattern \"((\": missing closing ): `((`")
	f(``, `local d = json.decode("{") local _ = d.x`,
		"\n  hint: json.decode at embedded/test/script.lua:5 returned nil and an error: cannot decode JSON: unexpected end")
	f(``, `local d, err = json.decode("{") if not d then batch:set_label("err", err) end`, "")
	f(`local ID, err = re.compile("((")`, `assert(not ID and err)`, "")
	f(`local function try(p) local r = re.compile(p) return r end local ID = try("((") or try("a")`, `assert(ID)`, "")
}

// A byte order mark at the beginning of a file is not Lua, and not an error.
func TestByteOrderMark(t *testing.T) {
	f := build(t, "\ufeff"+metrics(`batch:set_label("ok", "1")`), "")
	equal(t, f.send(t, "m 1\n"), "m{ok=\"1\"} 1\n")
}

// The counters of a script's hooks are there before anything happened.
func TestCountersAtStart(t *testing.T) {
	g := func(hooks string, want ...string) {
		t.Helper()
		f := build(t, "local weir = require \"weir\"\nreturn weir.transform { "+hooks+" }", "")
		families, err := f.Registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, mf := range families {
			for _, m := range mf.Metric {
				for _, l := range m.Label {
					if l.GetName() == "hook" && m.Counter.GetValue() == 0 {
						got = append(got, strings.TrimPrefix(mf.GetName(), "weir_script_")+" "+l.GetValue())
					}
				}
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", hooks, diff)
		}
	}
	g("series = function() end", "calls_total series", "errors_total series")
	g("metrics = function() end", "calls_total metrics", "errors_total each", "errors_total metrics")
}

// The log has the script's part of the stack, and no frames of the host.
func TestTrace(t *testing.T) {
	f := build(t, metrics("local function inner() error(\"x\") end\nlocal function outer() inner() return 1 end\nbatch:each(function(m) outer() end)"), "")
	f.send(t, "a 1\n")
	const file = "embedded/test/script.lua:"
	if want := "trace=\"" + file + "3 < " + file + "4 < " + file + "5\""; !strings.Contains(f.Logs(), want) {
		t.Errorf("no %s in\n%s", want, f.Logs())
	}
}

// An error in each costs one record and its edits.
func TestErrorInEach(t *testing.T) {
	body := `
	local n = 0
	local function count() n = n + 1 end
	batch:each(function(m)
		count()
		m.labels.seen = "yes"
		if m.name == "bad" then
			pcall(error, "caught")
			m.name = "worse"
			ctx.emit(m)
			local x = m.labels.missing .. "x"
		end
	end)
	batch:set_label("n", n)`
	f := build(t, metrics(body), "")
	in := "a 1\nbad 2\nb 3\nbad{x=\"1\"} 4\n"
	equal(t, f.send(t, in), `
		a{n="4",seen="yes"} 1
		bad{n="4"} 2
		b{n="4",seen="yes"} 3
		bad{n="4",x="1"} 4
		`)
	want := "embedded/test/script.lua:13: in each: attempt to concatenate a nil value\n  13 | local x = m.labels.missing .. \"x\"\n  record: bad 2 1700000000000\n  stack: embedded/test/script.lua:13 < embedded/test/script.lua:6"
	if diff := cmp.Diff(want, f.Health().Message); diff != "" {
		t.Errorf("health (-want +got):\n%s", diff)
	}
	if n := strings.Count(f.Logs(), "script failed"); n != 1 {
		t.Errorf("got %d log lines for one line of the script, want 1:\n%s", n, f.Logs())
	}

	f = build(t, metrics(body), `script { on_error = "drop" }`)
	equal(t, f.send(t, in), "a{n=\"4\",seen=\"yes\"} 1\nb{n=\"4\",seen=\"yes\"} 3\n")
	if diff := cmp.Diff(map[string]uint64{"script_error": 2}, f.Stats.Dropped()); diff != "" {
		t.Errorf("dropped (-want +got):\n%s", diff)
	}
	f.send(t, "a 1\n")
	if h := f.Health(); h.State != component.Healthy {
		t.Errorf("got %v after a batch without errors, want healthy", h)
	}
	if !strings.Contains(f.Logs(), "script works again") {
		t.Errorf("nothing in the log says that it works again:\n%s", f.Logs())
	}
}

// An error in the hook costs the batch; what series decided stands.
func TestErrorInTheHook(t *testing.T) {
	src := `
	local weir = require "weir"
	return weir.transform {
		series = function(s) if s.name == "noise" then s:drop() else s.labels.site = "x" end end,
		metrics = function(batch) batch:set_label("lost", "1"); error("boom") end,
	}`
	f := build(t, src, "")
	equal(t, f.send(t, "a 1\nnoise 2\n"), "a{site=\"x\"} 1\n")
	// The setting of the script applies unless the block has one.
	dropping := strings.Replace(src, "series =", "on_error = \"drop\",\n\t\tseries =", 1)
	equal(t, build(t, dropping, `script { on_error = "pass" }`).send(t, "a 1\nnoise 2\n"), "a{site=\"x\"} 1\n")
	equal(t, build(t, dropping, "").send(t, "a 1\nnoise 2\n"), "")

	f = build(t, src, `script { on_error = "drop" }`)
	equal(t, f.send(t, "a 1\nnoise 2\n"), "")
	if diff := cmp.Diff(map[string]uint64{"script_error": 2}, f.Stats.Dropped()); diff != "" {
		t.Errorf("dropped (-want +got):\n%s", diff)
	}
}

// An error in series costs the record, and is not remembered.
func TestErrorInSeries(t *testing.T) {
	src := `
	local weir = require "weir"
	local calls = 0
	return weir.transform { series = function(s)
		s.labels.site = "x"
		calls = calls + 1
		if s.name == "bad" and calls < 3 then error("boom") end
	end }`
	f := build(t, src, "")
	b := parse(t, "a 1\nbad 2\n")
	equal(t, f.sendBatch(t, b), "a{site=\"x\"} 1\nbad 2\n")
	want := "embedded/test/script.lua:7: in series: boom\n  7 | if s.name == \"bad\" and calls < 3 then error(\"boom\") end\n  record: bad"
	if diff := cmp.Diff(want, f.Health().Message); diff != "" {
		t.Errorf("health (-want +got):\n%s", diff)
	}
	equal(t, f.sendBatch(t, b), "a{site=\"x\"} 1\nbad{site=\"x\"} 2\n")
}

func TestLateUse(t *testing.T) {
	f := func(keep, use, want string) {
		t.Helper()
		fx := build(t, `
			local weir = require "weir"
			local kept
			return weir.transform { metrics = function(batch, ctx)
				if kept then `+use+` end
				`+keep+`
			end }`, "")
		fx.send(t, "a{x=\"1\"} 1\n")
		if h := fx.Health(); h.State != component.Healthy {
			t.Fatalf("the first call fails: %s", h.Message)
		}
		fx.send(t, "a{x=\"1\"} 1\n")
		got := fx.Health().Message
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s; %s: got %q, want %q", keep, use, got, want)
		}
	}
	const late = "cannot use a record after its hook returned: keep record:copy() instead"
	f(`kept = batch[1]`, `local _ = kept.name`, late)
	f(`kept = batch[1]`, `kept.value = 1`, late)
	f(`kept = batch[1].labels`, `local _ = kept.x`, late)
	f(`kept = batch[1]`, `kept:drop()`, late)
	f(`kept = batch[1]:copy()`, `assert(kept.name == "a" and kept.labels.x == "1" and kept.value == 1); kept.labels.x = "2"; ctx.emit(kept)`, "")
	f(`kept = batch:records()`, `kept()`, "cannot use records after its hook returned")
	f(`kept = batch:rows("name")`, `kept()`, "cannot use rows after its hook returned")
	f(`kept = batch`, `assert(kept == batch)`, "")
}

func TestErrorIsTyped(t *testing.T) {
	r := load(t, "local weir = require \"weir\"\nreturn weir.transform { metrics = 1 }")
	e := scriptErr(t, r.Err)
	if e.Script != "test.script" || e.File != "embedded/test/script.lua" || e.Line != 2 || errors.Is(e, scripting.ErrLimit) {
		t.Errorf("got %+v", e)
	}
}

// gopher-lua's own pcall cuts live closures off from their locals.
func TestPcallKeepsLocals(t *testing.T) {
	f := build(t, metrics(`
		local n = 0
		local function inc() n = n + 1 end
		inc()
		assert(not pcall(error, "x"))
		assert(not xpcall(function() error("y") end, function(e) return e end))
		assert(not pcall(function() local z = 1; inc(); error("z") end))
		inc()
		assert(n == 3, n)
		local ok, err = pcall(function() batch:nope() end)
		assert(not ok and type(err) == "string" and err:find("^embedded/test/script.lua:12: a batch has no"), err)
		local ok, a, b = pcall(function(...) return ... end, 1, 2)
		assert(ok and a == 1 and b == 2)
		local ok, e = pcall(error, { k = 1 })
		assert(not ok and e.k == 1)
		`), "")
	f.send(t, "a 1\n")
	if h := f.Health(); h.State != component.Healthy {
		t.Error(h.Message)
	}
}

// Other operations of the batch inside of each do not move it: after an error
// it goes on with the next record.
func TestErrorInEachAfterAnotherOperation(t *testing.T) {
	f := func(inner string) {
		t.Helper()
		n := build(t, metrics(`
			batch:each(function(m)
				`+inner+`
				m.value = m.value + 10
				if m.name == "b" then error("no " .. m.name) end
			end)`), `script { on_error = "drop" }`)
		equal(t, n.send(t, `
			a 1
			b 2
			c 3
		`), `
			a 11
			c 13
		`)
		if got := n.Stats.Dropped(); got["script_error"] != 1 || got["script"] != 0 {
			t.Errorf("dropped %v with %s, want one record for its error", got, inner)
		}
	}
	f(`batch:filter({"name"}, function() return true end)`)
	f(`batch:map_value(function() end)`)
	f(`for _ in batch:rows("name") do end`)
	f(`for _ in batch:records() do end`)
}

// An each inside of each could not undo what the outer one did.
func TestEachInEach(t *testing.T) {
	n := build(t, metrics("batch:each(function(m) batch:each(function() end) end)"), "")
	equal(t, n.send(t, "a 1\n"), "a 1\n")
	if h := n.Health(); !strings.Contains(h.Message, "cannot use each inside of each") {
		t.Errorf("got %+v", h)
	}
}

// The log is bounded also for a script in which every line fails.
func TestLogOfManyFailingLines(t *testing.T) {
	f := build(t, metrics(strings.Repeat("batch:each(function() error('x') end)\n", 1200)), "")
	for range 2 {
		f.send(t, "a 1\n")
	}
	if n := strings.Count(f.Logs(), "script failed"); n != 1000 {
		t.Errorf("got %d log lines, want 1000", n)
	}
}
