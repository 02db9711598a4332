package scripttest_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/scripting/scripttest"
)

// measured is a report with benchmarks of fixed figures.
func measured() *scripttest.Report {
	return &scripttest.Report{Benchmarks: []scripttest.Benchmark{
		{File: "scripts/a/a_test.lua", Name: "a batch", Line: 3, Records: 100, Instructions: 12.34567, First: 20, Nanos: 1234.5, Allocs: 0.001},
		{File: "scripts/a/a_test.lua", Name: "a function", Line: 4, Instructions: 150},
		{File: "scripts/a/b_test.lua", Name: "a batch", Line: 1, Problem: &scripttest.Problem{File: "scripts/a/b_test.lua", Line: 1, Msg: "no"}},
	}}
}

// A baseline that was written is read back, rounded; a benchmark that failed is
// not in it, and one that is new has none.
func TestBaseline(t *testing.T) {
	t.Chdir(t.TempDir())
	text := scripttest.Baseline(measured())
	if err := os.WriteFile("baseline.json", []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if text != scripttest.Baseline(measured()) {
		t.Error("two baselines of one report differ")
	}
	r := measured()
	r.Benchmarks[1].Name = "new"
	if known, err := scripttest.ReadBaseline("baseline.json", r); err != nil || !known {
		t.Fatalf("known: %v, %v", known, err)
	}
	want := &scripttest.Measured{Instructions: 12.346, First: 20, Nanos: 1234.5, Allocs: 0.001}
	for i, want := range []*scripttest.Measured{want, nil, nil} {
		if diff := cmp.Diff(want, r.Benchmarks[i].Baseline); diff != "" {
			t.Errorf("%s (-want +got):\n%s", r.Benchmarks[i].Name, diff)
		}
	}
}

func TestReadBaseline(t *testing.T) {
	t.Chdir(t.TempDir())
	f := func(text, want string) {
		t.Helper()
		if err := os.WriteFile("b.json", []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		r := measured()
		known, err := scripttest.ReadBaseline("b.json", r)
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != want || known != (want == "") {
			t.Errorf("%s: got %q, known: %v, want %q", text, got, known, want)
		}
		if r.Benchmarks[0].Baseline != nil {
			t.Errorf("%s: got the baseline %+v", text, r.Benchmarks[0].Baseline)
		}
	}
	f(`{"version":1,"benchmarks":{}}`, "")
	f(`{"version":1,"benchmarks":{"scripts/a/a_test.lua: another":{"instructions":1}}}`, "")
	f(`{"version":2}`, "cannot read the baseline b.json: it has version 2, and this weir knows 1")
	f(`{}`, "cannot read the baseline b.json: it has version 0, and this weir knows 1")
	f(`{"version":`, "cannot read the baseline b.json: unexpected end of JSON input")
	f(`{"version":1,"benchmarks":{"a":{"instructions":"many"}}}`,
		"cannot read the baseline b.json: json: cannot unmarshal string into Go struct field Measured.benchmarks.instructions of type float64")

	if known, err := scripttest.ReadBaseline("none.json", measured()); known || err != nil {
		t.Errorf("without a file: known %v, %v", known, err)
	}
	if _, err := scripttest.ReadBaseline(".", measured()); err == nil || !strings.HasPrefix(err.Error(), "cannot read the baseline .: ") {
		t.Errorf("got %v for a folder", err)
	}
}

func TestSlower(t *testing.T) {
	f := func(want bool, change func(b *scripttest.Benchmark)) {
		t.Helper()
		r := measured()
		r.Benchmarks = r.Benchmarks[:2]
		change(&r.Benchmarks[1])
		if got := r.Slower(); got != want {
			t.Errorf("got %v, want %v for %+v", got, want, r.Benchmarks[1])
		}
	}
	f(false, func(*scripttest.Benchmark) {})
	f(false, func(b *scripttest.Benchmark) { b.Baseline = &scripttest.Measured{Instructions: 150} })
	f(false, func(b *scripttest.Benchmark) { b.Baseline = &scripttest.Measured{Instructions: 200} })
	f(true, func(b *scripttest.Benchmark) { b.Baseline = &scripttest.Measured{Instructions: 100} })
	f(true, func(b *scripttest.Benchmark) { b.Problem = &scripttest.Problem{Msg: "no"} })
}

// The table has three digits of each figure, the change in time, and what is
// worse; a benchmark that failed has its problem.
func TestBenchmarks(t *testing.T) {
	var b strings.Builder
	p := scripttest.Pretty{W: &b}
	r := measured()
	r.Benchmarks[0].Baseline = &scripttest.Measured{Instructions: 10, First: 20, Nanos: 1000}
	p.Benchmarks(r)
	const want = `benchmark    records         ns     allocs  instructions  first batch
a batch          100       1234      0.001          12.3         20.0  time +23%
  FAIL 12.3 instructions, 10.0 in the baseline
a function    a call          0          0           150            0
a batch     FAIL
    scripts/a/b_test.lua:1: no
Figures are for each record; instructions are the same on every machine.
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	b.Reset()
	p.Benchmarks(&scripttest.Report{})
	if want := "there are no benchmarks: write bench(name, component, text) into a test file\n"; b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}

// Benchmarks are in the JSON report, with what is worse than the baseline.
func TestJSONBenchmarks(t *testing.T) {
	r := measured()
	r.Benchmarks[0].Baseline = &scripttest.Measured{Instructions: 10, First: 20, Nanos: 1000}
	var b strings.Builder
	if err := scripttest.WriteJSON(&b, r); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Benchmarks []map[string]any `json:"benchmarks"`
	}
	if err := json.Unmarshal([]byte(b.String()), &got); err != nil {
		t.Fatal(err)
	}
	figures := func(instructions, first, nanos, allocs float64) map[string]any {
		return map[string]any{"instructions": instructions, "first_instructions": first, "nanoseconds": nanos, "allocations": allocs}
	}
	want := []map[string]any{
		{"file": "scripts/a/a_test.lua", "name": "a batch", "line": 3.0, "records": 100.0, "worse": "12.3 instructions, 10.0 in the baseline",
			"measured": figures(12.346, 20, 1234.5, 0.001), "baseline": figures(10, 20, 1000, 0)},
		{"file": "scripts/a/a_test.lua", "name": "a function", "line": 4.0, "measured": figures(150, 0, 0, 0)},
		{"file": "scripts/a/b_test.lua", "name": "a batch", "line": 1.0, "problem": map[string]any{"file": "scripts/a/b_test.lua", "line": 1.0, "message": "no"}},
	}
	if diff := cmp.Diff(want, got.Benchmarks); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// bench refuses what it cannot measure when the file declares it.
func TestBenchRefuses(t *testing.T) {
	f := func(call, want string) {
		t.Helper()
		write(t, archive("-- scripts/a/work.lua --\n"+plain+"-- scripts/a/work_test.lua --\nlocal t = weir.test.component('work.lua')\n"+call+"\nit('x', function() end)\n"))
		r := run(t, options())
		p := r.Files[len(r.Files)-1].Problem
		if p == nil || p.Line != 2 || p.Msg != want {
			t.Errorf("%s: got %+v, want %q", call, p, want)
		}
	}
	f("bench('x', 1)", "cannot measure a number: bench takes a component and a batch, or a function")
	f("bench('x', print, 'up 1')", "cannot use bench with a function and a batch: the function is all that is measured")
	f("bench('x', t)", "cannot measure a component without a batch: write bench(name, component, text), or a function that returns the text")
	f("bench('x', t, 1)", "cannot measure a component without a batch: write bench(name, component, text), or a function that returns the text")
	f("bench('x', t:metrics 'up 1', 'up 1')", "cannot measure a batch: bench takes a component and a batch, or a function")
	f("bench('x', nil)", "cannot measure a nil: bench takes a component and a batch, or a function")
	f("bench(t, 'up 1')", "cannot call bench: argument name must be a string, not a component")
}

// A benchmark of an empty batch has no figures, and failing tests leave all of
// them out.
func TestBenchProblems(t *testing.T) {
	measure := func(test string) []scripttest.Benchmark {
		t.Helper()
		write(t, archive("-- scripts/a/work.lua --\n"+plain+"-- scripts/a/work_test.lua --\nlocal t = weir.test.component('work.lua')\n"+test+"\n"))
		o := options()
		o.Bench, o.BenchTime = true, 1
		return run(t, o).Benchmarks
	}
	got := measure("bench('empty', t, '')\nbench('logs', t, '{a=\"b\"} x')\n")
	for i, want := range []string{"cannot measure an empty batch", `cannot read line 1 of the metrics, column 9: want a value, have "x"`} {
		if p := got[i].Problem; p == nil || p.Msg != want || p.Line != i+2 {
			t.Errorf("got %+v, want %q", p, want)
		}
	}
	if got := measure("bench('x', t, 'up 1')\nit('fails', function() error('x') end)\n"); got != nil {
		t.Errorf("got %+v though a test failed", got)
	}
}
