package scripttest_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/scripting/scripttest"
)

// Outputs of examples are written in the comment of their language, with
// the kinds of metadata that they had; all else of the file stays.
func TestUpdate(t *testing.T) {
	f := func(name, before, want string) {
		t.Helper()
		write(t, archive("-- "+name+" --\n"+before))
		o := options()
		o.Update = func(path, content string) error { return os.WriteFile(path, []byte(content), 0o644) }
		r := run(t, o)
		if !r.OK() {
			t.Errorf("%s: got %v, %+v", name, ends(r), r.Files[0].Problem)
		}
		got, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		rewritten := r.Files[0].Updated
		if changed := before != want; changed != (rewritten > 0) {
			t.Errorf("%s: got %d examples rewritten", name, rewritten)
		}
		if r := run(t, options()); !r.OK() {
			t.Errorf("%s fails after the update: %v", name, ends(r))
		}
	}
	const lua = "local weir = require \"weir\"\nreturn weir.transform { series = function(s) s.labels.mark = \"x\" end }\n"
	const ts = "import { defineTransform } from \"weir\";\nexport default defineTransform({ series(s) { s.labels.mark = \"x\"; } });\n"
	// an example that holds is left alone
	f("scripts/a/w.lua", "-- Marks.\n--\n-- Example Input:\n--   up 1\n-- Example Output:\n--   up{mark=\"x\"} 1\n"+lua,
		"-- Marks.\n--\n-- Example Input:\n--   up 1\n-- Example Output:\n--   up{mark=\"x\"} 1\n"+lua)
	// another value, and more and fewer lines than before
	f("scripts/a/w.lua", "-- Marks.\n--\n-- Example Input:\n--   up 1\n--   down 0\n-- Example Output:\n--   up 1\n--\n-- Example Input:\n--   up 2\n-- Example Output:\n--   up 1\n--   up 2\n--   up 3\n"+lua,
		"-- Marks.\n--\n-- Example Input:\n--   up 1\n--   down 0\n-- Example Output:\n--   up{mark=\"x\"} 1\n--   down{mark=\"x\"} 0\n--\n-- Example Input:\n--   up 2\n-- Example Output:\n--   up{mark=\"x\"} 2\n"+lua)
	// metadata is written where the example has it
	f("scripts/a/w.lua", "-- Marks.\n--\n-- Example Input:\n--   # TYPE up gauge\n--   # HELP up Is it?\n--   up 1\n-- Example Output:\n--   # TYPE up gauge\n--   up 1\n"+lua,
		"-- Marks.\n--\n-- Example Input:\n--   # TYPE up gauge\n--   # HELP up Is it?\n--   up 1\n-- Example Output:\n--   # TYPE up gauge\n--   up{mark=\"x\"} 1\n"+lua)
	// TypeScript
	f("scripts/a/w.ts", "// Marks.\n//\n// Example Input:\n//   up 1\n// Example Output:\n//   up 1\n"+ts,
		"// Marks.\n//\n// Example Input:\n//   up 1\n// Example Output:\n//   up{mark=\"x\"} 1\n"+ts)
	f("scripts/a/w.ts", "/**\n * Marks.\n *\n * Example Input:\n *   up 1\n * Example Output:\n *   up 1\n */\n"+ts,
		"/**\n * Marks.\n *\n * Example Input:\n *   up 1\n * Example Output:\n *   up{mark=\"x\"} 1\n */\n"+ts)
}

// An example that fails for another reason than its output is not touched, nor
// is a file that was changed while the tests ran or cannot be written.
func TestUpdateRefuses(t *testing.T) {
	script := func(input, output, hook string) string {
		return "-- Marks.\n--\n-- Example Input:\n--   " + input + "\n-- Example Output:\n--   " + output + "\nlocal weir = require \"weir\"\nreturn weir.transform { series = function(s) " + hook + " end }\n"
	}
	block := func(output, hook string) string {
		return "/* Marks.\n * Example Input:\n *   up 1\n * Example Output:\n *   " + output + "\nimport { defineTransform } from \"weir\";\nexport default defineTransform({ series(s) { " + hook + " } });\n"
	}
	f := func(text, want string, update func(path, content string) error) {
		t.Helper()
		name := "scripts/a/w.lua"
		if strings.HasPrefix(text, "/*") {
			name = "scripts/a/w.ts"
		}
		write(t, archive("-- "+name+" --\n"+text))
		o := options()
		o.Update = update
		r := run(t, o)
		p := r.Files[0].Problem
		if p == nil {
			p = r.Files[0].Tests[0].Problem
		}
		if r.OK() || p == nil || !strings.Contains(p.Msg, want) {
			t.Errorf("got %+v, want %q", p, want)
		}
		if r.Files[0].Updated != 0 {
			t.Errorf("got %d examples rewritten", r.Files[0].Updated)
		}
	}
	never := func(path, content string) error {
		t.Errorf("writes %s:\n%s", path, content)
		return nil
	}
	f(script("up 1", "up 2", "error('broke')"), "broke", never)
	f(script("up{ 1", "up 2", ""), "cannot read the metrics of this example", never)
	f(script("up 1", "up{ 2", ""), "cannot read the metrics of this example", never)
	f(script("up 1", "up 2", ""), "cannot rewrite the examples of scripts/a/w.lua: disk full", func(string, string) error { return errors.New("disk full") })

	// a block comment must end where it ended
	f(block("up 1\n */", "s.labels.mark = '*/'"), "cannot rewrite the examples of scripts/a/w.ts: the output of the example in line 2 contains */, which ends the comment; begin the lines of the header with //", never)
	f(block("up 1 */", "s.labels.mark = 'x';"), "the comment ends in a line of the example in line 2; put */ on a line of its own", never)

	// The first of two files changes the second one.
	write(t, archive("-- scripts/a/v.lua --\n"+script("up 1", "up 2", "")+"-- scripts/a/v_test.lua --\nit('x', function() end)\n"))
	o := options()
	o.Update = never
	o.Skip = func(name string) bool { // asked before each file, after all were read
		if name == "scripts/a/v.lua" {
			if err := os.WriteFile(name, []byte(script("up 1", "up 3", "")), 0o644); err != nil {
				t.Error(err)
			}
		}
		return false
	}
	r, err := scripttest.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if p := r.Files[0].Problem; p == nil || !strings.Contains(p.Msg, "cannot rewrite the examples of scripts/a/v.lua: it was changed meanwhile; run the tests again") {
		t.Errorf("got %+v, %v", p, ends(r))
	}
}
