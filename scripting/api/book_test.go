package api_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/api"
	"github.com/weir-run/weir/scripting/lua"
	"github.com/weir-run/weir/scripting/scripttest"
	"github.com/weir-run/weir/stdlib"
)

func TestBook(t *testing.T) {
	b := api.NewBook(stdlib.Modules(), scripttest.API(scripting.Busted))
	seen := map[string]bool{}
	for _, e := range b.Entries() {
		if seen[e.Name] {
			t.Errorf("there are two entries called %s", e.Name)
		}
		seen[e.Name] = true
		if e.Doc == "" {
			t.Errorf("%s has no doc", e.Name)
		}
		found, err := b.Find(e.Name)
		if err != nil || len(found) != 1 || found[0].Name != e.Name {
			t.Errorf("%s: found %v, %v", e.Name, found, err)
		}
		if !strings.Contains(e.Text(nil), e.Head) || !strings.Contains(e.Markdown(), e.Head) {
			t.Errorf("%s: its manual does not say how it is called", e.Name)
		}
	}
	if found, err := b.Find("migrate"); err != nil || len(found) != 2 || !strings.Contains(found[0].Text(nil), "pairs(old_state.") {
		t.Errorf("migrate, a key of a definition: found %v, %v", found, err)
	}
	if _, err := b.Find("migrat"); err == nil || !strings.Contains(err.Error(), "did you mean migrate?") {
		t.Errorf("migrat: got %v", err)
	}
	for _, e := range b.Entries() {
		for _, m := range e.Members {
			if !seen[m] {
				t.Errorf("%s speaks of %s, which has no entry", e.Name, m)
			}
		}
	}
}

// TestCalls runs the calls of the manual as the manual writes them.
func TestCalls(t *testing.T) {
	var file strings.Builder
	n := 0
	for _, m := range stdlib.Modules() {
		fmt.Fprintf(&file, "local %s = require %q\n", m.Name, m.Name)
	}
	file.WriteString("local function shown(x) if type(x) == \"userdata\" then return tostring(x) end return x end\n")
	b := api.NewBook(stdlib.Modules(), nil)
	for _, e := range b.Entries() {
		for _, c := range e.CallsInLua() {
			n++
			call, want, _ := strings.Cut(c, "  --> ")
			fmt.Fprintf(&file, "it(%q, function()\n", fmt.Sprintf("%s %d", e.Name, n))
			if _, msg, fails := strings.Cut(want, "nil, an error with "); fails {
				fmt.Fprintf(&file, "local v, err = %s\nassert.is_nil(v) assert.is_true(err:find(%s, 1, true) ~= nil, err)\n", call, msg)
			} else {
				if len(want) > 15 && strings.Trim(want, "0123456789") == "" {
					want = strconv.Quote(want) // a number that Lua's cannot hold
				}
				fmt.Fprintf(&file, "assert.same(shown(%s), shown((%s)))\n", want, call)
			}
			file.WriteString("end)\n")
		}
	}
	dir := filepath.Join(t.TempDir(), "scripts", "std")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "calls_test.lua"), []byte(file.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := scripttest.Run(t.Context(), scripttest.Options{Languages: []scripting.Language{lua.New()}, Modules: stdlib.Modules(), Paths: []string{dir}})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range r.Files {
		if f.Problem != nil {
			t.Errorf("%+v", f.Problem)
		}
		for _, test := range f.Tests {
			if test.Status != scripttest.Passed {
				t.Errorf("%s: %+v", test.Name, test.Problem)
			}
		}
	}
	if passed := r.Count(scripttest.Passed); passed != n || n < 20 {
		t.Errorf("%d of %d calls are as the manual says", passed, n)
	}
}
