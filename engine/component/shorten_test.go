package component_test

import (
	"strings"
	"testing"

	"github.com/weir-run/weir/engine/component"
)

func TestShorten(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		if got := component.Shorten(text); got != want {
			t.Errorf("got %d bytes, want %d", len(got), len(want))
		}
	}
	f("", "")
	f("short", "short")
	f(strings.Repeat("x", 8<<10), strings.Repeat("x", 8<<10))
	f(strings.Repeat("x", 60_000), strings.Repeat("x", 8<<10)+"… (60000 bytes)")
	f(strings.Repeat("x", 8<<10-1)+"é", strings.Repeat("x", 8<<10-1)+"… (8193 bytes)")
}
