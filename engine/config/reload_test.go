package config

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/grafana/alloy/syntax/ast"
)

// everythingOf returns everything that a block is made of, with all positions.
func everythingOf(b *Block) string {
	out := []string{fmt.Sprintf("%s %s %s %v %d %q", b.ID, b.Name, b.Label, b.Span, b.at, b.text)}
	for _, r := range b.refs {
		out = append(out, fmt.Sprintf("ref %s %v %v %v", r.name, r.Span, r.ends, r.call))
	}
	ast.Walk(statements(func(st *ast.AttributeStmt) {
		out = append(out, fmt.Sprintf("%s at %v = %v", st.Name.Name, spanOf(st.Name), spanOf(st.Value)))
	}), b.stmt.Body)
	return strings.Join(out, "\n")
}

// wantSame reports an error if a config that was parsed in part is not the one that is
// parsed as a whole.
func wantSame(t *testing.T, old, got *Config, ds Diagnostics) {
	t.Helper()
	want := &Config{Path: got.Path, Files: got.Files}
	wantDs := want.parse(nil)
	text := func(c *Config, ds Diagnostics) string {
		out := []string{fmt.Sprint(c.Broken, c.valid), fmt.Sprint(ds)}
		for _, b := range c.Blocks {
			out = append(out, everythingOf(b))
		}
		return strings.Join(out, "\n")
	}
	if diff := cmp.Diff(text(want, wantDs), text(got, ds)); diff != "" {
		t.Errorf("from %q\nto %q (-whole +in part):\n%s", old.Files, got.Files, diff)
	}
}

const reloaded = `// A comment.
a.b "one" {
	x = 1
}

a.b "two" { } // behind it

/* Of
three. */
a.b "three" {
	x = a.b.one.receiver
	inner {
		y = [a.b.two.receiver, ` + "`raw\n}\n`" + `]
	}
}
a.b "four" {
	x = "a text with { and }"
}
`

// TestReload changes one thing of a config: the blocks before it and, if the number of
// lines stays, those behind it are not parsed again.
func TestReload(t *testing.T) {
	f := func(from, to string, parsed ...string) {
		t.Helper()
		path := filepath.Join(t.TempDir(), "c.alloy")
		save := func(text string) {
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		save(reloaded)
		old, ds := Load(path)
		if len(ds) > 0 {
			t.Fatal(ds)
		}
		if strings.Count(reloaded, from) == 0 {
			t.Fatalf("there is no %q", from)
		}
		save(strings.Replace(reloaded, from, to, 1))
		got, ds := old.Reload(path)
		wantSame(t, old, got, ds)
		var fresh []string
		for _, b := range got.Blocks {
			if !slices.ContainsFunc(old.Blocks, func(o *Block) bool { return o.stmt == b.stmt }) {
				fresh = append(fresh, b.Label)
			}
		}
		if !slices.Equal(fresh, parsed) {
			t.Errorf("%q to %q: parsed %q, want %q", from, to, fresh, parsed)
		}
	}
	f("x = 1", "x = 1")
	f("x = 1", "x = 2", "one")
	f("x = 1", "x = 1 + 1", "one")
	f("x = 1", "x = 1\n\ty = 2", "one", "two", "three", "four")
	f(`"two" { }`, `"two" { x = 1 }`, "two")
	f(`a text`, `another text`, "four")
	f("// A comment.", "// Another one.")
	f("// A comment.\n", "", "one", "two", "three", "four")
	f(`"three"`, `"drei"`, "drei")
	f("a.b \"four\" {\n\tx = \"a text with { and }\"\n}\n", "")
	f("}\na.b \"four\"", "}\na.b \"five\" { }\na.b \"four\"", "five", "four")
	f("} // behind it", "} /* behind it", "two") // up to the end of the next comment
	// Errors
	f(`"two"`, `"one"`, "one")
	f("x = 1", "x = ", "two", "three", "four")
	f("} // behind it", "}", "two")
	f("} // behind it", "} a.b \"x\" { }", "one", "three", "four")
	f("// A comment.", "/* A comment.", "three", "four")
	f("raw", "r`w", "one", "two")
	f("a.b \"one\" {", "a.b \"one\" {{", "two", "three", "four")
	f("// A comment.", "x = 1", "one", "two", "three", "four")
}

// TestReloadOfDirectory: files appear, change and go.
func TestReloadOfDirectory(t *testing.T) {
	dir := t.TempDir()
	save := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	save("a.alloy", "a.b \"a\" { }\n")
	save("b.alloy", reloaded)
	c, _ := Load(dir)
	for i, change := range []func(){
		func() { save("c.alloy", "a.b \"c\" { }\n") },
		func() { save("a.alloy", "a.b \"c\" { }\n") }, // which is a duplicate
		func() { save("a.alloy", "") },
		func() { save("a.alloy", "a.b \"a\" { }\n") },
		func() { os.Remove(filepath.Join(dir, "b.alloy")) },
	} {
		change()
		old := c
		next, ds := old.Reload(dir)
		c = next
		wantSame(t, old, c, ds)
		if wrong := i == 1; ds.HasErrors() != wrong {
			t.Errorf("change %d: %v", i, ds)
		}
	}
}

// TestReloadMany: the positions of old versions do not stay in memory forever.
func TestReloadMany(t *testing.T) {
	c, _ := Parse(map[string]string{"c": reloaded})
	first, whole := c.Blocks[3].stmt, 0
	for i := range 3 * maxPatches {
		old := c
		c = &Config{Files: map[string]string{"c": strings.Replace(reloaded, "x = 1", fmt.Sprintf("x = %d", i), 1)}}
		wantSame(t, old, c, c.parse(old))
		if c.Blocks[3].stmt != first {
			first, whole = c.Blocks[3].stmt, whole+1
		}
	}
	if whole != 2 {
		t.Errorf("after %d changes, the whole config was parsed again %d times", 3*maxPatches, whole)
	}
}

// TestReloadRandom changes a config at random places.
func TestReloadRandom(t *testing.T) {
	pieces := []string{"", "\n", "\r\n", " ", "{", "}", "[", "]", "`", "\"", "/*", "*/", "//", "#", "x = 1", "x = [\n]\n", "a.b \"new\" { }\n", "a.b \"one\" {\n}\n", "/*\n*/ a.b \"new\" { }", "a", ".", "=", "é", "\xff", "\x00"}
	r := rand.New(rand.NewPCG(1, 2))
	valid, c := 0, &Config{}
	reset := func() { c, _ = Parse(map[string]string{"c": reloaded}) }
	reset()
	for range 4000 {
		text := c.Files["c"]
		at := r.IntN(len(text) + 1)
		end := min(len(text), at+r.IntN(3)*r.IntN(20))
		if r.IntN(3) == 0 { // whole lines
			at = 1 + strings.LastIndexByte(text[:at], '\n')
			end = at + 1 + strings.IndexByte(text[at:]+"\n", '\n')
		}
		next := &Config{Files: map[string]string{"c": text[:at] + pieces[r.IntN(len(pieces))] + text[min(end, len(text)):]}}
		ds := next.parse(c)
		wantSame(t, c, next, ds)
		if t.Failed() {
			return
		}
		if len(ds) == 0 {
			valid++
			c = next
		}
		if r.IntN(50) == 0 || len(c.Files["c"]) < 100 {
			reset()
		}
	}
	if valid < 300 {
		t.Errorf("only %d of the versions were valid", valid)
	}
}
