package valid_test

import (
	"strings"
	"testing"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/natives/prometheus/internal/valid"
)

func TestCheckExemplar(t *testing.T) {
	f := func(want string, namesAndValues ...string) {
		t.Helper()
		var ls []batch.Label
		for i := 0; i < len(namesAndValues); i += 2 {
			ls = append(ls, batch.Label{Name: namesAndValues[i], Value: namesAndValues[i+1]})
		}
		if got := valid.CheckExemplar(ls); got != want {
			t.Errorf("%q: got %q, want %q", namesAndValues, got, want)
		}
	}
	f("")
	f("", "id", strings.Repeat("ü", 126))
	f(valid.ExemplarLength, "id", strings.Repeat("ü", 127))
	f("", "id", strings.Repeat("x", 126), "empty", "")
	f(valid.ExemplarLength, "a", strings.Repeat("x", 63), "b", strings.Repeat("x", 64))
	f(valid.ExemplarLabels, "", "x")
	f(valid.ExemplarLabels, "a", "1", "b", "2", "a", "3")
	f("", "a", "1", "a", "")
	f(valid.ExemplarLabels, "a", "\xff")
	f(valid.ExemplarLabels, "\xff", "a")
}
