package scripttest_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/scripttest"
)

func TestPrompt(t *testing.T) {
	write(t, archive(`
-- scripts/a/count.lua --
local weir = require "weir"
local step = 1
local M = { base = 10 }
function M.next(n) return M.base + n + step end
return weir.transform {
  args = { name = weir.arg.string {} },
  state = { seen = weir.state.counter { max = 10 } },
  setup = function() step = 2 error("no luck") end,
  metrics = function(batch, ctx) M.next(ctx.state.seen:get("x")) end,
}
`))
	var printed []string
	p, err := scripttest.NewPrompt(t.Context(), scripttest.PromptOptions{
		Options: options(), Node: "a.count.default", Component: "a.count", Args: map[string]any{"name": "n"},
		State: map[string]any{"seen": map[string]any{"x": 7.0}, "gone": map[string]any{"x": 1.0}},
		Batch: "up{job=\"a\"} 1 1000\n", Time: time.Minute,
		Print: func(line string) { printed = append(printed, line) },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if p.Setup == nil || !strings.Contains(p.Setup.Error(), "no luck") {
		t.Errorf("setup: got %v, want its error", p.Setup)
	}
	if p.StateError == nil || !strings.Contains(p.StateError.Error(), "gone") {
		t.Errorf("state: got %v, want an error about the piece that the script does not have", p.StateError)
	}
	eval := func(ctx context.Context, text string) (string, bool, error) {
		return p.Eval(ctx, scripting.File{Name: "input", Text: text})
	}
	f := func(text, want string) {
		t.Helper()
		if got, lost, err := eval(t.Context(), text); got != want || lost || err != nil {
			t.Errorf("%s = %q, %v, %v, want %q", text, got, lost, err, want)
		}
	}
	f("ctx.args.name", `"n"`)
	f("ctx.state.seen:get('x')", "7")
	f("M.next(1)", "13")
	f("step = 5", "")
	f("M.next(1)", "16")
	f("local t = {} t.t = t", "")
	f("t", "{ t = { …, contains itself } }")
	f("{ [true] = 1, [1.5] = 2, ['a b'] = 'c\"' }", `{ ["a b"] = "c\"", [1.5] = 2, [true] = 1 }`)
	f("print('a', 1)", "")
	if !slices.Equal(printed, []string{"a\t1"}) {
		t.Errorf("printed %q", printed)
	}
	complete := func(text string, want ...string) {
		t.Helper()
		if got := p.Complete(t.Context(), text); !slices.Equal(got, want) {
			t.Errorf("Complete(%q) = %q, want %q", text, got, want)
		}
	}
	complete("x = ste", "step")
	complete("M.", "base", "next")
	complete("batch:drop_w", "drop_where")
	complete("ctx.state.se", "seen")
	complete("batch[1].") // the value of an expression is not known before it runs
	complete("nothing.x")
	for _, text := range []string{"if x then", "f(", "x =", "{ 1,", "[[ a"} {
		if _, _, err := eval(t.Context(), text); !errors.Is(err, scripting.ErrIncomplete) {
			t.Errorf("%s: got %v, want that it is incomplete", text, err)
		}
	}
	f("step", "5")
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if _, lost, err := eval(stopped, "while true do end"); !lost || !errors.Is(err, context.Canceled) {
		t.Errorf("a stopped loop: got %v, %v", lost, err)
	}
	f("step", "2")
}

func TestPromptJavaScript(t *testing.T) {
	write(t, archive(`
-- scripts/a/count.ts --
import { arg, defineTransform, state } from "weir";

let step = 1;
export const next = (n: number) => 10 + n + step;

export default defineTransform({
  args: { name: arg.string(), token: arg.secret() },
  state: { seen: state.counter({ max: 10 }) },
  setup() { step = 2; throw new Error("no luck"); },
  metrics(batch, ctx) { next(ctx.state.seen.get("x")); },
});
`))
	var printed []string
	p, err := scripttest.NewPrompt(t.Context(), scripttest.PromptOptions{
		Options: options(), Node: "a.count.default", Component: "a.count", Args: map[string]any{"name": "n", "token": "s3cret"},
		State: map[string]any{"seen": map[string]any{"x": 7.0}},
		Batch: "up{job=\"a\"} 1 1000\nup{job=\"b\"} 0 1000\n", Time: time.Minute,
		Print: func(line string) { printed = append(printed, line) },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if p.Language != "javascript" || p.Setup == nil || !strings.Contains(p.Setup.Error(), "no luck") {
		t.Errorf("got %s, %v, want javascript and the error of setup", p.Language, p.Setup)
	}
	f := func(text, want string) {
		t.Helper()
		got, lost, err := p.Eval(t.Context(), scripting.File{Name: "input", Text: text})
		if got != want || lost || err != nil {
			t.Errorf("%s = %q, %v, %v, want %q", text, got, lost, err, want)
		}
	}
	f("1 + 1", "2")
	f("ctx.args.name", `"n"`)
	f("ctx.args.token", "<secret>")
	f(`ctx.state.seen.get("x")`, "7")
	f("next(1)", "13")
	f("const n: number = 1, o = { a: [1, n], b: undefined }", "")
	f("let m = n + 1; function twice(x: number) { return x * m } class C { x = m }", "")
	f("twice(21)", "42")
	f("m = 3; twice(2)", "6")
	f("const { a: [one], ...others } = o; one", "1")
	f("others", "{ b: undefined }")
	f("var w = 5; for (var i = 0; i < 3; i++) w++", "")
	f("w", "8")
	f("n; const n = 7", "")
	f("n", "7")
	f("{ x: 1, y: 'a' }", `{ x: 1, y: "a" }`)
	f("new C()", "C { x: 3 }")
	f("await Promise.resolve(4)", "4")
	f("const late = await Promise.resolve(5); late + 1", "6")
	f("o.b", "undefined")
	f("`a\nb`", `"a\nb"`)
	f("o.o = o", "{ a: [1, 1], b: undefined, o: [Circular] }")
	f("Array.from({ length: 60 }, () => 'abcdefghij').length", "60")
	f("({ text: 'x'.repeat(80), list: [1] })", "{\n  list: [\n    1,\n  ],\n  text: \""+strings.Repeat("x", 80)+"\",\n}")
	f("[1, [2, [3, [4, [5, [6]]]]]]", "[1, [2, [3, [4, [5, [Array]]]]]]")
	f("const r = batch[0]; r.value = 9", "9")
	f("batch", "batch of 2 records\n  up{job=\"a\"} 9 1000\n  up{job=\"b\"} 0 1000")
	f("r", `up{job="a"} 9 1000`)
	f("re.compile('^u').match(r.name)", "true")
	f("console.log('a', 1)", "undefined")
	if !slices.Equal(printed, []string{"a 1"}) {
		t.Errorf("printed %q", printed)
	}
	complete := func(text string, want ...string) {
		t.Helper()
		if got := p.Complete(t.Context(), text); !slices.Equal(got, want) {
			t.Errorf("Complete(%q) = %q, want %q", text, got, want)
		}
	}
	complete("x = twi", "twice")
	complete("o.", "a", "b", "o")
	complete("batch.dropW", "dropWhere")
	complete("r.val", "value")
	complete("ctx.state.se", "seen")
	complete("Math.fl", "floor")
	complete("nothing.x")
	fails := func(text, want string) {
		t.Helper()
		if _, lost, err := p.Eval(t.Context(), scripting.File{Name: "input", Text: text}); lost || err == nil || errors.Is(err, scripting.ErrIncomplete) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, %v, want %s", text, lost, err, want)
		}
	}
	fails("nothing.x", "input:1:1: ")
	fails("1;\n  null.x", "input:2:8: ")
	fails("let x = }", "input:1:9: ")
	fails("}", "input:1:1: ")
	fails("'a", "Unterminated string literal")
	fails("import re from 'weir/re'; re", "cannot import or export at a prompt")
	fails("await new Promise(() => {})", "nothing settles")
	fails("await Promise.reject(new Error('bad'))", "bad")
	fails("throw new Error('thrown')", "thrown")
	for _, text := range []string{"if (x) {", "f(", "x =", "[1,", "`a", "/* a"} {
		if _, _, err := p.Eval(t.Context(), scripting.File{Name: "input", Text: text}); !errors.Is(err, scripting.ErrIncomplete) {
			t.Errorf("%s: got %v, want that it is incomplete", text, err)
		}
	}
	f("n", "7")
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if _, lost, err := p.Eval(stopped, scripting.File{Name: "input", Text: "while (true) {}"}); !lost || !errors.Is(err, context.Canceled) {
		t.Errorf("a stopped loop: got %v, %v", lost, err)
	}
	f("typeof n", `"undefined"`)
}
