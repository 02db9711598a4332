package expr_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/weir-run/weir/engine/expr"
)

// TestHostilePatterns refuses patterns that take much memory before they are
// compiled, wherever they stand, and texts that would take long.
func TestHostilePatterns(t *testing.T) {
	large := strings.Repeat("abcdefgh", 400)
	f := func(src, line, want string) {
		t.Helper()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		p, err := expr.CompileLogs(src, expr.Bool, map[string]any{"n": "{900}"})
		if err == nil {
			_, err = p.Bool(&expr.Sample{Series: series("", ""), Line: line})
		}
		runtime.ReadMemStats(&after)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: got %v, want %q", src, err, want)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > 64<<20 {
			t.Errorf("%.60s: %d MiB were allocated", src, n>>20)
		}
	}
	const tooLarge, tooLong = "of memory, and the limit is 4.0 MiB", "cannot match a text of 1048576 bytes by the pattern"
	f(`line matches "(`+large+`){900}"`, "x", tooLarge)
	f(`line matches "(" + "`+large+`" + "){900}"`, "x", tooLarge)
	f(`line matches "(`+large+`)" + args.n`, "x", tooLarge)
	f(`any([line], # matches "(`+large+`){900}")`, "x", tooLarge)
	f(`any([line], # matches "(" + "`+large+`" + "){900}")`, "x", tooLarge)
	f(`any([line], "x" matches #)`, "("+large+"){900}", tooLarge)
	text := strings.Repeat("x", 1<<20)
	f(`line matches "(x{30}){30}y"`, text, tooLong)
	f(`any([line], # matches "(x{30}){30}y")`, text, tooLong)
	f(`line == "" || not (line matches "(x{30}){30}y")`, text, tooLong)
}
