package scripttest_test

import (
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir/scripting/scripttest"
)

// fuzzed runs the tests of one script with Fuzz and returns the last one.
func fuzzed(t *testing.T, long time.Duration, script, test string) scripttest.Test {
	t.Helper()
	write(t, archive("-- scripts/a/work.lua --\n"+script+"-- scripts/a/work_test.lua --\n"+test))
	o := options()
	o.Fuzz, o.Seed = long, 1
	r := run(t, o)
	f := r.Files[len(r.Files)-1]
	if f.Name != "scripts/a/work.lua" || len(f.Tests) != 1 || !strings.HasPrefix(f.Tests[0].Name, "a.work survives hostile batches (") {
		t.Fatalf("the last file is %+v", f)
	}
	return f.Tests[0]
}

func TestFuzz(t *testing.T) {
	f := func(name, body, msg, test string) {
		t.Helper()
		got := fuzzed(t, time.Minute, "local weir = require 'weir'\nreturn weir.transform { args = { keep = weir.arg.list { default = {} } }, metrics = function(batch, ctx)\n"+body+"\nend }\n",
			"local t = weir.test.component('work.lua', { keep = { 'a' } })\nit('x', function() t:metrics 'seen{special=\"yes\"} 1' end)\n")
		if got.Status != scripttest.Failed {
			t.Errorf("%s: %s", name, got.Status)
			return
		}
		if !strings.Contains(got.Problem.Msg, msg) {
			t.Errorf("%s: got %q, want %q", name, got.Problem.Msg, msg)
		}
		if !strings.Contains(got.Problem.Diff, test) {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got.Problem.Diff, test)
		}
	}
	const head = "it(\"survives what --fuzz found\", function()\n  local t = weir.test.component(\"work.lua\", { keep = { \"a\" } })\n  t:metrics [[\n"
	f("a label that is missing", "batch:each(function(m) local _ = #m.labels.special end)", "in each: ",
		head+"    {} 1\n  ]]\nend)\n")
	f("a native histogram", "batch:each(function(m) local _ = m.value + 1 end)", "nil", head+"    {} {count:")
	f("a value of its own tests", "batch:each(function(m) if m.labels.special == 'yes' and m.name ~= 'seen' then error('seen') end end)", "seen",
		head+"    {special=\"yes\"} 1\n")
	f("what only a change can make", "batch:each(function(m) if m.labels.job == '%s%d' then error('odd') end end)", "odd",
		head+"    {job=\"%s%d\"} 1\n  ]]\nend)\n")
	f("many series", "if #batch > 50 then error('many') end", "many", head)
	f("a batch that is made of nothing twice the same", "batch:each(function(m) m.labels.a = tostring(print) end)", "two new components make different things of one batch", "it(")
}

// A script that survives has a test that passed, however short the time.
func TestFuzzPasses(t *testing.T) {
	got := fuzzed(t, time.Nanosecond, mark("x", "x"), "it('x', function() end)\n")
	if got.Status != scripttest.Passed || got.Problem != nil {
		t.Errorf("got %+v", got)
	}
	if n := strings.TrimPrefix(got.Name, "a.work survives hostile batches "); n == "(0)" || n == "(1)" {
		t.Errorf("got %s batches, want all that are known", n)
	}
}
