package scripting_test

import (
	"testing"

	"github.com/weir-run/weir/scripting"
)

func TestCamelCase(t *testing.T) {
	f := func(snake, camel string) {
		t.Helper()
		if got := scripting.CamelCase(snake); got != camel {
			t.Errorf("CamelCase(%q): got %q, want %q", snake, got, camel)
		}
		if got := scripting.SnakeCase(camel); got != snake {
			t.Errorf("SnakeCase(%q): got %q, want %q", camel, got, snake)
		}
	}
	f("name", "name")
	f("drop_where", "dropWhere")
	f("set_label", "setLabel")
	f("was_called_with", "wasCalledWith")
	f("sha256_hex", "sha256Hex")
	f("a_b_c", "aBC")
	f("_private", "_private")
	f("", "")
	// A digit has no upper case, so the name would be the same as one without _.
	if got := scripting.CamelCase("base_64"); got != "base64" {
		t.Errorf("got %q", got)
	}
}
