package scripting_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weir-run/weir/docs"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/js"
	"github.com/weir-run/weir/scripting/lua"
)

// TestLintIDs checks that the documentation has a section for each identifier.
func TestLintIDs(t *testing.T) {
	page, ok := docs.Find("lint")
	if !ok {
		t.Fatal("there is no page lint")
	}
	var sections []string
	for line := range strings.Lines(page.Text) {
		if id, ok := strings.CutPrefix(line, "## "); ok && !strings.Contains(id, " ") {
			sections = append(sections, strings.TrimSpace(id))
		}
	}
	if want := append(slices.Clone(scripting.LintIDs), scripting.LintBadIgnore); !slices.Equal(sections, want) {
		t.Errorf("docs/lint.md has sections %q, want %q", sections, want)
	}
}

func TestIgnores(t *testing.T) {
	f := func(l scripting.Mutator, text string, want ...scripting.Ignore) {
		t.Helper()
		if got := l.Ignores(scripting.File{Text: text}); !slices.Equal(got, want) {
			t.Errorf("%q: got %+v, want %+v", text, got, want)
		}
	}
	lu, ts := lua.New(), js.New()
	// In the line, and above it.
	f(lu, "x = 1 -- weir:ignore read-only a reason", scripting.Ignore{ID: "read-only", Reason: "a reason", At: 1, Line: 1})
	f(lu, "\n-- weir:ignore a b\r\n-- and more\nx = 1\n", scripting.Ignore{ID: "a", Reason: "b", At: 2, Line: 4})
	f(ts, "f() // weir:ignore a b\n  // weir:ignore c\ng()",
		scripting.Ignore{ID: "a", Reason: "b", At: 1, Line: 1}, scripting.Ignore{ID: "c", At: 2, Line: 3})
	f(lu, "-- weir:ignore", scripting.Ignore{At: 1, Line: 2})
	f(lu, "-- weir:ignore a b\n-- weir:ignore c d\nx = 1",
		scripting.Ignore{ID: "a", Reason: "b", At: 1, Line: 3}, scripting.Ignore{ID: "c", Reason: "d", At: 2, Line: 3})
	f(ts, "/* a\nb */ f() // weir:ignore a b", scripting.Ignore{ID: "a", Reason: "b", At: 2, Line: 2})
	// In a string, and another word.
	f(lu, "x = [[\n-- weir:ignore a b\n]] y = '-- weir:ignore a b'")
	f(ts, "x = `\n// weir:ignore a b\n` + '// weir:ignore a b'")
	f(lu, "x = 1 -- weir:ignored a b")
	// Large and deep code.
	n := 20_000
	if got := lu.Ignores(scripting.File{Text: strings.Repeat("-- weir:ignore a b\nx = 1\n", n)}); len(got) != n || got[n-1].At != 2*n-1 {
		t.Errorf("got %d comments, want %d", len(got), n)
	}
	deep := fmt.Sprintf("x = %s1%s // weir:ignore a b", strings.Repeat("(", 100_000), strings.Repeat(")", 100_000))
	f(ts, deep, scripting.Ignore{ID: "a", Reason: "b", At: 1, Line: 1})
}
