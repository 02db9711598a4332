package scripttest_test

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/weir-run/weir/scripting/api"
	"github.com/weir-run/weir/scripting/scripttest"
)

const plain = "local weir = require \"weir\"\nreturn weir.transform { metrics = function() end }\n"

// archive makes files of "-- name --" sections.
func archive(text string) []txtar.File { return txtar.Parse([]byte(text)).Files }

// ends returns the tests of a report with how they ended.
func ends(r *scripttest.Report) (out []string) {
	for _, f := range r.Files {
		for _, t := range f.Tests {
			out = append(out, string(t.Status)+" "+t.Name)
		}
		if f.Problem != nil {
			out = append(out, "broken "+f.Name)
		}
	}
	return out
}

func run(t *testing.T, o scripttest.Options) *scripttest.Report {
	t.Helper()
	r, err := scripttest.Run(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A test that does not end costs itself: those before and after it run, with
// all that the file says outside of them, and so do other files.
func TestLoopForEver(t *testing.T) {
	write(t, archive(`
-- scripts/a/a_test.lua --
local calls = 0
before_each(function() calls = calls + 1 end)
it("before", function() assert.equals(1, calls) end)
it("loops", function() while true do end end)
it("catches", function() while true do pcall(function() while true do end end) end end)
it("expects an error", function() assert.has_error(function() while true do end end) end)
it("loops in a coroutine", function() coroutine.wrap(function() while true do end end)() end)
it("after", function() assert.equals(1, calls) end)
-- scripts/a/b_test.lua --
while true do end
-- scripts/a/c_test.lua --
it("in another file", function() end)
`))
	o := options()
	o.Limit = 500 * time.Millisecond // and ten times that by the wall's clock
	r := run(t, o)
	want := []string{
		"passed before", "error loops", "error catches", "error expects an error", "error loops in a coroutine", "passed after",
		"broken scripts/a/b_test.lua", "passed in another file",
	}
	if diff := cmp.Diff(want, ends(r)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for i, line := range []int{4, 5, 6, 7} {
		p := r.Files[0].Tests[i+1].Problem
		if p.Line != line || !strings.Contains(p.Msg, "limit exceeded: the call ran longer than 500ms") {
			t.Errorf("got %s:%d: %s, want line %d and the limit", p.File, p.Line, p.Msg, line)
		}
	}
	if p := r.Files[1].Problem; p.Line != 1 {
		t.Errorf("got line %d for the file that loops, want 1", p.Line)
	}
}

// Nothing that a file does is seen by the next one, nor by a test's own files.
func TestIsolation(t *testing.T) {
	write(t, archive(`
-- scripts/lib/shared.lua --
return { count = 0 }
-- scripts/a/a_test.lua --
local shared = require "shared"
it("changes a module", function() shared.count = shared.count + 1 assert.equals(1, shared.count) end)
it("cannot change the API", function()
  assert.has_error(function() assert.same = print end)
  assert.has_error(function() fixtures.x = 1 end, "read-only")
  assert.has_error(function() weir.test.component = print end, "read-only")
  assert.has_error(function() string.rep = print end)
end)
-- scripts/a/b_test.lua --
local shared = require "shared"
it("finds it as it was", function() assert.equals(0, shared.count) end)
-- scripts/a/c_test.lua --
require "io"
`))
	want := []string{"passed changes a module", "passed cannot change the API", "passed finds it as it was", "broken scripts/a/c_test.lua"}
	if diff := cmp.Diff(want, ends(run(t, options()))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPaths(t *testing.T) {
	files := archive(`
-- scripts/a/one.lua --
` + plain + `
-- scripts/a/one_test.lua --
it("one", function() weir.test.component("one.lua"):unchanged "up 1" end)
-- scripts/b/two_test.lua --
it("two", function() end)
-- scripts/b/notes.txt --
nothing
-- scripts/lib/l.lua --
return {}
-- elsewhere/ns/three.lua --
` + plain + `
-- elsewhere/ns/three_test.lua --
it("three", function() weir.test.component("three.lua"):unchanged "up 1" end)
`)
	f := func(want, dir, match string, paths ...string) {
		t.Helper()
		o := options(paths...)
		o.Dir = dir
		if match != "" {
			o.Match = regexp.MustCompile(match)
		}
		r, err := scripttest.Run(context.Background(), o)
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			got = strings.Join(ends(r), ", ")
		}
		if got != want {
			t.Errorf("%q in %q: got %s, want %s", paths, dir, got, want)
		}
	}
	write(t, files)
	f("passed one, passed two", "", "")
	f("passed one, passed two", "scripts", "")
	f("passed one", "", "", "scripts/a")
	f("passed two", "", "", "scripts/b", "scripts/b/two_test.lua")
	f("passed one", "", "", "scripts/a/one.lua")
	f("passed one", "", "", "scripts/a/one_test.lua")
	f("passed one, passed two", "", "", "scripts/b", "scripts/a")
	f("passed three", "", "", "elsewhere")
	f("passed three", "", "", "elsewhere/ns/three.lua")
	f("passed three", "elsewhere", "", "elsewhere/ns")
	f("passed three, passed one, passed two", "", "", "scripts", "elsewhere")
	f("passed two", "", "^tw")
	// wrong
	f("there are no tests whose names match nothing", "", "nothing")
	f("there are no tests in scripts/lib: add x_test.lua next to x.lua, or examples in the comment at the top of a script", "", "", "scripts/lib")
	f("cannot find the tests: stat nowhere: no such file or directory", "", "", "nowhere")
	f("cannot test scripts/b/notes.txt: it is not a script; scripts end in .lua, .ts, .js", "", "", "scripts/b/notes.txt")
	f("cannot test scripts/lib/l.lua: a file below lib is no component; test a component that requires it", "", "", "scripts/lib/l.lua")
	f("cannot test elsewhere: it is not in the scripts folder scripts", "scripts", "", "elsewhere")

	write(t, nil)
	f("cannot find the tests: stat scripts: no such file or directory", "", "")

	write(t, archive("-- scripts/a/x_test.lua --\n-- scripts/a/x.test.lua --\n"))
	f("cannot tell which file tests a.x: there are scripts/a/x.test.lua and scripts/a/x_test.lua", "", "")
}

func TestStopped(t *testing.T) {
	write(t, archive("-- scripts/a/a_test.lua --\nit(\"a\", function() end)\n"))
	ctx, cancel := context.WithCancelCause(context.Background())
	why := errors.New("enough")
	cancel(why)
	if _, err := scripttest.Run(ctx, options()); !errors.Is(err, why) {
		t.Errorf("got %v, want the context's cause", err)
	}
}

// mixed has a test of each end and names that formats must escape.
const mixed = `
-- scripts/a/a_test.lua --
it("passes <b> & \"quotes\" # and \\", function() end)
it("fails", function() print("seen \27[31m") assert.same("a\nb", "a\nc") end)
it("breaks", function() error("broken: ]]>") end)
it("waits", function() pending("for spring") end)
it("new\nline", function() error("x") end)
-- scripts/a/b_test.lua --
it(
`

func TestJSON(t *testing.T) {
	write(t, archive(mixed))
	var b strings.Builder
	if err := scripttest.WriteJSON(&b, run(t, options())); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Passed, Failed, Errors, Pending int
		Seconds                         float64
		Files                           []struct {
			File    string
			Problem *struct{ Line int }
			Tests   []struct {
				Name, Status string
				Line         int
				Output       []string
				Problem      *struct{ File, Message, Diff, Source string }
			}
		}
	}
	dec := json.NewDecoder(strings.NewReader(b.String()))
	if err := dec.Decode(&got); err != nil {
		t.Fatal(err)
	}
	if got.Passed != 1 || got.Failed != 1 || got.Errors != 3 || got.Pending != 1 || got.Seconds <= 0 {
		t.Errorf("got %d passed, %d failed, %d errors, %d pending in %v s", got.Passed, got.Failed, got.Errors, got.Pending, got.Seconds)
	}
	failed := got.Files[0].Tests[1]
	if failed.Name != "fails" || failed.Line != 2 || failed.Status != "failed" || failed.Problem.Diff != "  a\n- b\n+ c\n" ||
		failed.Problem.File != "scripts/a/a_test.lua" || failed.Output[0] != "scripts/a/a_test.lua:2: seen \x1b[31m" {
		t.Errorf("got %+v, %+v", failed, failed.Problem)
	}
	if f := got.Files[1]; f.File != "scripts/a/b_test.lua" || f.Problem == nil || f.Tests == nil {
		t.Errorf("got %+v for the file that is broken", f)
	}
}

func TestJUnit(t *testing.T) {
	write(t, archive(mixed))
	var b strings.Builder
	if err := scripttest.WriteJUnit(&b, run(t, options())); err != nil {
		t.Fatal(err)
	}
	var got struct {
		XMLName  xml.Name `xml:"testsuites"`
		Tests    int      `xml:"tests,attr"`
		Failures int      `xml:"failures,attr"`
		Errors   int      `xml:"errors,attr"`
		Skipped  int      `xml:"skipped,attr"`
		Suites   []struct {
			Name   string `xml:"name,attr"`
			Tests  int    `xml:"tests,attr"`
			Errors int    `xml:"errors,attr"`
			Cases  []struct {
				Name    string `xml:"name,attr"`
				Line    int    `xml:"line,attr"`
				Time    string `xml:"time,attr"`
				Failure *struct {
					Message string `xml:"message,attr"`
					Text    string `xml:",chardata"`
				} `xml:"failure"`
				Error *struct {
					Message string `xml:"message,attr"`
				} `xml:"error"`
				Skipped *struct {
					Message string `xml:"message,attr"`
				} `xml:"skipped"`
				Out string `xml:"system-out"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal([]byte(b.String()), &got); err != nil {
		t.Fatalf("%v\n%s", err, &b)
	}
	if got.Tests != 6 || got.Failures != 1 || got.Errors != 3 || got.Skipped != 1 || len(got.Suites) != 2 {
		t.Errorf("got %d tests, %d failures, %d errors, %d skipped in %d suites", got.Tests, got.Failures, got.Errors, got.Skipped, len(got.Suites))
	}
	cases := got.Suites[0].Cases
	if cases[0].Name != `passes <b> & "quotes" # and \` {
		t.Errorf("got the name %q", cases[0].Name)
	}
	if f := cases[1].Failure; f == nil || f.Message != "the two are not the same" || !strings.Contains(f.Text, "- b\n+ c\n") || cases[1].Out != "scripts/a/a_test.lua:2: seen �[31m" {
		t.Errorf("got %+v, printed %q", f, cases[1].Out)
	}
	if _, err := strconv.ParseFloat(cases[0].Time, 64); err != nil || cases[1].Line != 2 {
		t.Errorf("got time %q, line %d", cases[0].Time, cases[1].Line)
	}
	if e := cases[2].Error; e == nil || e.Message != "broken: ]]>" {
		t.Errorf("got %+v", e)
	}
	if s := cases[3].Skipped; s == nil || s.Message != "for spring" {
		t.Errorf("got %+v", s)
	}
	if s := got.Suites[1]; s.Tests != 1 || s.Errors != 1 || s.Cases[0].Error == nil {
		t.Errorf("got %+v for the file that is broken", s)
	}
}

func TestTAP(t *testing.T) {
	write(t, archive(mixed))
	var b strings.Builder
	if err := scripttest.WriteTAP(&b, run(t, options())); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(b.String(), "\n")
	if lines[0] != "TAP version 13" || lines[1] != "1..6" {
		t.Errorf("got %q and %q", lines[0], lines[1])
	}
	point := regexp.MustCompile(`^(not )?ok (\d+) - `)
	var got []string
	yaml := false
	for _, l := range lines[2 : len(lines)-1] {
		switch {
		case l == "  ---" || l == "  ...":
			yaml = l == "  ---"
		case yaml:
			key, value, _ := strings.Cut(strings.TrimSpace(l), ": ")
			if _, err := strconv.Unquote(value); err != nil {
				t.Errorf("%s is no string: %s", key, value)
			}
		default:
			m := point.FindStringSubmatch(l)
			if m == nil || m[2] != strconv.Itoa(len(got)+1) {
				t.Fatalf("got %q as point %d", l, len(got)+1)
			}
			got = append(got, l)
		}
	}
	want := []string{
		`ok 1 - scripts/a/a_test.lua: passes <b> & "quotes" \# and \\`,
		"not ok 2 - scripts/a/a_test.lua: fails", "not ok 3 - scripts/a/a_test.lua: breaks",
		"ok 4 - scripts/a/a_test.lua: waits # SKIP for spring", "not ok 5 - scripts/a/a_test.lua: new line", "not ok 6 - scripts/a/b_test.lua",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Perl's own reader of TAP understands the report.
func TestProve(t *testing.T) {
	prove, err := exec.LookPath("prove")
	if err != nil {
		t.Skip("there is no prove")
	}
	f := func(files string, want ...string) {
		t.Helper()
		write(t, archive(files))
		var b strings.Builder
		if err := scripttest.WriteTAP(&b, run(t, options())); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile("report", []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		out, _ := exec.Command(prove, "--exec", "cat", "report").CombinedOutput() // which fails when a test did
		for _, w := range append(want, "Files=1") {
			if !strings.Contains(string(out), w) {
				t.Errorf("no %q in\n%s", w, out)
			}
		}
		if strings.Contains(string(out), "Parse errors") {
			t.Errorf("prove cannot read it:\n%s", out)
		}
	}
	f(mixed, "Failed tests:  2-3, 5-6", "Tests=6", "Result: FAIL")
	f("-- scripts/a/a_test.lua --\nit(\"a # b\", function() end)\nit(\"later\")\n", "All tests successful", "Tests=2", "Result: PASS")
}

// The manual fits a terminal and names everything that tests may call, in the
// names of the language.
func TestManual(t *testing.T) {
	m := scripttest.Manual(api.InJS)
	for l := range strings.Lines(m) {
		if len([]rune(l)) > 82 {
			t.Errorf("a line has %d columns: %s", len(l), l)
		}
	}
	inLua, inJS, ok := strings.Cut(m, "\nA test file in JavaScript or TypeScript")
	inJS, fixtures, _ := strings.Cut(inJS, "\nFixtures.")
	if !ok {
		t.Fatalf("the manual has no part for JavaScript:\n%s", m)
	}
	for text, names := range map[string][]string{
		inLua: {"describe", "weir.test.component", "{ json = … }", ":metrics(text)", ":label_values", "  near(expected, actual, tolerance)", ":outcome()", "  .status"},
		inJS: {"beforeAll", "toStrictEqual(expected)", "expect.objectContaining", "vi.spyOn", "mockReturnValueOnce",
			"  http(replies)", "{ json: … }", "  component(file, args, time?)", ".labelValues(label)", ".outcome()", "As toThrow.", "out.length"},
		fixtures: {"fixtures.every_metric_kind"},
	} {
		for _, name := range names {
			if !strings.Contains(text, name) {
				t.Errorf("the manual does not name %s in\n%s", name, text)
			}
		}
	}
	// In JavaScript, only attributes of blocks, values and metrics contain underscores.
	for _, word := range regexp.MustCompile(`\b[a-z]+(_[a-z]+)+\b`).FindAllString(inJS, -1) {
		if word != "on_error" && word != "script_error" && !strings.HasPrefix(word, "weir_") {
			t.Errorf("the part for JavaScript has a name of Lua: %s", word)
		}
	}
	for _, lua := range []string{"nil", "table", "weir.test", " = {", `= "`, "#out", "out:"} {
		if regexp.MustCompile(`(^|\W)` + regexp.QuoteMeta(lua) + `(\W|$)`).MatchString(inJS) {
			t.Errorf("the part for JavaScript has Lua in it: %q", lua)
		}
	}
}
