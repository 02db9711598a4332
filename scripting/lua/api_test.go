package lua_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/lua"
	"github.com/weir-run/weir/scripting/registry"
)

// TestBatchOperations runs the body of a metrics hook on a batch.
func TestBatchOperations(t *testing.T) {
	const in = `
		# TYPE a counter
		a{job="x",path="/1"} 1
		a{job="y",path="/2"} 2
		b{job="x"} 3
		gone{job="x"} stale
		`
	f := func(name, body, want string) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			t.Helper()
			fx := build(t, metrics(body), "")
			equal(t, fx.send(t, in), want)
			if h := fx.Health(); h.State != component.Healthy {
				t.Errorf("got %s: %s", h.State, h.Message)
			}
		})
	}
	const unchanged = in

	f("nothing", ``, unchanged)
	f("drop_where", `batch:drop_where("labels.job == 'x' && value > 1")`, `
		# TYPE a counter
		a{job="x",path="/1"} 1
		a{job="y",path="/2"} 2
		`)
	f("keep_where", `batch:keep_where("name == 'a'")`, `
		# TYPE a counter
		a{job="x",path="/1"} 1
		a{job="y",path="/2"} 2
		`)
	f("set_label", `batch:set_label("site", "s"); batch:drop_where("name == 'a'")`, `
		b{job="x",site="s"} 3
		gone{job="x",site="s"} stale
		`)
	f("drop_label", `batch:drop_label("job"); batch:drop_where("name == 'a'")`, "b 3\ngone stale\n")
	f("keep_labels", `batch:keep_labels { "job", "zone" }; batch:drop_where("name == 'a'")`, `
		b{job="x"} 3
		gone{job="x"} stale
		`)
	f("rename_label", `batch:rename_label("job", "service"); batch:drop_where("name == 'a'")`, `
		b{service="x"} 3
		gone{service="x"} stale
		`)
	f("scale", `batch:scale("name == 'a'", 10); batch:scale(nil, 2)`, `
		# TYPE a counter
		a{job="x",path="/1"} 20
		a{job="y",path="/2"} 40
		b{job="x"} 6
		gone{job="x"} stale
		`)
	f("set_value", `batch:set_value("value > 1", "value + 0.5")`, `
		# TYPE a counter
		a{job="x",path="/1"} 1
		a{job="y",path="/2"} 2.5
		b{job="x"} 3.5
		gone{job="x"} stale
		`)
	f("map_label", `batch:map_label("path", function(p) if p == "/1" then return "one" end end)`, `
		# TYPE a counter
		a{job="x",path="one"} 1
		a{job="y",path="/2"} 2
		b{job="x"} 3
		gone{job="x"} stale
		`)
	f("map_label with a library function", `batch:map_label("job", string.upper); batch:keep_where("name == 'b'")`, "b{job=\"X\"} 3\n")
	f("map_value", `batch:map_value(function(v) if v < 3 then return v * 100 end end)`, `
		# TYPE a counter
		a{job="x",path="/1"} 100
		a{job="y",path="/2"} 200
		b{job="x"} 3
		gone{job="x"} stale
		`)
	f("filter", `batch:filter({"job", "value"}, function(job, v) return not (job == "x" and v > 1) end)`, `
		# TYPE a counter
		a{job="x",path="/1"} 1
		a{job="y",path="/2"} 2
		gone{job="x"} stale
		`)
	f("filter on labels sees stale records", `batch:filter({"name"}, function(n) return n == "a" end)`, `
		# TYPE a counter
		a{job="x",path="/1"} 1
		a{job="y",path="/2"} 2
		`)
	f("rows and set", `
		for i, name, job, v, t in batch:rows("name", "job", "value", "time") do
			assert(t == 1700000000000)
			if name == "a" and job == "x" then
				batch:set(i, "value", v + 41)
				batch:set(i, { name = "c", job = "z", ["labels.type"] = "odd", time = t + 1 })
			elseif name == "a" then batch:drop(i) end
		end`, `
		# TYPE c counter
		c{job="z",path="/1",type="odd"} 42 1700000000001
		b{job="x"} 3
		gone{job="x"} stale
		`)
	f("rows of a marker", `
		for i, v, stale, type in batch:rows("value", "stale", "type") do
			if stale then assert(v ~= v); batch:set(i, "value", 1) end
			if i == 1 then assert(type == "counter") else assert(type ~= "counter" or i == 2) end
		end`, unchanged)
	f("each", `
		batch:each(function(m)
			if m.name == "a" then m.value = m.value * 2; m.labels.path = nil; m.labels.n = 7 end
			if m.stale then m:drop() end
		end)`, `
		# TYPE a counter
		a{job="x",n="7"} 2
		a{job="y",n="7"} 4
		b{job="x"} 3
		`)
	f("value edits of a marker do nothing", `batch:each(function(m) m.value = m.value + 0 end)`, unchanged)
	f("stale can be set", `batch:each(function(m) if m.name == "b" then m.stale = true end; if m.name == "gone" then m.stale = false; m.value = 9 end end)`, `
		# TYPE a counter
		a{job="x",path="/1"} 1
		a{job="y",path="/2"} 2
		b{job="x"} stale
		gone{job="x"} 9
		`)
	f("records", `
		local n = 0
		for m in batch:records() do n = n + 1; if m.type == "counter" then m.name = "r" .. n end end
		assert(n == 4)`, `
		# TYPE r1 counter
		r1{job="x",path="/1"} 1
		# TYPE r2 counter
		r2{job="y",path="/2"} 2
		b{job="x"} 3
		gone{job="x"} stale
		`)
	f("length and index", `
		assert(#batch == 4)
		local best
		for i = 1, #batch do
			local m = batch[i]
			if not m.stale and (not best or m.value > best.value) then best = m end
		end
		assert(best.name == "b" and batch[0] == nil and batch[5] == nil and batch[1.5] == nil)
		batch[1]:drop()
		assert(#batch == 4 and batch[1] == nil)
		best.name = "best"`, `
		# TYPE a counter
		a{job="y",path="/2"} 2
		best{job="x"} 3
		gone{job="x"} stale
		`)
	f("labels", `
		local m = batch[1]
		local seen = {}
		for k, v in pairs(m.labels) do seen[#seen + 1] = k .. "=" .. v end
		assert(table.concat(seen, ",") == "job=x,path=/1", table.concat(seen, ","))
		assert(m.labels.nope == nil and m.labels.__name__ == nil)
		m.labels = { only = "this", n = 1.5, yes = true }
		batch:keep_where("labels.only == 'this'")`, `
		# TYPE a counter
		a{n="1.5",only="this",yes="true"} 1
		`)
	f("text", `
		local text = batch:text()
		assert(text:find('a{job="x",path="/1"} 1 1700000000000', 1, true), text)
		assert(text:find('gone{job="x"} stale', 1, true), text)`, unchanged)
	f("emit", `
		ctx.emit { name = "n", labels = { k = "v" }, value = 2, type = "gauge", help = "Help." }
		ctx.emit { name = "m", value = 3, time = 1 }
		local c = batch[1]:copy()
		c.name, c.value, c.labels.path = "copy", 7, "p"
		ctx.emit(c)
		ctx.emit(batch[3])
		batch:drop_where("true")`, `
		# TYPE n gauge
		# HELP n Help.
		n{k="v"} 2
		m 3 1
		# TYPE copy counter
		copy{job="x",path="p"} 7
		b{job="x"} 3
		`)
	f("now", `assert(ctx.now() == 1735689600000)`, unchanged) // componenttest's clock
	f("tostring", `
		assert(tostring(batch) == "batch of 4 records")
		assert(tostring(batch[1]) == 'a{job="x",path="/1"} 1 1700000000000', tostring(batch[1]))
		assert(tostring(batch[1].labels) == '{job="x",path="/1"}')`, unchanged)
}

// TestUntouched checks that values that a script does not change stay as they are.
func TestUntouched(t *testing.T) {
	const in = `
		# TYPE h histogram
		h{a="1"} {count:3,sum:1.5,schema:3,positive_spans:[0:2],positive_buckets:[1,2]} 1700000000001
		c{a="1"} NaN(0x7ff8000000000123) st@1600000000000 # {trace_id="t"} 1 1699999999000
		d{a="1"} stale
		e{a="1"} -0
		`
	for _, body := range []string{
		``,
		`batch:each(function(m) end)`,
		`batch:each(function(m) local _ = m.name, m.value, m.time, m.labels.a, m.type, m.stale, m.help, m.unit end)`,
		`for i, v, n in batch:rows("value", "name") do end`,
		`batch:filter({"a", "value"}, function() return true end)`,
		`batch:map_value(function() end)`,
		`batch:map_label("a", function() end)`,
		`for m in batch:records() do m.labels.a = m.labels.a end`,
		`batch:each(function(m) error("undone") end)`,
		`batch:each(function(m) m.name = "x"; m.labels.a = "2"; m.time = 5; m.stale = true; ctx.emit(m); error("undone") end)`,
	} {
		equal(t, build(t, metrics(body), "").send(t, in), in)
	}
}

func TestSeries(t *testing.T) {
	f := build(t, `
		local weir = require "weir"
		local calls = 0
		return weir.transform {
			series = function(s, ctx)
				calls = calls + 1
				if s.name == "dropped" then return s:drop() end
				if s.type == "counter" then s.name = s.name .. "_total" end
				s.labels.n = tostring(calls)
				for k, v in pairs(s.labels) do assert(k ~= "__name__") end
			end,
		}`, "")
	text := `
		# TYPE a counter
		a{job="x"} 1
		b 2
		dropped 3
	`
	b := parse(t, text)
	want := `
		# TYPE a_total counter
		a_total{job="x",n="1"} 1
		b{n="2"} 2
		`
	equal(t, f.sendBatch(t, b), want)
	first := f.sink.Last().Series[0]
	equal(t, f.sendBatch(t, b), want) // remembered: the hook was not asked again
	if got := f.sink.Last().Series[0]; got != first {
		t.Error("the same series and the same result are two handles")
	}
	if got := f.Stats.Dropped()["script"]; got != 2 {
		t.Errorf("got %d dropped, want 2", got)
	}
}

// The series hook sees what its answer may depend on and nothing else.
func TestSeriesIsPure(t *testing.T) {
	f := func(expr, want string) {
		t.Helper()
		fx := build(t, "local weir = require \"weir\"\nreturn weir.transform { series = function(s, ctx)\nlocal _ = "+expr+"\nend }", "")
		fx.send(t, "a 1\n")
		if got := fx.Health().Message; !strings.Contains(got, want) || !strings.Contains(got, "embedded/test/script.lua:3:") {
			t.Errorf("%s: got %q, want %q in line 3", expr, got, want)
		}
	}
	f(`ctx.now()`, `cannot use ctx.now in series: its result is cached`)
	f(`ctx.emit{}`, `cannot use ctx.emit in series`)
	f(`ctx.log.info("x")`, `cannot use ctx.log in series`)
	f(`ctx.state.x`, `cannot use ctx.state in series`)
	f(`s.value`, `cannot read value in series: the hook can read only labels`)
	f(`s.time`, `cannot read time in series`)
	f(`s.labls`, `a series has no "labls"`)
	f(`ctx.bogus`, `ctx has no "bogus"`)
}

func TestModules(t *testing.T) {
	f := build(t, `
		local weir = require "weir"
		local json = require "json"
		local a = require "a"
		assert(a == require "a", "loaded once")
		return weir.transform { metrics = function(batch)
			local b = require "b.c"
			batch:set_label("a", a.name)
			batch:set_label("b", b)
			local v = json.decode('{"x":[1,2],"n":null,"big":9007199254740993,"empty":[]}')
			batch:set_label("json", json.encode(v))
			local bad, err = json.decode("{")
			assert(bad == nil and type(err) == "string")
		end }`, "",
		"a", `local b = require "b.c"; return { name = "a" .. b }`,
		"b/c", `return "bc"`)
	equal(t, f.send(t, "m 1\n"), `m{a="abc",b="bc",json="{\"x\":[1,2],\"n\":null,\"big\":9007199254740993,\"empty\":[]}"} 1`+"\n")
}

func TestArgs(t *testing.T) {
	src := `
		local weir = require "weir"
		local arg = weir.arg
		return weir.transform {
			args = {
				s = arg.string { default = "d" }, i = arg.int { default = 7 }, n = arg.number { default = 1.5 },
				b = arg.bool { default = true }, d = arg.duration { default = "90s" }, z = arg.size { default = "2KiB" },
				l = arg.list { of = arg.string{}, default = { "a", "b" } }, m = arg.map { of = arg.int{}, default = { k = 1 } },
				e = arg.enum { values = { "up", "down" }, default = "up" }, o = arg.string { optional = true },
				p = arg.secret { optional = true }, r = arg.string {},
			},
			metrics = function(batch, ctx)
				local a = ctx.args
				local keys = {}
				for k, v in pairs(a.m) do keys[#keys + 1] = k .. v end -- in the order of the names
				batch:set_label("all", table.concat({ a.s, a.i, a.n, tostring(a.b), a.d, a.z, table.concat(a.l, "+"),
					#a.l, a.l[2], unpack(a.l), table.concat(keys), a.e, tostring(a.o), tostring(a.p), a.r }, " "))
				for i, v in ipairs(a.l) do assert(a.l[i] == v) end
				assert(not pcall(function() a.s = "x" end) and not pcall(function() a.l[1] = "x" end))
				assert(not pcall(table.insert, a.l, "x") and next(a.m) ~= nil and type(a.l) == "table")
				batch:drop_where("labels.x in args.l && args.i == 7")
			end,
		}`
	f := build(t, src, `r = "req"`)
	equal(t, f.send(t, "m 1\nm{x=\"b\"} 2\n"), `m{all="d 7 1.5 true 90 2048 a+b 2 b a k1 up nil nil req"} 1`+"\n")
	f = build(t, src, `
		r = "req"
		s = "S"
		i = 8
		n = 2
		b = false
		d = "1m"
		z = 10
		l = ["z", "y"]
		m = {q = 5, b = 1, z = 2, a = 3, y = 4}
		e = "down"
		o = "opt"
		p = "hush"`)
	equal(t, f.send(t, "m 1\n"), `m{all="S 8 2 false 60 10 z+y 2 y z a3b1q5y4z2 down opt <secret> req"} 1`+"\n")
}

func TestLog(t *testing.T) {
	f := build(t, metrics(`
		print("hello", 1, true, nil)
		ctx.log.info("seen", { n = #batch, name = "x" })
		ctx.log.warn("careful")
		ctx.log.error("bad")
		for i = 1, 100 do print("more") end`), "")
	f.send(t, "a 1\n")
	logs := f.Logs()
	for _, want := range []string{
		`level=INFO msg="hello\t1\ttrue\tnil" component_id=test.script.default pos=embedded/test/script.lua:4`,
		`msg=seen component_id=test.script.default pos=embedded/test/script.lua:5 n=1 name=x`,
		`level=WARN msg=careful`, `level=ERROR msg=bad`,
	} {
		if !strings.Contains(logs, want) {
			t.Errorf("no %q in\n%s", want, logs)
		}
	}
	if n := strings.Count(logs, "msg=more"); n != 16 {
		t.Errorf("got %d lines of a loop, want 16: the burst is 20", n)
	}
}

// TestValues checks what crosses between a script and host functions.
func TestValues(t *testing.T) {
	f := build(t, metrics(`
		local weir, fake, json = require "weir", require "fake", require "json"
		assert(fake.call(function(x) return x.a end, { a = 5 }) == 5)
		local v, err = fake.call(function() error("inner") end)
		assert(v == nil and err:find("script.lua:6: inner"), err)
		assert(fake.same(weir.null) == weir.null and tostring(weir.null) == "null")
		assert(json.null == weir.null and json.encode({ json.null }) == "[null]" and json.encode(json.array({})) == "[]")
		local list = fake.same({ 1, "two", { k = true } })
		assert(#list == 3 and list[2] == "two" and list[3].k == true)
		local t = fake.thing(40)
		assert(t:add(2) == 42 and tostring(t) == "thing 40" and fake.take(t) == 40)
		assert(not pcall(function() t:nope() end) and not pcall(function() t.x = 1 end))
		assert(not pcall(fake.take, {}) and not pcall(fake.same, { 1, k = 2 }))
		assert(fake.same(batch[1].labels).x == "1")
		local empty = json.decode("[]")
		assert(json.encode(empty) == "[]" and json.encode({}) == "{}", json.encode(empty))
		empty[1] = 1
		assert(json.encode(empty) == "[1]")
		local big = json.decode("9007199254740993")
		assert(tostring(big) == "9007199254740993" and json.encode(big) == "9007199254740993")
		assert(not pcall(function() return big.x end))
		assert(fake.same(0.5) == 0.5 and fake.same(-1) == -1 and fake.same(true) == true)
		`), "")
	f.send(t, "a{x=\"1\"} 1\n")
	if h := f.Health(); h.State != component.Healthy {
		t.Error(h.Message)
	}
	// A panic in a host function is our bug: it costs the batch and the VM.
	f = build(t, metrics(`if batch[1].name == "bug" then (require "fake").panic() end`), "")
	equal(t, f.send(t, "bug 1\n"), "bug 1\n")
	if got := f.Health().Message; !strings.Contains(got, "BUG: panic panicked: host bug") {
		t.Errorf("got %q", got)
	}
	f.send(t, "a 1\n")
	if h := f.Health(); h.State != component.Healthy {
		t.Error(h.Message)
	}
}

// TestStdlib checks what is our own of Lua's libraries against the manual.
func TestStdlib(t *testing.T) {
	f := build(t, metrics(`
		local function eq(got, want) if got ~= want then error(tostring(got) .. " is not " .. tostring(want), 2) end end
		eq(("hello"):sub(2, -2), "ell") eq(("hello"):sub(-100, 100), "hello") eq(("x"):sub(5), "") eq(("abc"):sub(0), "abc")
		eq(("abc"):byte(), 97) eq(select("#", ("abc"):byte(1, -1)), 3) eq(string.char(72, 105), "Hi")
		eq(("ab"):rep(3), "ababab") eq(("ab"):rep(-1), "") eq(("abc"):reverse(), "cba") eq(("aB"):upper() .. ("aB"):lower(), "ABab")
		eq(("hello world"):find("o w"), 5) eq(select(2, ("hello"):find("l+")), 4) eq(("a.b"):find(".", 2, true), 2) eq(("a"):find("b"), nil)
		eq(("abc"):find("", 10), nil) eq(("abc"):find("", 4), 4) eq(("abc"):find("b", -1), nil)
		eq(("key = value"):match("^(%w+)%s*=%s*(%w+)$"), "key") eq(("2024-01-02"):match("(%d+)-(%d+)"), "2024")
		eq(("  x "):match("^%s*(.-)%s*$"), "x") eq(("abc"):match("()b()"), 2) eq(("[[x]]"):match("%[%[(.*)%]%]"), "x")
		eq(("f(a(b)c)d"):match("%b()"), "(a(b)c)") eq(("THE (quick) fox"):find("%f[%a]%a+%f[%A]"), 1)
		eq(("abab"):match("(a)(b)%1%2"), "a") eq(("x]y"):match("[]]"), "]") eq(("a-b"):match("[a%-]+"), "a-") eq(("a^b"):match("[b^]+"), "^b")
		eq(("héllo"):len(), 6) eq(("x\0y"):match("%z"), "\0") eq(("0xFf"):match("%x+", 3), "Ff") eq(("a1_"):match("[%w_]+"), "a1_")
		eq(("hello"):gsub("l", "L"), "heLLo") eq(select(2, ("hello"):gsub("l", "L")), 2) eq(("hello"):gsub("", "-"), "-h-e-l-l-o-")
		eq(("hello"):gsub("l", "L", 1), "heLlo") eq(("abc"):gsub("%w", "%0%0"), "aabbcc") eq(("a b"):gsub("(%w) (%w)", "%2 %1"), "b a")
		eq(("$name"):gsub("%$(%w+)", { name = "x" }), "x") eq(("abc"):gsub("b", function() return nil end), "abc") eq(("abc"):gsub("^a", "x"), "xbc")
		eq(("50%"):gsub("%%", "%%%%"), "50%%") eq(("abc"):gsub("b*", "-"), "-a--c-")
		local words = {} for w in ("one two  three"):gmatch("%a+") do words[#words + 1] = w end eq(table.concat(words, ","), "one,two,three")
		local kv = {} for k, v in ("a=1, b=2"):gmatch("(%w+)=(%w+)") do kv[#kv + 1] = k .. v end eq(table.concat(kv, " "), "a1 b2")
		eq(("%d %5.2f %s %q %x %%"):format(3.7, 3.14159, nil, "a\"b", 255), '3  3.14 nil "a\\"b" ff %')
		eq(("%-5s|%5s|%05d|%+d|%g|%e"):format("a", "b", 42, 1, 0.1, 12345.678), "a    |    b|00042|+1|0.1|1.234568e+04")
		eq(("%.3s|%c|%i|%u|%o|%X|%G"):format("abcdef", 65, -3, 7, 8, 255, 1e20), "abc|A|-3|7|10|FF|1E+20")
		eq(("%d %f"):format(1/0, -1/0), "inf -inf") eq(("%s %s"):format(true, {}):gsub("0x%x+", "0x"), "true table: 0x")
		eq(not pcall(string.format, "%y", 1), true) eq(not pcall(string.format, "%d"), true) eq(not pcall(string.format, "%d", "x"), true)
		eq(tonumber("1e5"), 100000) eq(tonumber(" 0x10 "), 16) eq(tonumber("ff", 16), 255) eq(tonumber("1_000"), nil) eq(tonumber("nan"), nil) eq(tonumber(""), nil) eq(tonumber("-.5"), -0.5)
		eq(tostring(0.1), "0.1") eq(tostring(1e15), "1000000000000000") eq(tostring(1/0), "inf") eq(tostring(-1.5e300), "-1.5e+300") eq(1 .. "", "1") eq(1234567.5 .. "", "1234567.5")
		eq("a" .. 1 .. "b" .. 2.5, "a1b2.5") local cc = setmetatable({}, { __concat = function(a, b) return "meta" end }) eq("x" .. "y" .. cc, "xmeta") eq(cc .. "x", "meta")
		eq(("a" .. "b" == "ab" and "c" .. "d" or "no"), "cd") local function two() return "1", "2" end eq("x" .. two(), "x1") eq(#{ "x" .. two() }, 1)
		eq(math.huge, 1/0) eq(math.floor(-1.5), -2) eq(math.max(1, 3, 2), 3) eq(math.random, nil)
		eq(select("#", unpack({ 1, nil, 3 }, 1, 3)), 3) eq(select(-1, 1, 2), 2)
		local s = { 3, 1, 2 } table.sort(s) eq(table.concat(s, ","), "1,2,3") table.sort(s, function(a, b) return a > b end) eq(s[1], 3)
		table.insert(s, 9) table.insert(s, 1, 0) eq(table.remove(s), 9) eq(table.remove(s, 1), 0) eq(#s, 3) eq(next({}), nil)
		eq(type(print), "function") eq(tostring(setmetatable({}, { __tostring = function() return "me" end })), "me")
		local co = coroutine.wrap(function(a) local b = coroutine.yield(a + 1) return b * 2 end) eq(co(1), 2) eq(co(10), 20)
		local ok, err = pcall(coroutine.wrap(function() error("in co") end)) eq(ok, false) eq(err:match("in co$"), "in co")
		local c2 = coroutine.create(function() error({ 1 }) end) local ok, e = coroutine.resume(c2) eq(ok, false) eq(type(e), "table") eq(coroutine.status(c2), "dead")
		local keys = {} for k in pairs({ a = 1, b = 2 }) do keys[#keys + 1] = k end table.sort(keys) eq(table.concat(keys), "ab")
		local n = 0 for k, v in pairs(string) do n = n + 1 end eq(n > 10, true) for i, v in ipairs({ 5, 6, nil, 7 }) do n = i end eq(n, 2)
		`), "")
	f.send(t, "a{x=\"1\"} 1\n")
	if h := f.Health(); h.State != component.Healthy {
		t.Error(h.Message)
	}
}

func TestEmitLimit(t *testing.T) {
	f := build(t, metrics(`for i = 1, 4 do ctx.emit { name = "x", value = i } end`), "script {\nlimits { emit = 3 }\n}")
	equal(t, f.send(t, "a 1\n"), "a 1\n")
	if want := "limit exceeded: the call emitted more than 3 records, the limit is script.limits.emit"; !strings.Contains(f.Health().Message, want) {
		t.Errorf("got %q, want %q", f.Health().Message, want)
	}
}

func TestRequireOfData(t *testing.T) {
	files := fstest.MapFS{
		"test/script.lua": {Data: []byte(`
			local weir = require "weir"
			local data = require "data.json"
			local list = require "sub/list.yaml"
			assert(data.name == "x" and data.empty and #data.empty == 0 and data.none == weir.null, "values")
			assert(#list == 2 and list[2].a == 1, "a list")
			for _, write in ipairs { function() data.name = "y" end, function() list[1] = 1 end, function() list[2].a = 2 end } do
				local ok, err = pcall(write)
				assert(not ok and err:find("read%-only"), err)
			end
			return weir.transform { series = function(s, ctx) end }`)},
		"lib/data.json":     {Data: []byte(`{"name": "x", "empty": [], "none": null}`)},
		"lib/sub/list.yaml": {Data: []byte("- one\n- a: 1\n")},
	}
	c, err := registry.NewCatalog(registry.Options{Languages: []scripting.Language{lua.New()}, Embedded: files, Modules: modules})
	if err != nil {
		t.Fatal(err)
	}
	if r, _ := c.Lookup("test.script"); r.Err != nil {
		t.Error(r.Err)
	}
	files["lib/data.json"] = &fstest.MapFile{Data: []byte(`{`)}
	if c, err = registry.NewCatalog(registry.Options{Languages: []scripting.Language{lua.New()}, Embedded: files, Modules: modules}); err != nil {
		t.Fatal(err)
	}
	if r, _ := c.Lookup("test.script"); r.Err == nil || !strings.Contains(r.Err.Error(), "embedded/lib/data.json: cannot read the data") {
		t.Errorf("got %v", r.Err)
	}
}
