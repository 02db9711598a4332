package scripttest_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestMuchOutput checks that the output of a test is limited.
func TestMuchOutput(t *testing.T) {
	f := func(name, text string) {
		t.Helper()
		write(t, archive("-- scripts/a/"+name+" --\n"+text))
		r := run(t, options())
		if diff := cmp.Diff([]string{"error prints", "error throws", "passed after"}, ends(r)); diff != "" {
			t.Fatalf("%s (-want +got):\n%s", name, diff)
		}
		prints, throws := r.Files[0].Tests[0], r.Files[0].Tests[1]
		if n := len(prints.Output); n != 201 {
			t.Fatalf("%s: got %d lines of output, want 201", name, n)
		}
		if last := prints.Output[200]; last != "9800 more lines are not shown" {
			t.Errorf("%s: got the last line %q", name, last)
		}
		if first, want := prints.Output[0], "scripts/a/"+name+":"; !strings.HasPrefix(first, want) || !strings.HasSuffix(first, ": 1") {
			t.Errorf("%s: got the first line %q", name, first)
		}
		if n := len(throws.Problem.Msg); n > 64<<10 || !strings.HasPrefix(throws.Problem.Msg, "xxx") {
			t.Errorf("%s: got a message of %d bytes", name, n)
		}
		if throws.Output != nil {
			t.Errorf("%s: got the output of another test: %q", name, throws.Output[0])
		}
	}
	f("lua_test.lua", "it('prints', function() for i = 1, 10000 do print(i) end error('after it') end)\nit('throws', function() error(('x'):rep(1000000)) end)\nit('after', function() end)\n")
	f("js.test.ts", "import { it } from \"weir/test\";\nit('prints', () => { for (let i = 1; i <= 10000; i++) console.log(i); throw new Error('after it'); });\nit('throws', () => { throw new Error('x'.repeat(1000000)); });\nit('after', () => {});\n")
}

// TestMuchLogged checks that a test says when it does not show all that a component
// logged.
func TestMuchLogged(t *testing.T) {
	write(t, archive(`
-- scripts/a/a.lua --
local weir = require "weir"
return weir.transform { metrics = function(batch, ctx) for i = 1, #batch do ctx.log.info("line " .. i) end end }
-- scripts/a/a_test.lua --
it("logs", function()
  local t, text = weir.test.component("a.lua"), {}
  for i = 1, 20 do text[i] = "a{n=\"" .. i .. "\"} 1" end
  for batch = 1, 11 do t:metrics(table.concat(text, "\n")) t:advance("1m") end
end)
it("logs less", function()
  weir.test.component("a.lua"):metrics("a 1")
end)
`))
	r := run(t, options())
	if diff := cmp.Diff([]string{"passed logs", "passed logs less"}, ends(r)); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	out := r.Files[0].Tests[0].Output
	if len(out) != 201 || !strings.Contains(out[199], ": line 20 ") || !strings.HasSuffix(out[200], ": 20 more lines are not shown") {
		t.Errorf("got %d lines that end with %q", len(out), out[max(0, len(out)-2):])
	}
	if out := r.Files[0].Tests[1].Output; len(out) != 1 || !strings.Contains(out[0], ": line 1 ") {
		t.Errorf("got %q, want one line", out)
	}
}

// A test in TypeScript that does not end costs itself, however it goes about it,
// and the tests after it run in a new VM with the file's own values.
func TestLoopForEverTypeScript(t *testing.T) {
	write(t, archive(`
-- scripts/a/a.test.ts --
import { beforeEach, expect, it, vi } from "weir/test";
let calls = 0;
beforeEach(() => { calls++; });
it("before", () => { expect(calls).toBe(1); });
it("loops", () => { for (;;); });
it("catches", () => { for (;;) try { for (;;); } catch { } finally { continue; } });
it("expects an error", () => { expect(() => { for (;;); }).toThrow(); });
it("awaits", async () => { for (;;) await null; });
it("a getter", () => { const o = { get x(): number { for (;;); } }; expect(o).toEqual({ x: 1 }); });
it("a mock", () => { vi.fn(() => { for (;;); })(); });
it("a pattern", () => { /^(a+)+$/.test("a".repeat(40) + "b"); for (;;); });
it("after", () => { expect(calls).toBe(1); });
-- scripts/a/b.test.ts --
for (;;);
-- scripts/a/c.test.ts --
import { it } from "weir/test";
it("in another file", () => {});
`))
	o := options()
	o.Limit = 100 * time.Millisecond
	r := run(t, o)
	want := []string{
		"passed before", "error loops", "error catches", "error expects an error", "error awaits", "error a getter", "error a mock", "error a pattern", "passed after",
		"broken scripts/a/b.test.ts", "passed in another file",
	}
	if diff := cmp.Diff(want, ends(r)); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	for i, test := range r.Files[0].Tests[1:8] {
		if p := test.Problem; p.Line != i+5 || !strings.Contains(p.Msg, "limit exceeded: the call ran longer than 100ms") {
			t.Errorf("%s: got %s:%d: %s, want line %d and the limit", test.Name, p.File, p.Line, p.Msg, i+5)
		}
	}
	if p := r.Files[1].Problem; p.Line != 1 || !strings.Contains(p.Msg, "limit exceeded") {
		t.Errorf("got %+v for the file that loops", p)
	}
}
