package lua_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/scripting/hostiletest"
)

// TestHostile runs hooks that would hang the process or eat its memory. Each
// must fail, within a bound on time and memory that is far from both, leave
// the data as it was, and leave the node able to do its work.
//
// They run in a process of their own, so that its peak of memory is theirs.
func TestHostile(t *testing.T) {
	if hostiletest.InChild(t) {
		return
	}
	bombs := newRange(t)
	f := func(name, body, want string) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			t.Helper()
			// Scripts that another limit ends have enough time on a busy machine.
			time := "2s"
			if want == "" || strings.HasPrefix(want, "limit exceeded") {
				time = "100ms"
			}
			fx := build(t, metrics("if batch[1].name == \"bomb\" then\n"+body+"\nend\nbatch:set_label(\"ok\", \"1\")"),
				`script { limits { time = "`+time+`" } }`)
			bombs.Explode(t, fx.bombed(), "bomb 1\n", want)
			fx.bombed().Works(t)
		})
	}
	const (
		slow    = "limit exceeded: the call ran longer than 100.02ms, the limit is script.limits.time"
		tooLong = "cannot make a string of"
	)
	// Endless loops.
	f("loop", `while true do end`, slow)
	f("loop in pcall", `while true do pcall(function() while true do end end) end`, slow)
	f("loop in xpcall handler", `while true do xpcall(error, function() while true do end end) end`, slow)
	f("loop in metamethod", `local t = setmetatable({}, { __index = function() while true do end end }) local _ = t.x`, slow)
	f("loop in sort", `table.sort({3, 2, 1}, function() while true do end end)`, slow)
	f("loop in gsub", `("aaa"):gsub("a", function() while true do end end)`, slow)
	f("loop in tostring", `tostring(setmetatable({}, { __tostring = function() while true do end end }))`, slow)
	f("loop in each", `batch:each(function() while true do end end)`, slow)
	f("loop in each in pcall", `pcall(function() batch:each(function() while true do end end) end)`, slow)
	f("loop in filter", `batch:filter({"name"}, function() while true do end end)`, slow)
	f("loop in map_label", `batch:set_label("x", "1") batch:map_label("x", function() while true do end end)`, slow)
	f("loop in a host callback", `(require "fake").call(function() while true do end end)`, slow)
	f("loop in coroutine", `coroutine.wrap(function() while true do end end)()`, slow)
	f("loop in resumed coroutines", `local co = coroutine.create(function() while true do coroutine.yield() end end) while true do coroutine.resume(co) end`, slow)
	f("tail calls", `local function f() return f() end f()`, slow)
	f("tail calls in pcall", `local function f() return f() end while true do pcall(f) end`, slow)
	f("goto", `::a:: goto a`, slow)
	f("error objects", `while true do pcall(error, {}) end`, slow)
	f("nested pcall", `local function f() pcall(f) f() end f()`, "")
	f("logging", `while true do print("x") end`, slow)

	// Strings. Where want is "", either the size or the time may be first.
	f("rep", `local s = ("x"):rep(2e9)`, tooLong)
	f("rep of rep", `local s = ("x"):rep(1e6):rep(1e6)`, tooLong)
	f("rep NaN and inf", `local s = ("x"):rep(math.huge)`, tooLong)
	f("doubling", `local s = "x" while true do s = s .. s end`, tooLong)
	f("doubling in pcall", `local s = "x" while true do pcall(function() s = s .. s end) end`, "limit exceeded")
	f("many long strings", `local t = {} for i = 1, 1e9 do t[i] = ("x"):rep(1e6) .. i end`, "limit exceeded")
	f("format width", `local s = ("%99999999d"):format(1)`, "width or precision too long")
	f("format many", `local s = ("%99d"):rep(1e5):format(1)`, "")
	f("table.concat", `local t = {} for i = 1, 1000 do t[i] = ("x"):rep(1e4) end local s = table.concat(t)`, "")
	f("gsub expansion", `local s = ("x"):rep(1e5):gsub("x", ("y"):rep(1e5))`, "")
	f("upper", `local s = ("x"):rep(8e6) while true do s = s:upper() end`, "limit exceeded")
	f("concat metamethod", `local t = setmetatable({}, { __concat = function(a, b) return a .. b end }) local s = t .. "x"`, "stack overflow")

	// Patterns.
	f("pattern", `(("a"):rep(50000)):find((".-"):rep(20) .. "b")`, "")
	f("pattern backtracking", `(("a"):rep(30)):find(("a?"):rep(30) .. ("a"):rep(31))`, slow)
	f("pattern recursion", `(("a"):rep(1e6)):match(("(.-)"):rep(30) .. "b")`, slow)
	f("gmatch", `while true do for a in ("x"):rep(1e6):gmatch("y*z") do end end`, slow)
	f("balance", `local s = ("("):rep(1e6) while true do s:find("%b()") end`, slow)

	// Tables.
	f("sparse write", `for i = 1, 1000 do local t = {} t[67108000] = 1 end while true do end`, slow)
	f("sparse write in range", `for i = 1, 1e9 do local t = {} t[1000000] = 1 end`, slow)
	f("insert far", `for i = 1, 1e9 do local t = {} table.insert(t, 1000000, 1) end`, slow)
	f("growth", `local t = {} while true do t[#t + 1] = {} end`, slow)
	f("growth of keys", `local t, i = {}, 0 while true do i = i + 1 t["k" .. i] = i end`, "limit exceeded")
	f("unpack", `unpack({}, 1, 1e8)`, "cannot unpack 100000000 values: the limit is 8000")
	f("byte", `("x"):rep(1e6):byte(1, -1)`, "cannot return 1000000 bytes: the limit is 8000")
	f("select", `select(-1e9, 1)`, "index out of range")
	f("cycle to host", `local t = {} t.t = t local _ = (require "json").encode(t)`, "nests deeper than 100: does it contain itself?")

	// Stacks.
	f("recursion", `local function f(n) return 1 + f(n + 1) end f(1)`, "stack overflow")
	f("mutual metamethods", `local t = {} setmetatable(t, { __index = function(_, k) return t[k .. "x"] end }) local _ = t.a`, "stack overflow")
	f("coroutine nest", `local function f() return coroutine.wrap(f)() end f()`, "cannot nest more than 200 coroutines")
	f("coroutine bomb", `while true do coroutine.create(function() end) end`, "limit exceeded")
	f("yield outside", `coroutine.yield()`, "cannot yield: this is no coroutine")
	f("yield across each", `coroutine.wrap(function() batch:each(function() coroutine.yield() end) end)() error("gone on")`, "")
	f("yield across pcall", `coroutine.wrap(function() assert(pcall(coroutine.yield)) end)()`, "cannot yield across a call of the host")
	f("sort with an invalid order", `local t = {} for i = 1, 1000 do t[i] = i end table.sort(t, function() return true end) error("done")`, "done")
	f("gsub in gsub", `error((("abc"):gsub("(b)", function(x) ("zzz"):gsub("z", "%0") return x .. x end)))`, "abbc")

	// The host.
	f("emit", `while true do ctx.emit { name = "x", value = 1 } end`, "limit exceeded")
	f("string metatable", `local ok = pcall(function() getmetatable("").__index = nil end) assert(not ok and getmetatable("") == false) error("held")`, "held")
	f("number metatable", `setmetatable(1, {})`, "table expected")
	f("frozen through next", `local n = next for _, lib in ipairs { _G, string, math, table, coroutine, ctx, ctx.args, require "weir" } do assert(not pcall(function() lib.x = 1 end)) assert(not pcall(table.insert, lib, 1)) assert(getmetatable(lib) == false) assert(not pcall(setmetatable, lib, {})) assert(not pcall(rawset, lib, "x", 1)) end error("held")`, "held")
	f("removed", `for _, x in ipairs { "os", "io", "load", "loadstring", "dofile", "loadfile", "debug", "package", "module", "collectgarbage", "getfenv", "setfenv", "rawset", "newproxy", "_printregs", "channel" } do end assert(not (os or io or load or loadstring or dofile or loadfile or debug or package or module or collectgarbage or getfenv or setfenv or newproxy or _printregs or channel)) error("gone")`, "gone")
}

// TestHostileCorpus runs what is in testdata/hostile.
func TestHostileCorpus(t *testing.T) {
	if hostiletest.InChild(t) {
		return
	}
	newRange(t).Corpus(t, "testdata/hostile/*.lua", "--", regexp.MustCompile(`^function bombs\.(\w+)\(`), func(t testing.TB, src, attrs string) hostiletest.Node {
		return build(t, src, attrs).bombed()
	})
}

// bombed is the harness for bombs.
func (f *harness) bombed() hostiletest.Node { return hostiletest.Node{Send: f.send, Health: f.Health} }

// newRange has a neighbour that works on every batch.
func newRange(t *testing.T) hostiletest.Range {
	fx := build(t, metrics(`batch:each(function(m) m.value = m.value + 1 end)`), "")
	fx.sink.Refuse(context.Canceled) // it would keep every batch
	b := parse(t, "a 1\nb 2\n")
	send := func(ctx context.Context) error { return fx.c.(flow.MetricsConsumer).ConsumeMetrics(ctx, b) }
	return hostiletest.Range{Beside: hostiletest.NewNeighbour(t, send, fx.Health), Peak: (64 + 256) << 20}
}

// TestHostileFiles compiles what would overflow the Go stack, which no recover
// catches.
func TestHostileFiles(t *testing.T) {
	const size = 250 << 10
	f := func(name, src string) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			t.Helper()
			r := load(t, src)
			if r.Err == nil {
				t.Error("it loads")
			}
			if len(r.Err.Error()) > 2000 {
				t.Errorf("the message has %d bytes", len(r.Err.Error()))
			}
		})
	}
	repeat := func(s string) string { return strings.Repeat(s, size/len(s)) }
	f("not", "return "+repeat("not ")+"1")
	f("minus", "return "+repeat("- ")+"1")
	f("length", "return "+repeat("#")+"a")
	f("parentheses", "return "+repeat("("))
	f("braces", "return "+repeat("{"))
	f("brackets", "return "+repeat("a["))
	f("functions", repeat("function() "))
	f("functions in expressions", "return "+repeat("function() return "))
	f("do", repeat("do "))
	f("while", repeat("while true do "))
	f("if", repeat("if a then "))
	f("elseif", "if a then "+repeat("elseif a then ")+"end")
	f("concat", "local x = "+repeat("'a'..")+"'b'")
	f("power", "local x = "+repeat("a^")+"a")
	f("plus", "local x = "+repeat("a+")+"a")
	f("and", "local x = "+repeat("a and ")+"a")
	f("fields", "local x = a"+repeat(".a"))
	f("calls", "local x = a"+repeat("()"))
	f("methods", "local x = a"+repeat(":a()"))
	f("strings as calls", "local x = a"+repeat("''"))
	f("repeat", repeat("repeat "))
	f("too large", strings.Repeat("-- comment\n", 30_000))
	f("NUL", "local x = \x00")
	f("binary", "\x1bLua\x51\x00")
	f("many locals", strings.Repeat("local a = 1\n", 20_000))
	f("many constants", func() string {
		var b strings.Builder
		for i := range 20_000 {
			fmt.Fprintf(&b, "_(%d)", i)
		}
		return b.String()
	}())
}

// TestHoarding fills tables outside of the hooks, call by call, until the VM
// is thrown away, within a call or after it, and the next VM starts again.
func TestHoarding(t *testing.T) {
	if hostiletest.RaceDetector && testing.Short() {
		t.Skip("it fills the memory of VMs, which takes minutes")
	}
	f := func(name, locals, body string) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			t.Helper()
			fx := build(t, locals+"\n"+metrics("batch:set_label(\"ok\", \"1\")\n"+body), `script { limits { time = "10s" } }`)
			for i := 0; ; i++ {
				out := fx.send(t, "a 1\n")
				if h := fx.Health(); h.State == component.Unhealthy {
					const between, within = "limit exceeded: the script holds more than 64 MiB between calls", "limit exceeded: the call holds more than 64 MiB"
					if !strings.Contains(h.Message, between) && !(strings.Contains(h.Message, within) && out == "a 1\n") {
						t.Error(h.Message)
					}
					break
				}
				equal(t, out, "a{ok=\"1\"} 1\n")
				if i > 300 {
					t.Fatal("it holds more and more")
				}
			}
			equal(t, fx.send(t, "a 1\n"), "a{ok=\"1\"} 1\n")
			if h := fx.Health(); h.State != component.Healthy {
				t.Errorf("after the VM was thrown away: %s", h.Message)
			}
		})
	}
	f("list", `local t = {}`, `for i = 1, 20000 do t[#t + 1] = { i, "s" .. i, k = i, l = i, m = i } end`)
	f("keys that were deleted", `local t, n = {}, 0`, `for i = 1, 60000 do n = n + 1 t["key" .. n] = true t["key" .. n] = nil end`)
	f("strings", `local t = {}`, `t[#t + 1] = ("x"):rep(1000000) .. #t for i = 1, 50000 do local _ = i end`)
	f("closures", `local f = function() end`, `for i = 1, 60000 do local g = f f = function() return g end end`)
}

// TestErrorObjects throws what is no text out of every hook that meets data.
func TestErrorObjects(t *testing.T) {
	hooks := map[string]string{
		"series":  `series = function(s) if s.name == "bomb" then %s end s.labels.ok = "1" end`,
		"metrics": `metrics = function(batch) if batch[1].name == "bomb" then %s end batch:set_label("ok", "1") end`,
		"each":    `metrics = function(batch) batch:each(function(m) if m.name == "bomb" then %s end m.labels.ok = "1" end) end`,
	}
	values := []string{
		`error()`, `error(nil)`, `error(false)`, `error(1)`, `error("")`, `error({})`, `error(print)`, `error(coroutine.create(print))`,
		`error({ message = {} })`, `error(setmetatable({}, { __tostring = function() error("again") end }))`,
		`error(setmetatable({}, { __tostring = function() while true do end end }))`, `error(setmetatable({}, { __index = error }))`,
		`error("\0\255\27[31m")`, `error(("x"):rep(1e6))`, `error("x", -1)`, `error("x", 1e9)`, `assert(nil)`, `assert(false, {})`,
	}
	for hook, src := range hooks {
		for _, value := range values {
			t.Run(hook+" "+value, func(t *testing.T) {
				fx := build(t, `local weir = require "weir" return weir.transform { `+fmt.Sprintf(src, value)+` }`, "")
				equal(t, fx.send(t, "bomb 1\n"), "bomb 1\n")
				h := fx.Health()
				if h.State != component.Unhealthy || !strings.Contains(h.Message, "script.lua:1: in "+hook+": ") {
					t.Errorf("got %s: %.500q", h.State, h.Message)
				}
				if len(h.Message) > 10_000 {
					t.Errorf("the message has %d bytes", len(h.Message))
				}
				equal(t, fx.send(t, "work 1\n"), "work{ok=\"1\"} 1\n")
			})
		}
	}
}
