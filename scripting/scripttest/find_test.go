package scripttest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/scripting/scripttest"
)

// Folders names the folders of scripts that paths are in, each once.
func TestFolders(t *testing.T) {
	write(t, archive(`
-- scripts/a/one.lua --
`+plain+`
-- scripts/b/two.lua --
`+plain+`
-- elsewhere/ns/three.lua --
`+plain))
	work, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	f := func(want, dir string, paths ...string) {
		t.Helper()
		o := options(paths...)
		o.Dir = dir
		folders, err := scripttest.Folders(o)
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			for i, d := range folders {
				rel, err := filepath.Rel(work, d)
				if err != nil {
					t.Fatal(err)
				}
				folders[i] = filepath.ToSlash(rel)
			}
			got = strings.Join(folders, ", ")
		}
		if got != want {
			t.Errorf("%q in %q: got %s, want %s", paths, dir, got, want)
		}
	}
	f("scripts", "")
	f("scripts", "", "scripts/a", "scripts/b", "scripts/a/one.lua")
	f("elsewhere", "", "elsewhere/ns/three.lua")
	f("elsewhere, scripts", "", "scripts", "elsewhere/ns/three.lua")
	f("elsewhere/ns", "", "elsewhere/ns")
	f("elsewhere", "elsewhere", "elsewhere/ns")
	f("cannot test scripts: it is not in the scripts folder elsewhere", "elsewhere", "scripts")
	f("cannot find the tests: stat nowhere: no such file or directory", "", "nowhere")
}

// Files that are skipped are not run and not reported, and that all of them are
// is no error.
func TestSkip(t *testing.T) {
	write(t, archive(`
-- scripts/a/one.lua --
-- Does nothing.
--
-- Example Input:
--   up 1
-- Example Output:
--   up 1
`+plain+`
-- scripts/a/one_test.lua --
it("one", function() end)
-- scripts/a/two_test.lua --
it("two", function() error("x") end)
`))
	f := func(skip map[string]bool, want ...string) {
		t.Helper()
		o := options()
		o.Skip = func(name string) bool { return skip[name] }
		if diff := cmp.Diff(want, ends(run(t, o))); diff != "" {
			t.Errorf("%v (-want +got):\n%s", skip, diff)
		}
	}
	f(nil, "passed a.one example in line 3", "passed one", "error two")
	f(map[string]bool{"scripts/a/two_test.lua": true}, "passed a.one example in line 3", "passed one")
	f(map[string]bool{"scripts/a/one.lua": true}, "passed one", "error two")
	f(map[string]bool{"scripts/a/one.lua": true, "scripts/a/one_test.lua": true, "scripts/a/two_test.lua": true})
}

// Sources of a report are what the result of a file depends on, so that a
// change of one of them, or a new one, is a reason to run it again.
func TestSources(t *testing.T) {
	write(t, archive(`
-- scripts/a/one.lua --
local shared = require "shared"
`+plain+`
-- scripts/a/one_test.lua --
local data = require "data"
it("one", function() weir.test.component("one.lua"):unchanged "up 1" end)
-- scripts/a/two_test.lua --
it("two", function() end)
-- scripts/lib/shared.lua --
return {}
-- scripts/lib/data.lua --
return {}
`))
	work, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]string{}
	for _, f := range run(t, options()).Files {
		for _, s := range f.Sources {
			rel, err := filepath.Rel(work, s)
			if err != nil {
				t.Fatal(err)
			}
			got[f.Name] = append(got[f.Name], filepath.ToSlash(rel))
		}
	}
	want := map[string][]string{
		"scripts/a/one_test.lua": {"scripts/a/one.js", "scripts/a/one.lua", "scripts/a/one.ts", "scripts/a/one_test.lua", "scripts/lib/data.lua", "scripts/lib/shared.lua"},
		"scripts/a/two_test.lua": {"scripts/a/two_test.lua"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Each is told of every file in order, however many run at once.
func TestEach(t *testing.T) {
	write(t, archive("-- scripts/a/c_test.lua --\nit('c', function() end)\n-- scripts/a/a_test.lua --\nit('a', function() for i = 1, 1e5 do end end)\n-- scripts/a/b_test.lua --\nit(\n"))
	for _, parallel := range []int{1, 3} {
		o := options()
		o.Parallel = parallel
		var got []string
		o.Each = func(f scripttest.File) { got = append(got, f.Name) }
		r := run(t, o)
		if diff := cmp.Diff([]string{"scripts/a/a_test.lua", "scripts/a/b_test.lua", "scripts/a/c_test.lua"}, got); diff != "" {
			t.Errorf("%d at once (-want +got):\n%s", parallel, diff)
		}
		if r.OK() || r.Count(scripttest.Passed) != 2 || r.Count(scripttest.Broken) != 1 {
			t.Errorf("%d at once: got %v", parallel, ends(r))
		}
	}
}

// Links that lead out of the folder, folders called like scripts, and files that
// are too large cannot be used, and the others are run.
func TestUnusualFiles(t *testing.T) {
	write(t, archive("-- scripts/a/ok_test.lua --\nit('ok', function() end)\n-- outside.lua --\nit('outside', function() end)\n-- scripts/a/empty_test.lua --\n"))
	if err := os.Symlink("../../outside.lua", "scripts/a/link_test.lua"); err != nil {
		t.Skipf("no links here: %v", err)
	}
	if err := os.Mkdir("scripts/a/folder_test.lua", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("scripts/a/large_test.lua", []byte("it('x', function() end)\n--"+strings.Repeat("x", 16<<20)), 0o644); err != nil {
		t.Fatal(err)
	}
	r := run(t, options())
	want := []string{"broken scripts/a/large_test.lua", "broken scripts/a/link_test.lua", "passed ok"}
	if diff := cmp.Diff(want, ends(r)); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	for i, want := range []string{"scripts/a/large_test.lua", "scripts/a/link_test.lua"} {
		if p := r.Files[i].Problem; !strings.Contains(p.Msg, want) {
			t.Errorf("got %q, want %q", p.Msg, want)
		}
	}
}
