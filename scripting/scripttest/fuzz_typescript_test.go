package scripttest_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/scripting/scripttest"
)

// Fuzzing a script in TypeScript writes a test in TypeScript, with the arguments of
// the block and a template literal. The test fails when it is run.
func TestFuzzTypeScript(t *testing.T) {
	const head = "import { defineTransform, arg } from \"weir\";\nexport default defineTransform({ args: { keep: arg.list({ default: [] }), fail: arg.string({ default: \"odd\" }), limits: arg.map({ default: {} }), on: arg.bool({ default: false }), n: arg.number({ default: 0 }) },\n"
	f := func(args, hook, want string) {
		t.Helper()
		script := head + hook + "\n});\n"
		files := "-- scripts/a/work.ts --\n" + script
		test := "import { component, it } from \"weir/test\";\nconst t = component(\"work.ts\"" + args + ");\n"
		write(t, archive(files+"-- scripts/a/work.test.ts --\n"+test+"it(\"x\", () => { t.metrics('seen{special=\"`${x}\\\\\\\\\"} 1'); });\n"))
		o := options()
		o.Fuzz, o.Seed = time.Minute, 1
		r := run(t, o)
		last := r.Files[len(r.Files)-1]
		if last.Name != "scripts/a/work.ts" || len(last.Tests) != 1 || last.Tests[0].Status != scripttest.Failed {
			t.Fatalf("got %v: %+v", ends(r), last)
		}
		got := last.Tests[0].Problem.Diff
		if !strings.Contains(got, want) {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
		write(t, archive(files+"-- scripts/a/work.test.ts --\nimport { component, it } from \"weir/test\";\n"+got))
		if diff := cmp.Diff([]string{"error survives what --fuzz found"}, ends(run(t, options()))); diff != "" {
			t.Errorf("the test that was found (-want +got):\n%s\n%s", diff, got)
		}
	}
	f("", "metrics(batch) { batch.each((m) => { if (m.labels.special === undefined) throw new Error('missing'); }); }",
		"it(\"survives what --fuzz found\", () => {\n  const t = component(\"work.ts\");\n  t.metrics(`\n    {} 1\n  `);\n});\n")
	f(`, { keep: ["a", "b"], limits: { x: "y" }, on: true, n: 1.5 }`, "metrics(batch) { batch.each((m) => { if (m.labels.special?.length === 6 && m.name !== 'seen') throw new Error('there'); }); }",
		"  const t = component(\"work.ts\", {\"keep\":[\"a\",\"b\"],\"limits\":{\"x\":\"y\"},\"n\":1.5,\"on\":true});\n  t.metrics(`\n    {special=\"\\`\\${x}\\\\\\\\\"} 1\n  `);\n")
}

// Only scripts that take metrics and send them are sent hostile batches: none of
// these is.
func TestFuzzLeavesOut(t *testing.T) {
	write(t, archive(`
-- scripts/a/logs.lua --
local weir = require "weir"
return weir.transform { logs = function(batch) error("x") end }
-- scripts/a/source.lua --
local weir = require "weir"
return weir.source { poll = function(ctx) error("x") end }
-- scripts/a/sink.lua --
local weir = require "weir"
return weir.sink { send = function(batch) error("x") end }
-- scripts/a/x_test.lua --
it("x", function() end)
`))
	o := options()
	o.Fuzz, o.Seed = time.Nanosecond, 1
	if diff := cmp.Diff([]string{"passed x"}, ends(run(t, o))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Nothing is sent when a test fails, and the same seed finds the same.
func TestFuzzWhenTestsPass(t *testing.T) {
	const script = "-- scripts/a/work.lua --\nlocal weir = require 'weir'\nreturn weir.transform { metrics = function(batch) batch:each(function(m) if m.labels.job == '%s%d' then error('odd') end end) end }\n"
	found := func(test string) []scripttest.File {
		t.Helper()
		write(t, archive(script+"-- scripts/a/work_test.lua --\n"+test))
		o := options()
		o.Fuzz, o.Seed = time.Minute, 42
		return run(t, o).Files
	}
	if got := found("it('x', function() error('x') end)\n"); len(got) != 1 {
		t.Errorf("got %+v though a test failed", got)
	}
	first, second := found("it('x', function() end)\n"), found("it('x', function() end)\n")
	if len(first) != 2 || first[1].Tests[0].Problem == nil {
		t.Fatalf("got %+v", first)
	}
	if diff := cmp.Diff(first[1].Tests[0].Name+first[1].Tests[0].Problem.Diff, second[1].Tests[0].Name+second[1].Tests[0].Problem.Diff); diff != "" {
		t.Errorf("the same seed (-first +second):\n%s", diff)
	}
}
