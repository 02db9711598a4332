package scripttest_test

import (
	"fmt"
	"strings"
	"testing"
)

// TestForall: a property that does not hold fails with the smallest value, as code.
func TestForall(t *testing.T) {
	f := func(test, msg, diff string) {
		t.Helper()
		name := "scripts/a/mark_test.lua"
		if strings.Contains(test, "=>") {
			name, test = "scripts/a/mark.test.ts", `import { component, expect, forall, gen, it } from "weir/test";`+"\n"+test
		}
		write(t, archive(marked+"-- "+name+" --\n"+test+"\n"))
		o := options()
		o.Seed = 7
		r := run(t, o)
		var p fmt.Stringer
		got, gotDiff := "", ""
		if tests := r.Files[0].Tests; len(tests) > 0 && tests[0].Problem != nil {
			p = tests[0].Problem
			got, gotDiff = tests[0].Problem.Msg, tests[0].Problem.Diff
		} else if r.Files[0].Problem != nil {
			p = r.Files[0].Problem
			got = r.Files[0].Problem.Msg
		}
		if msg == "" && p == nil {
			return
		}
		if msg == "" || !strings.Contains(got, msg) || !strings.HasSuffix(gotDiff, diff) {
			t.Errorf("%s: got\n%v\nwant %q, %q", test, p, msg, diff)
		}
	}
	lua := func(gen, body string) string {
		return "it('a', function() forall(" + gen + ", function(x)\n" + body + "\nend) end)"
	}
	const smallest = "the smallest value that fails:\n"
	// what holds
	f(lua("gen.int()", "assert.equals(x, x)"), "", "")
	f(lua("gen.int(3, 9)", "assert.is_true(x >= 3 and x <= 9 and x % 1 == 0)"), "", "")
	f(lua("gen.int(-5, -2)", "assert.is_true(x >= -5 and x <= -2)"), "", "")
	f(lua("gen.number()", "assert.is_true(x == x and x < math.huge)"), "", "")
	f(lua("gen.string(5)", "assert.is_true(#x <= 20)"), "", "")
	f(lua("gen.list(gen.boolean(), 3)", "assert.is_true(#x <= 3) for _, b in ipairs(x) do assert.boolean(b) end"), "", "")
	f(lua("gen.one_of { 'a', gen.int(1, 2) }", "assert.is_true(x == 'a' or x == 1 or x == 2)"), "", "")
	f("local t = weir.test.component('mark.lua')\n"+lua("gen.metrics()", "t:metrics(x)"), "", "")
	f("local t = weir.test.component('mark.lua')\n"+lua("gen.histogram()", "assert.is_true(#t:metrics(x) > 0)"), "", "")
	f("local t = weir.test.component('mark.lua')\n"+lua("gen.series()", "assert.equals(1, #t:metrics(x .. ' 1'))"), "", "")
	f(lua("gen.record { a = gen.line(), b = gen.labels(), c = 1 }", "assert.string(x.a) assert.table(x.b) assert.equals(1, x.c)"), "", "")
	f(`it("a", () => { const t = component("mark.lua"); forall(gen.metrics(), (x) => { t.metrics(x); }, 20); });`, "", "")
	f(`it("a", () => { forall(gen.oneOf([1, 2]), async (x) => { expect(await Promise.resolve(x)).toBeLessThan(3); }); });`, "the hook awaits a promise", "")

	// the smallest value that fails
	f(lua("gen.int()", "assert.is_true(x < 100)"), "with --seed 7", smallest+"local x = 100\n")
	f(lua("gen.int()", "assert.is_true(x > -30)"), "scripts/a/mark_test.lua:2: expected true, got false", smallest+"local x = -30\n")
	f(lua("gen.list(gen.int())", "assert.is_true(#x < 3)"), "forall failed in run", smallest+"local x = { 0, 0, 0 }\n")
	f(lua("gen.string()", "assert.falsy(x:find('%.'))"), "forall failed", smallest+"local x = \".\"\n")
	f(lua("gen.string()", "assert.falsy(x:find('\\n'))"), "forall failed", "\n")
	f(lua("gen.labels()", "assert.falsy(x.code)"), "forall failed", smallest+"local x = { code = \"a\" }\n")
	f(lua("gen.record { n = gen.int(0, 1000), s = gen.string() }", "assert.is_true(x.n < 17)"), "forall failed", smallest+"local x = { n = 17, s = \"\" }\n")
	f("local t = weir.test.component('mark.lua')\n"+lua("gen.metrics()", "assert.is_true(#t:metrics(x) < 2)"), "forall failed", "up 0\n]]\n")
	f(`it("a", () => { forall(gen.record({ "a-b": gen.int(), list: gen.list(gen.boolean()) }), (x) => { expect(x.list.length).toBeLessThan(2); }); });`, "expected 2 to be less than 2", smallest+`const x = { "a-b": 0, list: [false, false] };`+"\n")

	// mistakes
	f("forall(gen.int(), function() end)", "cannot use forall outside of a test", "")
	f(lua("gen.int(3, 2)", ""), "cannot generate numbers from 3 to 2", "")
	f(lua("gen.one_of {}", ""), "cannot generate one of no items", "")
	f(lua("gen.list(gen.int(), 1000)", ""), "cannot generate a length of 1000: the maximum must be 0 to 100", "")
	f("it('a', function() forall(gen.int(), function() end, 0) end)", "cannot use 0 runs: it must be 1 to 100000", "")
	f("it('a', function() forall({}, function() end) end)", "must be a", "")
}

// TestForallRepeats: a seed gives the same values in each run, and another seed gives different ones.
func TestForallRepeats(t *testing.T) {
	values := func(seed uint64) string {
		t.Helper()
		write(t, archive("-- scripts/a/x_test.lua --\nit('a', function() forall(gen.string(), function(x) print(x) end, 20) end)\nit('b', function() error('shown') end)\n"))
		o := options()
		o.Seed = seed
		return strings.Join(run(t, o).Files[0].Tests[0].Output, "\n")
	}
	if a, b, c := values(1), values(1), values(2); a != b || a == c || a == "" {
		t.Errorf("got %q, %q and, with another seed, %q", a, b, c)
	}
}

// TestForallEnds: the limit of script time ends a property that takes too long, and
// pending ends the test.
func TestForallEnds(t *testing.T) {
	write(t, archive(`-- scripts/a/x_test.lua --
it("loops", function() forall(gen.int(), function() while true do end end) end)
it("is slow", function() forall(gen.int(), function() for i = 1, 50000 do end end, 100000) end)
it("is pending", function() forall(gen.int(), function() pending("later") end) end)
`))
	r := run(t, options())
	want := []string{"error loops", "error is slow", "pending is pending"}
	if got := ends(r); strings.Join(got, ", ") != strings.Join(want, ", ") {
		t.Fatalf("got %q, want %q", got, want)
	}
	for i, msg := range []string{"limit exceeded", "cannot finish forall: "} {
		if p := r.Files[0].Tests[i].Problem; !strings.Contains(p.Msg, msg) {
			t.Errorf("got %s, want %s", p.Msg, msg)
		}
	}
}
