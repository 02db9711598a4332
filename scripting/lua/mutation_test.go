package lua_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/lua"
)

// TestMutations: each change has its position, and strings for people stay.
func TestMutations(t *testing.T) {
	f := func(text string, want ...string) {
		t.Helper()
		var got []string
		for _, m := range lua.New().Mutations(scripting.File{Name: "x.lua", Text: text}) {
			got = append(got, fmt.Sprintf("%d:%d %s", m.Line, m.Col, m.Change))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
	f("local x = a == b", "1:13 == → ~=")
	f("local x = a < -1", "1:13 < → <=", "1:16 1 → 2")
	f("local x = #t - 1000", "1:14 - → +", "1:16 1000 → 1")
	f("local x = 0x10 .. 1.5e-3", "1:11 0x10 → (0x10 + 1)", "1:19 1.5e-3 → (1.5e-3 + 1)")
	f("local x = not a and b or true", "1:11 drop not a → a", "1:17 and → or", "1:23 or → and", "1:26 true → false")
	f("local x = f(...) - 1", "1:18 - → +", "1:20 1 → 2")

	// Comments and strings are no code.
	f("-- a == b\n--[==[ 1\n]] ]==] local x = [[ 1 == 2 ]] -- 3", "3:19 [[ 1 == 2 ]] → \"\"")
	f("local x = 'it\\'s 1'", `1:11 'it\'s 1' → ""`)
	f(`local x = ""`, `1:11 "" → "mutated"`)

	// Strings of documentation, errors and logs stay; arguments and results do not.
	f(`local x = { doc = "text", "item" }`)
	f(`local x = require "x"`)
	f(`local x = s:find("x", "y")`, `1:18 "x" → ""`, `1:23 "y" → ""`)
	f(`local x = s:find "x"`, `1:18 "x" → ""`)
	f(`ctx.metrics.counter("x", {}, "text"):add(a)`, `1:1 drop ctx.metrics.counter("x", {}, "text"):add(a)`, `1:21 "x" → ""`)
	f("local x = { max = 5, max_records = 6, n = 7 }", "1:43 7 → 8")
	f("local max = 1", "1:13 1 → 2")
	f(`error("no")`, `1:1 drop error("no")`)

	// Conditions: that of a single comparison is not negated as well.
	f("if a then b() end", "1:4 a → not (a)", "1:11 drop b()")
	f("if a == b then c() end", "1:6 == → ~=", "1:16 drop c()")
	f("while a < b do c() end", "1:7 a < b → not (a < b)", "1:9 < → <=", "1:16 drop c()")
	f("if x then elseif y and z then end", "1:4 x → not (x)", "1:18 y and z → not (y and z)", "1:20 and → or")

	// Statements, of one line and of several.
	f("a.b = c", "1:1 drop a.b = c")
	f("a = {\n  b = c,\n  d,\n}\ne()", "1:1 drop a = { b = c, d, }", "5:1 drop e()")
	f("a = b\n  + c\nd:e(function(f)\n  return g\nend)", "1:1 drop a = b + c", "2:3 + → -", "3:1 drop d:e(function(f) return g end)", "4:3 drop return g")
	f("for i = a, b do break end", "1:17 drop break")
	f("repeat a() until b", "1:8 drop a()")
	f("local a = b\nlocal function c() end\nreturn d")
	f("do a() b() end", "1:4 drop a() b()")
}
