package scripttest_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/scripting/node"
	"github.com/weir-run/weir/scripting/scripttest"
)

// post asks the running node for the outcome of its tests.
func (s *saved) post(ctx context.Context) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	s.running.(component.Controller).Control().ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodPost, "/tests", nil))
	return w
}

func (s *saved) report() (r node.TestReport) {
	s.t.Helper()
	w := s.post(s.t.Context())
	if err := json.Unmarshal(w.Body.Bytes(), &r); err != nil {
		s.t.Fatalf("status %d: %v: %s", w.Code, err, w.Body)
	}
	return r
}

// TestReport: the report has the tests on disk and the lines that they ran, and the node
// runs on as it is.
func TestReport(t *testing.T) {
	s := newSaved(t)
	s.write("lib/names.lua", "local M = {}\nfunction M.of(s) return s.name end\nfunction M.unused() return 1 end\nreturn M\n")
	script := `-- Marks series.
--
-- Example Input:
--   up 1
-- Example Output:
--   up{mark="up"} 1
local weir = require "weir"
local names = require "names"
return weir.transform { series = function(s)
  if s.name == "down" then
    s:drop()
  end
  s.labels.mark = names.of(s)
end }
`
	s.write("http/mark.lua", script)
	s.reload("")
	before := s.running
	s.write("http/mark_test.lua", `local t = weir.test.component("mark.lua")
it("marks", function() print("hi"); assert.same({ "up" }, t:metrics("up 1"):label_values("mark")) end)
it("fails", function()
  assert.equals(2, 1)
end)
it("breaks", function() error("broken") end)
pending("later")
`)
	got := s.report()
	if got.Seconds <= 0 || len(got.Files) != 2 {
		t.Fatalf("got %+v", got)
	}
	name := filepath.ToSlash(filepath.Join(s.dir, "http/mark_test.lua"))
	want := node.TestReport{Passed: 2, Failed: 1, Errors: 1, Pending: 1,
		Files: []node.TestFile{
			{File: strings.Replace(name, "_test", "", 1), Tests: []node.TestResult{{Name: tested + " example in line 3", Line: 3, Status: "passed"}}},
			{File: name, Tests: []node.TestResult{
				{Name: "marks", Line: 2, Status: "passed", Output: []string{name + ":2: hi"}},
				{Name: "fails", Line: 3, Status: "failed", Problem: &node.TestProblem{File: name, Line: 4, Source: "assert.equals(2, 1)", Message: "the two are not the same", Diff: "- 2\n+ 1\n"}},
				{Name: "breaks", Line: 6, Status: "error", Problem: &node.TestProblem{File: name, Line: 6, Source: `it("breaks", function() error("broken") end)`, Message: "broken"}},
				{Name: "later", Line: 7, Status: "pending"},
			}},
		},
		Coverage: []node.TestCoverage{
			{File: strings.Replace(name, "_test", "", 1), Text: script, Branches: []node.CoveredBranch{{Line: 10, Arms: []int64{0, 2}}},
				Lines: []node.CoveredLine{{Line: 7, Hits: 1}, {Line: 8, Hits: 1}, {Line: 9, Hits: 1}, {Line: 10, Hits: 1}, {Line: 11, Hits: 0}, {Line: 13, Hits: 1}}},
			{File: filepath.ToSlash(filepath.Join(s.dir, "lib/names.lua")), Text: "local M = {}\nfunction M.of(s) return s.name end\nfunction M.unused() return 1 end\nreturn M\n", Branches: []node.CoveredBranch{},
				Lines: []node.CoveredLine{{Line: 1, Hits: 1}, {Line: 2, Hits: 1}, {Line: 3, Hits: 0}, {Line: 4, Hits: 1}}},
		},
	}
	for _, f := range got.Coverage { // each VM runs the lines outside of functions
		for i := range f.Lines {
			f.Lines[i].Hits = min(f.Lines[i].Hits, 1)
		}
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(node.TestReport{}, "Seconds"), cmpopts.IgnoreFields(node.TestFile{}, "Seconds"), cmpopts.IgnoreFields(node.TestResult{}, "Seconds"), cmpopts.IgnoreFields(node.TestProblem{}, "Column")); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if s.running != before {
		t.Error("the node was replaced")
	}

	// The script on disk may be broken, have no tests, or be gone.
	s.write("http/mark.lua", "local weir = require 'weir'\nreturn weir.transform {\n")
	got = s.report()
	if p := got.Files[0].Problem; got.Errors < 1 || p == nil || p.Line != 2 && p.Line != 3 || got.Coverage[0].Text == script || len(got.Coverage[0].Lines) != 0 {
		t.Errorf("a broken script: got %+v", got)
	}
	s.write("http/mark.lua", `return require("weir").transform { series = function() end }`)
	if err := os.Remove(filepath.Join(s.dir, "http/mark_test.lua")); err != nil {
		t.Fatal(err)
	}
	if got = s.report(); len(got.Files) != 0 || got.Errors != 0 || len(got.Coverage) != 1 {
		t.Errorf("a script without tests: got %+v", got)
	}
	if err := os.Remove(filepath.Join(s.dir, "http/mark.lua")); err != nil {
		t.Fatal(err)
	}
	if w := s.post(t.Context()); w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), tested+" has been removed") {
		t.Errorf("a removed script: status %d, %s", w.Code, w.Body)
	}
}

// TestReportHostile: whatever the tests do, a report arrives in time, and its size is
// limited.
func TestReportHostile(t *testing.T) {
	const limit = 200 * time.Millisecond
	s := newSavedWithin(t, limit)
	s.write("http/mark.lua", mark("a", "a"))
	s.reload("")
	f := func(test string) (string, node.TestReport) {
		t.Helper()
		s.write("http/mark_test.lua", test)
		began := time.Now()
		w := s.post(t.Context())
		// Each test may take a quarter of the limit, and all of them 15 times the limit by the clock.
		if took := time.Since(began); took > 30*time.Second {
			t.Errorf("it took %s", took)
		}
		var r node.TestReport
		if err := json.Unmarshal(w.Body.Bytes(), &r); err != nil {
			t.Fatalf("status %d: %v", w.Code, err)
		}
		if n := w.Body.Len(); n > 4<<20 {
			t.Errorf("the report has %d bytes", n)
		}
		return w.Body.String(), r
	}
	last := func(r node.TestReport) node.TestFile { return r.Files[len(r.Files)-1] }

	// Endless loops: in a test, in the file, and in many tests.
	_, r := f("it('loops', function() while true do end end)\nit('goes on', function() end)\n")
	if tests := last(r).Tests; len(tests) != 2 || tests[0].Status != "error" || tests[1].Status != "passed" {
		t.Errorf("got %+v", r)
	}
	_, r = f("while true do end\n")
	if p := last(r).Problem; p == nil || r.Errors != 1 {
		t.Errorf("got %+v", r)
	}
	_, r = f("for i = 1, 100 do it('loop ' .. i, function() while true do end end) end\n")
	if tests := last(r).Tests; len(tests) >= 100 || !strings.Contains(r.Stopped, "longer than 200ms of script time: make them faster or raise --scripts.test-limit") {
		t.Errorf("%d tests, stopped %q", len(tests), r.Stopped)
	}

	// Huge output.
	text, r := f("local big = ('<script>x</script>'):rep(20000)\nit(big, function() for i = 1, 1000 do print(big) end error(big) end)\n")
	if tests := last(r).Tests; len(tests) != 1 || tests[0].Status != "error" || !strings.HasSuffix(tests[0].Name, "… (360000 bytes)") || strings.Contains(text, "<script>") {
		t.Errorf("got %.300s", text)
	}

	// Deep recursion and an error without a text.
	_, r = f("local function deep() return 1 + deep() end\nit('recurs', deep)\nit('nothing', function() error() end)\nit('goes on', function() end)\n")
	if tests := last(r).Tests; len(tests) != 3 || tests[0].Status != "error" || tests[1].Status != "error" || tests[2].Status != "passed" {
		t.Errorf("got %+v", r)
	}

	// The tests end with their client, and there is one run at a time.
	s.write("http/mark_test.lua", "for i = 1, 3 do it('loop ' .. i, function() while true do end end) end\n")
	ctx, cancel := context.WithCancel(t.Context())
	codes := make(chan int)
	for range 2 {
		go func() { codes <- s.post(ctx).Code }()
	}
	first := <-codes
	cancel()
	if first+<-codes != http.StatusConflict+http.StatusOK {
		t.Errorf("the first of two runs has status %d", first)
	}
}

// TestReportOmits: a report lists the first 1,000 tests of a file and counts all of them.
func TestReportOmits(t *testing.T) {
	s := newSavedWithin(t, time.Minute)
	s.write("http/mark.lua", mark("a", "a"))
	s.reload("")
	s.write("http/mark_test.lua", "for i = 1, 1010 do it('test ' .. i, function() end) end\n")
	r := s.report()
	if f := r.Files[1]; len(f.Tests) != 1000 || f.Omitted != 10 || r.Passed != 1011 {
		t.Errorf("%d tests, %d omitted, %d passed", len(f.Tests), f.Omitted, r.Passed)
	}
}

// TestReportWithoutGate: tests can be run where a save does not run them.
func TestReportWithoutGate(t *testing.T) {
	s := newSavedWith(t, scripttest.DefaultReloadLimit, nil)
	s.write("http/mark.lua", mark("a", "a"))
	s.write("http/mark_test.lua", markTest("b"))
	s.reload("")
	if r := s.report(); r.Passed != 1 || r.Failed != 1 {
		t.Errorf("got %+v", r)
	}
}
