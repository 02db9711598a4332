package lua_test

import (
	"strings"
	"testing"

	"github.com/weir-run/weir/engine/component"
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

// What a script does not touch comes out as it went in.
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
	f(`ctx.now()`, `cannot use ctx.now in series: the hook is asked once and its answer remembered`)
	f(`ctx.emit{}`, `cannot use ctx.emit in series`)
	f(`ctx.log.info("x")`, `cannot use ctx.log in series`)
	f(`ctx.state.x`, `cannot use ctx.state in series`)
	f(`s.value`, `cannot read value in series: the hook sees labels only`)
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
				for k, v in pairs(a.m) do keys[#keys + 1] = k .. v end
				batch:set_label("all", table.concat({ a.s, a.i, a.n, tostring(a.b), a.d, a.z, table.concat(a.l, "+"),
					#a.l, a.l[2], unpack(a.l), keys[1], a.e, tostring(a.o), tostring(a.p), a.r }, " "))
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
		m = {q = 5}
		e = "down"
		o = "opt"
		p = "hush"`)
	equal(t, f.send(t, "m 1\n"), `m{all="S 8 2 false 60 10 z+y 2 y z q5 down opt <secret> req"} 1`+"\n")
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
