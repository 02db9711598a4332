package scripttest_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/scripting/scripttest"
)

// Instruction counts are the same in every run. The other results are present.
func TestBench(t *testing.T) {
	write(t, archive(`
-- scripts/a/work.lua --
local weir = require "weir"
return weir.transform {
  series = function(s) s.labels.mark = "x" end,
  metrics = function(batch) batch:each(function(m) if m.value > 1 then error("no good") end end) end,
}
-- scripts/a/work_test.lua --
local t = weir.test.component("work.lua")
local called = 0
bench("a batch", t, "a 1\nb 1")
bench("the same", t, function() return "a 1\nb 1" end)
bench("a function", function() called = called + 1 end)
bench("a script that fails", t, "a 2")
bench("an invalid batch", t, "a{")
bench("a function that fails", function() error("no") end)
bench("an invalid text", t, function() return 1 end)
it("runs no benches", function() assert.equals(0, called) end)
it("declares no benches", function() assert.has_error(function() bench("x", print) end, "inside it") end)
-- scripts/a/wrong_test.lua --
local t = weir.test.component("work.lua")
it("is told", function()
  assert.has_error(function() bench("x", 1) end)
end)
`))
	o := options()
	o.Bench, o.BenchTime = true, time.Microsecond
	type figures struct {
		Name                string
		Records             int
		Instructions, First float64
		Problem             string
	}
	measure := func() (out []figures) {
		for _, b := range run(t, o).Benchmarks {
			f := figures{Name: b.Name, Records: b.Records, Instructions: b.Instructions, First: b.First}
			if b.Problem != nil {
				f.Problem, _, _ = strings.Cut(b.Problem.Msg, "\n")
			} else if b.Nanos <= 0 {
				t.Errorf("%s takes %v ns", b.Name, b.Nanos)
			}
			out = append(out, f)
		}
		return out
	}
	first := measure()
	if diff := cmp.Diff(first, measure()); diff != "" {
		t.Errorf("two runs (-first +second):\n%s", diff)
	}
	if len(first) != 7 {
		t.Fatalf("got %+v", first)
	}
	if b := first[0]; b.Records != 2 || b.Instructions <= 0 || b.First <= b.Instructions {
		t.Errorf("got %+v, want more instructions in the first batch, which runs the hook series", b)
	}
	if first[0].First != first[1].First {
		t.Errorf("got %v and %v for the first batch, want each with a component of its own", first[0].First, first[1].First)
	}
	if b := first[2]; b.Records != 0 || b.Instructions <= 0 || b.Instructions != b.First {
		t.Errorf("got %+v for a function", b)
	}
	for i, want := range []string{
		"in each: no good", "cannot read line 1 of the metrics", "no", "cannot measure the batch: its function returned a number, not a string",
	} {
		if got := first[3+i].Problem; !strings.HasPrefix(got, want) {
			t.Errorf("%s: got %q, want %q", first[3+i].Name, got, want)
		}
	}
}

func TestWorse(t *testing.T) {
	f := func(was, have scripttest.Measured, want string) {
		t.Helper()
		b := scripttest.Benchmark{Instructions: have.Instructions, First: have.First, Nanos: have.Nanos, Baseline: &was}
		if got := b.Worse(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	was := scripttest.Measured{Instructions: 100, First: 1, Nanos: 10}
	f(was, was, "")
	f(was, scripttest.Measured{Instructions: 50, First: 1, Nanos: 1000}, "") // time is the machine's
	f(was, scripttest.Measured{Instructions: 102, First: 1.1}, "")
	f(was, scripttest.Measured{Instructions: 103, First: 1}, "103 instructions, 100 in the baseline")
	f(was, scripttest.Measured{Instructions: 100, First: 1.2}, "1.20 instructions of the first batch, 1.00 in the baseline")
}
