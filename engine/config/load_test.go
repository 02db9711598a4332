package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/engine/config"
)

// diagnose returns diagnostics as lines.
func diagnose(ds config.Diagnostics) string {
	var b strings.Builder
	for _, d := range ds {
		b.WriteString(d.Error() + "\n")
	}
	return b.String()
}

func ids(c *config.Config) (ids []string) {
	for _, b := range c.Blocks {
		ids = append(ids, b.ID)
	}
	return ids
}

func TestParse(t *testing.T) {
	f := func(text, wantIDs, wantBroken, want string) {
		t.Helper()
		c, ds := config.Parse(map[string]string{"c.alloy": text})
		if got := strings.Join(ids(c), " "); got != wantIDs {
			t.Errorf("got blocks %q, want %q", got, wantIDs)
		}
		if got := strings.Join(c.Broken, " "); got != wantBroken {
			t.Errorf("got broken %q, want %q", got, wantBroken)
		}
		if diff := cmp.Diff(strings.TrimSpace(want), strings.TrimSpace(diagnose(ds))); diff != "" {
			t.Errorf("diagnostics (-want +got):\n%s", diff)
		}
	}
	f("", "", "", "")
	f("a.b \"c\" {}\nlogging {\n level = 1\n}", "a.b.c logging", "", "")

	// The error of a duplicate names the first definition. The label counts.
	f("a \"x\" {}\na \"y\" {}\na \"x\" {}", "a.x a.y a.x (block 3)", "",
		"c.alloy:3:1: block a.x is defined twice (first defined at c.alloy:1:1; give one of them another label)")
	f("x = 1\na {}", "a", "", `c.alloy:1:1: attribute "x" is not inside a block (the top level of a config has only blocks)`)

	// A syntax error affects only its own block, and the block is known to exist.
	f("a \"x\" {\n  v = \n}\nb \"y\" {\n  v = a.x.r\n}\nc \"z\" {\n v = ,\n}\n", "b.y", "a.x c.z", `
c.alloy:3:1: expected expression, got }
c.alloy:8:6: expected expression, got ,`)
	f("a \"x\" { v = 1 2 }\nb {}\n", "b", "a.x", "c.alloy:1:15: expected the end of the line, got a number")

	// A missing bracket is reported where it is missing, not at the end.
	f("a.b \"x\" {\n  v = 1\n\nb \"y\" {\n  v = 2\n}\n\nc {}\n", "b.y c", "a.b.x",
		"c.alloy:1:1: block a.b.x is not closed (a } is missing before line 4, where b.y begins)")
	f("a \"x\" {\n  v = [1, 2\n}\nb \"y\" {\n  v = 2\n}\n", "b.y", "a.x", "c.alloy:2:12: missing ']'")
	f("a \"x\" {\n  v = 1\n", "", "a.x", "c.alloy:1:1: block a.x is not closed (a } is missing at the end of the file)")
	// An error is reported once and does not hide later errors.
	const notClosed = "string literal not terminated (a \" is missing at its end)"
	f("a {\n  v = [{\"b\" = \"x:1}]\n  w = [b.receiver]\n}\nb {}", "b", "a", "c.alloy:2:15: "+notClosed)
	f("a {\n  v = \"x\n  w = \"y,\n}\nb {}", "b", "a", "c.alloy:2:7: "+notClosed+"\nc.alloy:3:7: "+notClosed)
	f("a {\n  v = [x:1\"]\n}", "", "a", "c.alloy:2:8: string literal not terminated (a \" is missing before it)")
	f("a \"x {\n  v = 1\n}\nb {}", "b", "a.x", "c.alloy:1:3: "+notClosed)
	f("a {\n  v = concat([\"x], b.c)\n w = 1 2\n}", "", "a", "c.alloy:2:15: "+notClosed+"\nc.alloy:3:8: expected the end of the line, got a number")
	f("a {\n  v = [\n    {\"b\" = \"x},\n    {\"b\" = \"y\"},\n  ]\n}", "", "a", "c.alloy:3:12: "+notClosed)
	f("a {\n  v = `x\n}", "", "a", "c.alloy:2:7: string literal not terminated")
	f("a {\n  v = [{\"b\" = 1}\n  w = [b]\n}\nb \"c\" {}", "b.c", "a", "c.alloy:2:17: missing ']'")
	f("a {\n  v = [{\"b\" = 1]\n  w = b]\n}", "", "a", "c.alloy:2:16: missing '}'\nc.alloy:3:8: expected the end of the line, got ]")
	f("a {\n  v = concat([1], [2]\n  w = 1\n}", "", "a", "c.alloy:2:22: missing ')'")
	f("a {\n  v = [\n    1\n    2,\n  ]\n  w = [1 2]\n  x =\n}", "", "a", "c.alloy:3:6: missing ',' in expression list\nc.alloy:6:10: missing ',' in expression list\nc.alloy:8:1: expected expression, got }")

	// Syntax from other languages.
	f("a x {}", "", "a", "c.alloy:1:3: expected block label, got a name (a label is written in quotes)")
	f(`a "x" "y" {}`, "", "a", `c.alloy:1:7: expected block body, got a string (a block has at most one label)`)
	f("a \"x\" {\n  v : 1\n}", "", "a.x", "c.alloy:2:5: illegal character U+003A ':' (an attribute is written as name = value)")
	f("a \"x\" {\n  v = [{b = 1} {b = 2}]\n}", "", "a.x", "c.alloy:2:8: cannot use a block as an expression (separate the elements of a list by commas; a map is written {name = value})")
	f("a \"x\" {\n  v = 'y'\n}", "", "a.x", "c.alloy:2:7: illegal single-quoted string; use double quotes")
	f("a \"1x\" {}\nb {}", "b", "a.1x", `c.alloy:1:3: expected block label to be a valid identifier, but got "1x"`)
}

func TestParseBounds(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		_, ds := config.Parse(map[string]string{"c.alloy": text})
		if got := diagnose(ds); !strings.Contains(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	const n = 300_000
	f("a {\n v = "+strings.Repeat("[", n)+"\n}", "brackets nest deeper than the 100 levels allowed")
	f(strings.Repeat("a {\n", n/4), "brackets nest deeper")
	f("a {\n v = "+strings.Repeat("-", n)+"1\n}", "expression has more than the 5000 operators allowed")
	f("a {\n v = 1"+strings.Repeat("+1", n)+"\n}", "more than the 5000 operators")
	f("a {\n v = a"+strings.Repeat(".a", n)+"\n}", "more than the 5000 operators")
	f("a {\n v = a"+strings.Repeat("(1,2)", n/5)+"\n}", "more than the 5000 operators")
	f("a {\n v = a"+strings.Repeat("[1]", n/3)+"\n}", "more than the 5000 operators")
	f(strings.Repeat(" ", 1<<20+1), "more than the 1048576 allowed")
	// The parser's error recovery recurses without returning. Its stack must be
	// large enough for any text within the limits.
	f("a {\n v = "+strings.Repeat("[a\"\"]\n", 1<<20/7)+"\n}", "expected")
	f("a {\n v = "+strings.Repeat("[)", 1<<19-8), "brackets nest deeper")

	// Long lists do not count as nesting.
	_, ds := config.Parse(map[string]string{"c.alloy": "a {\n v = [" + strings.Repeat("a.b.c,\n", 20_000) + "]\n}"})
	if len(ds) > 0 {
		t.Errorf("got %q for a long list", diagnose(ds)[:100])
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if _, ds := config.Load(filepath.Join(dir, "none")); !strings.Contains(diagnose(ds), "cannot read the config: stat") {
		t.Errorf("got %q for a file that is not there", diagnose(ds))
	}
	if _, ds := config.Load(dir); !strings.Contains(diagnose(ds), "no *.alloy file in this directory") {
		t.Errorf("got %q for an empty directory", diagnose(ds))
	}
	write("20.alloy", `b "x" {}`)
	write("10.alloy", "a \"x\" {}\nc {")
	write("notes.txt", "{{{")
	write("sub/30.alloy", `d "x" {}`)
	write("dir.alloy/x", "")
	write("30.alloy", `a "x" {}`)

	c, ds := config.Load(dir)
	if diff := cmp.Diff([]string{"a.x", "b.x", "a.x (block 3)"}, ids(c)); diff != "" {
		t.Errorf("blocks (-want +got):\n%s", diff)
	}
	want := filepath.Join(dir, "10.alloy") + ":2:1: block c is not closed (a } is missing at the end of the file)\n" +
		filepath.Join(dir, "30.alloy") + ":1:1: block a.x is defined twice (first defined at " + filepath.Join(dir, "10.alloy") + ":1:1; give one of them another label)\n"
	if diff := cmp.Diff(want, diagnose(ds)); diff != "" {
		t.Errorf("diagnostics (-want +got):\n%s", diff)
	}
	c, ds = config.Load(filepath.Join(dir, "20.alloy"))
	if len(ds) > 0 || len(c.Blocks) != 1 {
		t.Errorf("got %v, %v for one file", ids(c), ds)
	}
}

// The text of empty diagnostics is empty. It used to panic.
func TestNoDiagnostics(t *testing.T) {
	if got := (config.Diagnostics{}).Error(); got != "" {
		t.Errorf("got %q", got)
	}
}
