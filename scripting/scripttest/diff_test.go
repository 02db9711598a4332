package scripttest

import (
	"strings"
	"testing"
)

func TestLineDiff(t *testing.T) {
	f := func(want, got, diff string) {
		t.Helper()
		if d := strings.ReplaceAll(lineDiff(strings.Fields(want), strings.Fields(got)), "\n", "|"); d != diff {
			t.Errorf("%q, %q: got %q, want %q", want, got, d, diff)
		}
	}
	f("", "", "")
	f("a b", "a b", "")
	f("", "a", "+ a|")
	f("a", "", "- a|")
	f("a b c", "a x c", "  a|- b|+ x|  c|")
	f("a b c", "a c", "  a|- b|  c|")
	f("a c", "a b c", "  a|+ b|  c|")
	f("1 2 3 4 5 a 6 7 8 9", "1 2 3 4 5 b 6 7 8 9", "  …|  4|  5|- a|+ b|  6|  7|  …|")
	f("a 1 2 3 4 5 b", "x 1 2 3 4 5 y", "- a|+ x|  1|  2|  …|  4|  5|- b|+ y|")
	f("a b a b", "b a b a", "- a|  b|  a|  b|+ a|")
}

// TestLineDiffBounds checks that a diff of long texts is limited in time and length.
func TestLineDiffBounds(t *testing.T) {
	long := func(s string) []string {
		return strings.Split(strings.TrimSuffix(strings.Repeat(s+"\n", maxDiff+1), "\n"), "\n")
	}
	d := lineDiff(long("a"), long("b"))
	if n := strings.Count(d, "\n"); n != maxShown+1 || !strings.HasSuffix(d, "  … and more\n") {
		t.Errorf("got %d lines ending in %q", n, d[len(d)-20:])
	}
}
