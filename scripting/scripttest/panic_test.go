package scripttest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/js"
	"github.com/weir-run/weir/scripting/lua"
)

// panicking is a language with a bug.
type panicking struct{ scripting.Tester }

func (p panicking) NewTest(f scripting.File, env scripting.Env, api *scripting.TestAPI) (scripting.TestVM, error) {
	if strings.Contains(f.Text, "oh no") {
		panic("oh no")
	}
	return p.Tester.NewTest(f, env, api)
}

// TestPanic: a Go panic is a problem of its file. The process and the other tests go on.
func TestPanic(t *testing.T) {
	write(t, archive(`
-- scripts/a/a_test.lua --
it("passes", function() end)
-- scripts/a/b_test.lua --
it("has a bug", function() end) -- oh no
-- scripts/a/c_test.lua --
it("passes", function() end)
`))
	o := options()
	o.Languages = []scripting.Language{panicking{lua.New()}, js.New()}
	var got []string
	r := run(t, o)
	for _, f := range r.Files {
		problem := ""
		if f.Problem != nil {
			problem, _, _ = strings.Cut(f.Problem.Msg, "\n")
		}
		got = append(got, fmt.Sprintf("%s %d %s", f.Name, len(f.Tests), problem))
	}
	want := "scripts/a/a_test.lua 1 \nscripts/a/b_test.lua 0 BUG: the tests panicked: oh no\nscripts/a/c_test.lua 1 "
	if strings.Join(got, "\n") != want {
		t.Errorf("got %q, want %q", strings.Join(got, "\n"), want)
	}
	if r.OK() || !strings.Contains(r.Files[1].Problem.Msg, "panic_test.go") {
		t.Errorf("the report is %+v", r.Files[1].Problem)
	}
}
