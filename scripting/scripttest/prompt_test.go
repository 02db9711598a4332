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
