package scan_test

import (
	"strings"
	"testing"

	"github.com/weir-run/weir/engine/scan"
)

// TestCutLongPath: the work for a path grows with its length, not with the square
// of it: scripts pass paths of megabytes.
func TestCutLongPath(t *testing.T) {
	for _, unit := range []string{"a", `\.`, "."} {
		s := strings.Repeat(unit, 10_000)
		if n := testing.AllocsPerRun(1, func() { scan.CutPath(s) }); n > 50 {
			t.Errorf("%q: %v allocations", unit, n)
		}
	}
	if path, ok := scan.CutPath(strings.Repeat("a.", scan.MaxPath-1) + "a"); !ok || len(path) != scan.MaxPath {
		t.Errorf("got %q, %v", path, ok)
	}
	if _, ok := scan.CutPath(strings.Repeat("a.", scan.MaxPath) + "a"); ok {
		t.Error("a path of more names is one, too")
	}
}
