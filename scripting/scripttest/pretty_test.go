package scripttest_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/scripting/scripttest"
)

// painted writes <code:text> for a colour, and ! for what a terminal must not
// see.
func painted(b *strings.Builder) scripttest.Pretty {
	return scripttest.Pretty{
		W:     b,
		Paint: func(code, text string) string { return "<" + code + ":" + text + ">" },
		Clean: func(s string) string { return strings.ReplaceAll(s, "\x1b", "!") },
	}
}

func TestPrettyFile(t *testing.T) {
	f := func(file scripttest.File, want string) {
		t.Helper()
		var b strings.Builder
		painted(&b).File(file)
		if diff := cmp.Diff(want, b.String()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	passed := scripttest.Test{Name: "p", Status: scripttest.Passed, Output: []string{"not shown"}}
	f(scripttest.File{Name: "a\x1b.lua", Elapsed: 1234567 * time.Nanosecond}, "<32:ok  >  a!.lua  0 tests  1.23ms\n")
	f(scripttest.File{Name: "a.lua", Tests: []scripttest.Test{passed}}, "<32:ok  >  a.lua  1 test  0s\n")
	f(scripttest.File{Name: "a.lua", Tests: []scripttest.Test{passed, {Status: scripttest.Pending}}, Updated: 1}, "<32:ok  >  a.lua  2 tests, 1 pending, 1 example rewritten  0s\n")
	f(scripttest.File{Name: "a.lua", Updated: 2}, "<32:ok  >  a.lua  0 tests, 2 examples rewritten  0s\n")
	// a problem of the file, with and without a place
	f(scripttest.File{Name: "a.lua", Problem: &scripttest.Problem{File: "b.lua", Msg: "broke"}}, "<31;1:FAIL>  a.lua  0 tests  0s\n    b.lua: broke\n")
	f(scripttest.File{Name: "a.lua", Problem: &scripttest.Problem{File: "b.lua", Line: 3, Col: 4, Source: "x = \x1b", Msg: "broke\nhint: \x1b"}},
		"<31;1:FAIL>  a.lua  0 tests  0s\n    b.lua:3:4: broke\n        3 | x = !\n      hint: !\n")
	// what failed, with its output
	f(scripttest.File{Name: "a.lua", Tests: []scripttest.Test{
		{Name: "n\x1b", Status: scripttest.Failed, Output: []string{"printed \x1b"}, Problem: &scripttest.Problem{File: "a.lua", Line: 1, Msg: "m", Diff: "  a\n- \x1b\n+ c\n"}},
		passed,
		{Name: "e", Status: scripttest.Broken, Problem: &scripttest.Problem{File: "a.lua", Line: 2, Msg: "m"}},
	}}, `<31;1:FAIL>  a.lua  3 tests  0s
  <31:failed:> n!
    a.lua:1: m
        a
      <31:- !>
      <32:+ c>
      > printed !
  <31:failed:> e
    a.lua:2: m
`)
}

func TestPrettySummary(t *testing.T) {
	f := func(want string, statuses ...scripttest.Status) {
		t.Helper()
		r := &scripttest.Report{Files: []scripttest.File{{}}, Elapsed: 1234567 * time.Nanosecond}
		for _, s := range statuses {
			r.Files[0].Tests = append(r.Files[0].Tests, scripttest.Test{Status: s})
		}
		var b strings.Builder
		painted(&b).Summary(r)
		if b.String() != want {
			t.Errorf("got %q, want %q", b.String(), want)
		}
	}
	f("<32:0 passed> in 1.2ms\n")
	f("<32:1 passed> in 1.2ms\n", scripttest.Passed)
	f("<33:1 passed, 1 pending> in 1.2ms\n", scripttest.Passed, scripttest.Pending)
	f("<31;1:0 passed, 2 failed, 1 pending> in 1.2ms\n", scripttest.Broken, scripttest.Failed, scripttest.Pending)
}
