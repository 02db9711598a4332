package scripttest_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/registry"
	"github.com/weir-run/weir/scripting/scripttest"
)

// Check compiles scripts and test files, and runs no test.
func TestCheck(t *testing.T) {
	f := func(files string, n int, want ...string) {
		t.Helper()
		write(t, archive(files))
		got, err := scripttest.Check(options())
		if got != n {
			t.Errorf("got %d files, want %d", got, n)
		}
		msg := ""
		if err != nil {
			msg = err.Error()
		}
		if len(want) == 0 && msg != "" {
			t.Errorf("got %s", msg)
		}
		last := -1
		for _, w := range want {
			i := strings.Index(msg, w)
			if i <= last {
				t.Errorf("no %q, or too early, in\n%s", w, msg)
			}
			last = i
		}
	}
	const ts = "import { defineTransform } from \"weir\";\nexport default defineTransform({ metrics() {} });\n"
	f("-- scripts/a/w.lua --\n"+plain+"-- scripts/a/w_test.lua --\nit('is not run', function() error('x') end)\n", 1)
	f("-- scripts/a/w.ts --\n"+ts+"-- scripts/a/w.test.ts --\nimport { it } from \"weir/test\";\nit('is not run', () => { throw new Error('x'); });\n", 1)
	f("-- scripts/a/v.lua --\nreturn {\n-- scripts/a/w_test.lua --\nit(\n-- scripts/a/x.lua --\n"+plain+"-- scripts/a/y.ts --\nexport default {{\n", 4,
		"scripts/a/v.lua:1", "scripts/a/w_test.lua:1", "scripts/a/y.ts:1")
	// names that do not exist are found without running the tests
	f("-- scripts/a/w_test.lua --\nit('x', function() weir.test.componnet('x.lua') end)\n", 1, `scripts/a/w_test.lua:1:30: module weir.test has no "componnet"`)
	f("-- scripts/a/w_test.lua --\nit('x', function() end)\ndecsribe()\n", 1, `scripts/a/w_test.lua:2: there is no global "decsribe"`)
	f("-- scripts/a/w.test.ts --\nimport { it, expcet } from \"weir/test\";\nit('x', () => { expcet(1); });\n", 1, "expcet")
	f("-- scripts/a/notes.txt --\nno script\n", 0, "there are no tests")
	f("", 0, "cannot find the tests: stat scripts: no such file or directory")
}

// CheckTest looks at the test file of one script.
func TestCheckTest(t *testing.T) {
	dir := t.TempDir()
	langs := options().Languages
	c, err := registry.NewCatalog(registry.Options{Languages: langs, UserDir: dir, Modules: options().Modules})
	if err != nil {
		t.Fatal(err)
	}
	folder, ok := registry.FolderOf(c)
	if !ok {
		t.Fatal("the catalog has no folder")
	}
	f := func(name, text, want string) {
		t.Helper()
		check := scripttest.CheckTest(langs, options().Modules, nil)
		err := check(registry.Tested{Folder: folder, Test: scripting.File{Name: name, Path: filepath.Join(dir, name), Text: text}})
		got := ""
		if err != nil {
			got = err.Error()
		}
		if (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
	f("w_test.lua", "it('x', function() assert.same(1, 1) end)", "")
	f("w_test.lua", "it('x', function() assret.same(1, 1) end)", "w_test.lua:1")
	f("w_test.lua", "it(", "w_test.lua:1")
	f("w_test.lua", "it('x', function() weir.test.component('a.lua'):metrics('a 1', 'b 1') end)", "component.metrics: it takes 1 arguments, not 2")
	f("w.test.ts", "import { it } from \"weir/test\";\nit('x', () => {});", "")
	f("w.test.ts", "import { it } from \"weir/test\";\nit('x', () => { expect(1).toBe(1); lte; });", "w.test.ts:2")
}

// A script without tests is a warning.
func TestCheckMissingTest(t *testing.T) {
	f := func(files string, want ...string) {
		t.Helper()
		write(t, archive(files))
		var got []string
		o := options()
		o.Checks = &registry.Checks{Warn: func(e *scripting.Error) { got = append(got, e.File+" "+e.ID) }}
		if _, err := scripttest.Check(o); err != nil && !strings.Contains(files, "broken") {
			t.Error(err)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s\ngot %q, want %q", files, got, want)
		}
	}
	const (
		example = "-- Does nothing.\n--\n-- Example Input:\n--   up 1\n-- Example Output:\n--   up 1\n"
		js      = "import { defineTransform } from \"weir\";\nexport default defineTransform({ metrics() {} });\n"
	)
	f("-- scripts/a/w.lua --\n"+plain, "scripts/a/w.lua missing-test")
	f("-- scripts/a/w.js --\n"+js, "scripts/a/w.js missing-test")
	f("-- scripts/a/w.lua --\n" + plain + "-- scripts/a/w.test.ts --\n")
	f("-- scripts/a/w.lua --\n" + example + plain)
	f("-- scripts/a/v.lua --\n"+plain+"-- scripts/a/w_test.lua --\n", "scripts/a/v.lua missing-test") // the test of another script
	f("-- scripts/lib/w.lua --\nreturn {}\n-- scripts/a/_w.lua --\n" + plain + "-- scripts/a/x_test.lua --\n")
	f("-- scripts/a/w.lua --\nreturn { broken\n") // which the error says
	// A comment in any line hides the warning, with a reason.
	f("-- scripts/a/w.lua --\n" + plain + "-- weir:ignore missing-test it is a draft\n")
	f("-- scripts/a/w.js --\n// weir:ignore missing-test it is a draft\n" + js)
	f("-- scripts/a/w.lua --\n"+plain+"-- weir:ignore missing-test\n", "scripts/a/w.lua bad-ignore", "scripts/a/w.lua missing-test")
	f("-- scripts/a/w.lua --\n"+plain+"-- weir:ignore mutate it is a draft\n", "scripts/a/w.lua missing-test")
}
