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
	"github.com/weir-run/weir/scripting/js"
	"github.com/weir-run/weir/scripting/lua"
	"github.com/weir-run/weir/scripting/scripttest"
	"github.com/weir-run/weir/stdlib"
)

func TestBook(t *testing.T) {
	b := api.NewBook(stdlib.Modules(), scripttest.API(scripting.Busted), scripttest.API(scripting.Vitest))
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
		if !strings.Contains(e.Text(api.Both, nil), e.Head) || !strings.Contains(e.Markdown(api.Both), e.Head) || !strings.Contains(e.Text(api.Both, nil), e.JS) && !e.Area {
			t.Errorf("%s: its manual does not say how it is called", e.Name)
		}
	}
	if found, err := b.Find("migrate"); err != nil || len(found) != 1 || !strings.Contains(found[0].Head, "of weir.transform, weir.source, weir.sink") || !strings.Contains(found[0].Text(api.Lua, nil), "pairs(old_state.") {
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

// TestCalls runs the calls of the manual as the manual writes them, in both
// languages.
func TestCalls(t *testing.T) {
	b := api.NewBook(stdlib.Modules())
	f := func(lang scripting.Language, file string, code func(*strings.Builder) (calls int)) {
		t.Helper()
		t.Run(lang.Name(), func(t *testing.T) {
			var text strings.Builder
			n := code(&text)
			dir := filepath.Join(t.TempDir(), "scripts", "std")
			if err := os.MkdirAll(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text.String()), 0o600); err != nil {
				t.Fatal(err)
			}
			r, err := scripttest.Run(t.Context(), scripttest.Options{Languages: []scripting.Language{lang}, Modules: stdlib.Modules(), Paths: []string{dir}})
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range r.Files {
				if f.Problem != nil {
					t.Errorf("%v", f.Problem)
				}
				for _, test := range f.Tests {
					if test.Status != scripttest.Passed {
						t.Errorf("%s: %v", test.Name, test.Problem)
					}
				}
			}
			if passed := r.Count(scripttest.Passed); passed != n || n < 20 {
				t.Errorf("%d of %d calls are as the manual says", passed, n)
			}
		})
	}
	f(lua.New(), "calls_test.lua", func(file *strings.Builder) (n int) {
		for _, m := range stdlib.Modules() {
			fmt.Fprintf(file, "local %s = require %q\n", m.Name, m.Name)
		}
		file.WriteString("local function shown(x) if type(x) == \"userdata\" then return tostring(x) end return x end\n")
		for _, e := range b.Entries() {
			for _, c := range e.CallsInLua() {
				n++
				call, want, _ := strings.Cut(c, "  --> ")
				fmt.Fprintf(file, "it(%q, function()\n", fmt.Sprintf("%s %d", e.Name, n))
				if _, msg, fails := strings.Cut(want, "nil, an error with "); fails {
					fmt.Fprintf(file, "local v, err = %s\nassert.is_nil(v) assert.is_true(err:find(%s, 1, true) ~= nil, err)\n", call, msg)
				} else {
					if len(want) > 15 && strings.Trim(want, "0123456789") == "" {
						want = strconv.Quote(want) // a number that Lua's cannot hold
					}
					fmt.Fprintf(file, "assert.same(shown(%s), shown((%s)))\n", want, call)
				}
				file.WriteString("end)\n")
			}
		}
		return n
	})
	f(js.New(), "calls.test.js", func(file *strings.Builder) (n int) {
		for _, m := range stdlib.Modules() {
			fmt.Fprintf(file, "import %s from \"weir/%s\";\n", m.Name, m.Name)
		}
		for _, e := range b.Entries() {
			for _, c := range e.CallsInJS() {
				n++
				fmt.Fprintf(file, "it(%q, () => {\n", fmt.Sprintf("%s %d", e.Name, n))
				call, want, fails := strings.Cut(c, "  // throws an error with ")
				if fails {
					fmt.Fprintf(file, "expect(() => %s).toThrow(%s);\n", call, want)
				} else {
					call, want, _ = strings.Cut(c, "  // → ")
					if e.Result.Kind == scripting.KindObject && want != "undefined" {
						call = "String(" + call + ")"
					}
					fmt.Fprintf(file, "expect(%s).toEqual(%s);\n", call, want)
				}
				file.WriteString("});\n")
			}
		}
		return n
	})
}
