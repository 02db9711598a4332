package lua_test

import (
	"strings"
	"testing"
)

// TestLoopsThatBeginWithAJump runs programs twice: as they are, and with a call
// at every @, so that no loop or label begins with a jump. Both must do the
// same. gopher-lua 1.1.2 gets a jump wrong that goes back to a jump.
func TestLoopsThatBeginWithAJump(t *testing.T) {
	run := func(t *testing.T, src, mark string) string {
		t.Helper()
		src = strings.ReplaceAll(src, "@", mark)
		src = strings.ReplaceAll(src, "tick()", "math.abs(1)")
		f := build(t, metrics("local n, x, no, yes = 0, nil, false, true\n"+src+"\nbatch:set_label(\"n\", n)"), `script { limits { time = "10s" } }`)
		out := f.send(t, "m 1\n")
		if h := f.Health(); h.Message != "" {
			t.Errorf("%s: %s", src, h.Message)
		}
		return out
	}
	f := func(src string) {
		t.Helper()
		if want, got := run(t, src, "tick() "), run(t, src, ""); got != want {
			t.Errorf("%s: got %q, want %q", strings.ReplaceAll(src, "@", ""), got, want)
		}
	}
	// A loop that begins with break.
	f(`while true do @break end n = n + 1`)
	f(`while n < 3 do @break end n = n + 1`)
	f(`repeat @break until true n = n + 1`)
	f(`repeat @break until false n = n + 1`)
	f(`for i = 1, 3 do @break end n = n + 1`)
	f(`for k in next, { 1, 2 } do @break end n = n + 1`)
	f(`for k in next, {} do @break end n = n + 1`)
	// One as the first statement of another, which goes round.
	for _, inner := range []string{
		`while true do @break end`, `while n < 9 do @break end`, `while false do @n = 99 end`, `while nil and n do @n = 99 end`,
		`while (false and x) or n == 1 do @break end`,
		`repeat @break until true`, `repeat @break until false`, `for i = 1, 3 do @break end`,
		`for k in next, { 1, 2 } do @break end`, `do @while true do @break end end`,
		`if false then @n = 99 end`, `if nil then @n = 99 else @n = n + 1 end`, `if true then @do @end else @n = 99 end`,
		`if 1 then @do @end else @n = 99 end`, `if false and yes then @n = 99 end`, `if no or false then @n = 99 else @n = n + 1 end`,
		`if not true then @n = 99 end`, `if true then @else @n = 99 end`, `local y = false and x`, `local y = nil or n`, `local y = true and n`, `local y = 1 and n`,
		`x = x`, `x = false or x`, `if (false or x) == 1 then @n = 99 end`, `local y = ("" and n) + 1`,
		`goto c`, `do @goto c end`, `if n == 1 then @goto c end`, `if true then @goto c end`,
	} {
		f(`while true do @` + inner + ` @n = n + 1 @if n > 3 then @break end @::c:: @if n == 0 then n = 50 else n = n + 0.5 end if n > 3 then break end end`)
		f(`while true do @` + inner + ` @n = n + 1 if n > 3 then @break else @n = n + 1 end @::c:: @n = n + 1 if n > 9 then break end end`)
		f(`while n < 3 do @` + inner + ` @n = n + 1 @::c:: @n = n + 1 end`)
		f(`while n < 3 do @n = n + 1 @` + inner + ` @::c:: @end`)
		f(`while n < 3 and true do @` + inner + ` @::c:: @n = n + 1 end`)
		f(`while (false and x) or n < 3 do @` + inner + ` @n = n + 1 @::c:: n = n + 1 @end`)
		f(`while not (n >= 3) do @` + inner + ` @n = n + 1 @::c:: @n = n + 1 if n == 7 then @break else @n = n + 1 end end`)
		f(`repeat @` + inner + ` @n = n + 1 @::c:: @n = n + 1 until n > 3`)
		f(`repeat @do @` + inner + ` @n = n + 1 @::c:: @end n = n + 1 until n > 3 or false`)
		f(`for i = 1, 3 do @` + inner + ` @n = n + 1 @::c:: @end`)
		f(`for k in next, { 1, 2, 3 } do @` + inner + ` @n = n + 1 @::c:: @end`)
		f(`for k in next, { 1, 2, 3 } do @` + inner + ` @n = n + 1 if k == 2 then @break else @n = n + 1 end @::c:: @end`)
		f(`for i = 1, 2 do @for k in next, { 1, 2, 3 } do @` + inner + ` @n = n + 1 @::c:: @end end`)
		f(`do @::top:: @` + inner + ` @n = n + 1 @::c:: n = n + 1 if n < 4 then @goto top end end`)
		if strings.Contains(inner, "goto") {
			continue
		}
		// Closures of the body.
		f(`local fs = {} while n < 3 do @` + inner + ` @do local k = n @fs[#fs + 1] = function() return k end end @::c:: @n = n + 1 @if n == 2 then @break end end for _, g in ipairs(fs) do n = n * 10 + g() end`)
		f(`local fs = {} while (false and x) or n < 3 do @` + inner + ` @do local k = n @fs[#fs + 1] = function() k = k + 1 return k end end @::c:: @n = n + 1 end for _, g in ipairs(fs) do n = n * 10 + g() + g() end`)
		f(`local fs = {} while (false and x) or n < 3 do @local k = n @fs[#fs + 1] = function() k = k + 1 return k end @n = n + 1 @if n == 2 then @break end end for _, g in ipairs(fs) do n = n * 10 + g() + g() end`)
	}
	// A label whose goto is in a loop.
	f(`::top:: @while true do @break end n = n + 1 while n < 5 do @goto top end`)
	// Two labels, and loops in functions in expressions.
	f(`::a:: @::b:: @while true do @break end n = n + 1 if n < 3 then @goto a end if n < 6 then @goto b end`)
	f(`local t = { f = function() while true do @while true do @break end n = n + 1 if n > 3 then @return n end end end } t.f()`)
}

// A for over an iterator without all three values begins at the beginning.
func TestIteratorsInParts(t *testing.T) {
	f := func(head, want string) {
		t.Helper()
		fx := build(t, metrics(`
			local t, out = { 5, 6, 7 }, ""
			local function args(...) return select("#", ...) .. tostring((select(2, ...))) end
			local function state() return t end
			local left
			local function once(...) if not left then left = true return args(...) end end
			do local a, b, c, d, e, f = 1, 2, 3, 1, 2, 3 end
			for `+head+` do out = out .. tostring(k) .. " " end
			batch:set_label("n", out)`), "")
		if got := fx.send(t, "m 1\n"); got != "m{n=\""+want+"\"} 1\n" {
			t.Errorf("for %s: got %s%s, want %s", head, got, fx.Health().Message, want)
		}
	}
	f("k in next, t", "1 2 3 ")
	f("k in next, { 5, 6, 7 }", "1 2 3 ")
	f("k, v in next, t", "1 2 3 ")
	f("k, v in next, { 5, 6, 7 }", "1 2 3 ")
	f("k, v, w in next, t", "1 2 3 ")
	f("k, v, w, x in next, t", "1 2 3 ")
	f("k in next, t, 1", "2 3 ")
	f("k, v in next, t, 1", "2 3 ")
	f("k in next, state()", "1 2 3 ")
	f("k, v in next, state()", "1 2 3 ")
	f("k in next, (state())", "1 2 3 ")
	f("k in pairs(t)", "1 2 3 ")
	f("k, v in ipairs(t)", "1 2 3 ")
	f("k in once", "2nil ")
	f("k in (once)", "2nil ")
}

// Functions keep the locals that they hold on to when a break leaves the block.
func TestBreakKeepsLocals(t *testing.T) {
	f := func(src, want string) {
		t.Helper()
		fx := build(t, metrics("local n, g = 0, {}\n"+src+"\nbatch:set_label(\"n\", n)"), "")
		if got := fx.send(t, "m 1\n"); got != "m{n=\""+want+"\"} 1\n" {
			t.Errorf("%s: got %s%s, want %s", src, got, fx.Health().Message, want)
		}
	}
	const other = ` do local z, y, x, w, v, u, r, q, p = 9, 8, 7, 6, 5, 4, 3, 2, 1 n = g() end`
	f(`for i = 1, 3 do if i == 2 then local k = i g = function() return k end break end end`+other, "2")
	f(`for i in pairs { 1, 2, 3 } do if i == 2 then do local k = i g = function() return k end break end end end`+other, "2")
	f(`local i = 0 while true do i = i + 1 if i == 2 then local k = i g = function() return k end break end end`+other, "2")
	f(`local i = 0 while (false and i) or i < 9 do i = i + 1 if i == 2 then local k = i g = function() return k end break end end`+other, "2")
	f(`local i = 0 repeat i = i + 1 if i == 2 then local k = i function g() return k end break end until i > 9`+other, "2")
	f(`for j = 1, 2 do for i = 1, 3 do if i == 2 then local k = i + j g[j] = function() return k end break end end end n = g[1]() * 10 + g[2]()`, "34")
	f(`local function inc() n = n + 1 end for i = 1, 3 do if i == 2 then inc() break end inc() end inc()`, "3")
}

// Functions keep the locals that they hold on to when a goto leaves the block,
// and those of other blocks when it does not.
func TestGotoKeepsLocals(t *testing.T) {
	f := func(src, want string) {
		t.Helper()
		fx := build(t, metrics("local n, g = 0, {}\n"+src+"\nbatch:set_label(\"n\", n)"), "")
		if got := fx.send(t, "m 1\n"); got != "m{n=\""+want+"\"} 1\n" {
			t.Errorf("%s: got %s%s, want %s", src, got, fx.Health().Message, want)
		}
	}
	// Variables whose block the jump does not leave stay shared.
	f(`local function inc() n = n + 1 end for i = 1, 3 do if i == 2 then goto next end inc() ::next:: end n = n + 0 inc()`, "3")
	f(`local s = 0 local function add(x) s = s + x end for i = 1, 4 do if i % 2 == 0 then goto continue end add(i) ::continue:: end s = s * 10 add(0) n = s`, "40")
	f(`local function inc() n = n + 1 end do goto skip end n = 100 ::skip:: inc() n = n + 1 inc()`, "3")
	f(`local function f(a, ...) local function inc() a = a + 1 end if a then goto out end ::out:: inc() a = a * 10 inc() return a end n = f(1)`, "21")
	f(`local t = {} function t:f(a) local function inc() a = a + 1 end goto out ::out:: inc() a = a * 10 inc() return a + self.x end t.x = 100 n = t:f(1)`, "121")
	// Variables whose block it leaves are new each time.
	f(`for i = 1, 3 do local k = i * 2 g[i] = function() k = k + 1 return k end if i < 9 then goto next end ::next:: end n = g[1]() * 10 + g[2]() g[1]() n = n * 10 + g[1]()`, "355")
	f(`local i = 0 ::top:: i = i + 1 do local k = i g[i] = function() return k end if i < 3 then goto top end end n = g[1]() * 100 + g[2]() * 10 + g[3]()`, "123")
	f(`local i = 0 ::top:: local k = i i = i + 1 g[i] = function() return k end if i < 3 then goto top end n = g[1]() * 100 + g[2]() * 10 + g[3]()`, "12")
	f(`local i = 0 ::top:: local function h() i = i + 1 return h end g[i + 1] = h h() if i < 3 then goto top end n = (g[1] ~= g[2] and g[1]() == g[1]) and 1 or 0`, "1")
	f(`local i = 0 while i < 3 do i = i + 1 local k = i g[i] = function() k = k + 1 return k end goto continue ::continue:: end n = g[1]() * 100 + g[2]() * 10 + g[3]()`, "234")
	f(`local i = 0 repeat i = i + 1 local k = i g[i] = function() return k end if i == 2 then goto continue end ::continue:: local last = i == 3 until last n = g[1]() * 100 + g[2]() * 10 + g[3]()`, "123")
	f(`for _, i in ipairs { 1, 2, 3 } do g[i] = function() return i end if i == 2 then goto next end i = i + 3 ::next:: end n = g[1]() * 100 + g[2]() * 10 + g[3]()`, "426")
	f(`do local a = 1 do local b = 2 g[1] = function() b = b + 1 return a + b end goto out end ::out:: a = 10 n = g[1]() + g[1]() end`, "27")
}

// A closure that escaped from a function that failed keeps its locals, and
// those of functions that did not fail stay shared.
func TestErrorsKeepLocals(t *testing.T) {
	f := func(src, want string) {
		t.Helper()
		fx := build(t, metrics("local n, g = 0, nil\n"+src+"\nbatch:set_label(\"n\", n)"), "")
		if got := fx.send(t, "m 1\n"); got != "m{n=\""+want+"\"} 1\n" {
			t.Errorf("%s: got %s%s, want %s", src, got, fx.Health().Message, want)
		}
	}
	const other = ` do local z, y, x, w, v, u = 9, 8, 7, 6, 5, 4 n = g() end`
	f(`pcall(function() local k = 1 g = function() k = k + 1 return k end error() end)`+other, "2")
	f(`pcall(function() local k = 1 g = function() k = k + 1 return k end local _ = nil + 1 end)`+other, "2")
	f(`xpcall(function() local k = 1 g = function() k = k + 1 return k end error() end, function() g() end)`+other, "3")
	f(`local a = 1 local function inc() a = a + 1 return a end g = inc pcall(function() local k = a g = function() k = k + 1 return k + inc() end error() end) a = 10 inc()`+other, "14")
	f(`local a = 1 local function inc() a = a + 1 return a end pcall(function() pcall(error) inc() local k = a g = function() k = k + a return k end pcall(inc) error() end) a = a * 10`+other, "32")
	f(`local co = coroutine.create(function() local k = 1 g = function() k = k + 1 return k end error() end) coroutine.resume(co)`+other, "2")
	f(`local co = coroutine.wrap(function() local k = 1 pcall(function() local j = k g = function() k = k + j return k end error() end) k = 5 coroutine.yield() end) co()`+other, "6")
	f(`batch:each(function() local k = 1 g = g or function() k = k + 1 return k end end)`+other, "2")
	f(`pcall(function() batch:map_value(function() local k = 1 g = function() k = k + 1 return k end error() end) end)`+other, "2")
}

// A hook that failed leaves functions behind that still work in the next call.
func TestFailedHooksKeepLocals(t *testing.T) {
	fx := build(t, `local weir = require "weir"
		local g
		return weir.transform { metrics = function(batch)
			if g then batch:set_label("n", g()) return end
			local k = 1
			g = function() k = k + 1 return k end
			error("first")
		end }`, "")
	equal(t, fx.send(t, "m 1\n"), "m 1\n")
	equal(t, fx.send(t, "m 1\n"), "m{n=\"2\"} 1\n")
}
