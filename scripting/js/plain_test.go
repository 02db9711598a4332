package js_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/js"
	"github.com/weir-run/weir/stdlib"
)

// runPlain runs a plain file, and returns what it printed.
func runPlain(ctx context.Context, src string, o scripting.PlainOptions) (printed []string, err error) {
	run, err := js.New().Plain(scripting.File{Name: "x.ts", Text: src}, scripting.Env{Modules: stdlib.Modules()})
	if err != nil {
		return nil, err
	}
	o.Print = func(line string) { printed = append(printed, line) }
	if o.Time == 0 {
		o.Time = 10 * time.Second
	}
	return printed, run(ctx, o)
}

// TestPlainFiles runs files that are not components.
func TestPlainFiles(t *testing.T) {
	f := func(src string, args []string, want ...string) {
		t.Helper()
		got, err := runPlain(t.Context(), src, scripting.PlainOptions{Args: args})
		if err != nil {
			t.Errorf("%s: %v", src, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", src, diff)
		}
	}
	f(`console.log("a", 1, [2, { b: 3 }], null)`, nil, `a 1 [2,{"b":3}] null`)
	f("console.info(1); console.warn(2); console.error(3); console.debug(4)", nil, "1", "2", "3", "4")
	f("console.log(args.length, args)", []string{"x", "y z"}, `2 ["x","y z"]`)
	f("console.log(args.length)", nil, "0")
	f("#!/usr/bin/env weir eval\nconsole.log(\"after the first line\")", nil, "after the first line")
	f("#!only", nil)
	f("", nil)
	f("const x: number = 1 as any; enum E { A = 7 }; console.log(x + E.A)", nil, "8")
	f("import json from \"weir/json\"\nconsole.log(json.encode({ a: [1] }))", nil, `{"a":[1]}`)
	f("import { decode } from \"weir/json\"\nexport default 1\nconsole.log(decode(\"[2]\")[0])", nil, "2")
	f("Promise.resolve(1).then((x) => console.log(x)); console.log(0)", nil, "0", "1")
	f("(async () => console.log(await Promise.resolve(5)))()", nil, "5")
	f("(async () => { for await (const x of [Promise.resolve(1), 2]) console.log(x) })()", nil, "1", "2")
}

// TestPlainFilesFail: an error names the place, and what a plain file does not have.
func TestPlainFilesFail(t *testing.T) {
	f := func(src string, o scripting.PlainOptions, want string) {
		t.Helper()
		_, err := runPlain(t.Context(), src, o)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", src, err, want)
		}
	}
	var none scripting.PlainOptions
	f("\nthrow new Error(\"on purpose\")", none, "x.ts:2:")
	f("throw new Error(\"on purpose\")", none, "on purpose")
	f("#!weir\nthrow new Error(\"in line 2\")", none, "x.ts:2:")
	f("Promise.reject(new Error(\"not caught\"))", none, "not caught")
	f("(async () => { await Promise.reject(new Error(\"awaited\")) })()", none, "awaited")
	f("await Promise.resolve()", none, "x.ts:1:1: cannot await outside of a function")
	f("const = 1", none, "x.ts:1:")
	f("ctx.log.info(1)", none, "a plain file has no ctx and no grants")
	f("args.push(1)", none, "Cannot")
	f("for (;;) {}", scripting.PlainOptions{Time: 20 * time.Millisecond}, "the call ran longer than 20ms, the limit is --time")
	f("const a = []; for (;;) a.push(new Array(1000).fill(a.length))", scripting.PlainOptions{Memory: 4 << 20}, "limit is --memory")
}

// TestPlainFilesStop: a file ends when the context does.
func TestPlainFilesStop(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	run, err := js.New().Plain(scripting.File{Name: "x.ts", Text: "console.log(1); for (;;) {}"}, scripting.Env{})
	if err != nil {
		t.Fatal(err)
	}
	err = run(ctx, scripting.PlainOptions{Time: time.Hour, Print: func(string) { cancel() }})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that it was stopped", err)
	}
}
