package scripting_test

import (
	"slices"
	"testing"

	"github.com/weir-run/weir/scripting"
)

func TestWordsAt(t *testing.T) {
	f := func(text string, wantPath []string, wantTyped string) {
		t.Helper()
		path, typed := scripting.WordsAt(text, ".:")
		if !slices.Equal(path, wantPath) || typed != wantTyped {
			t.Errorf("WordsAt(%q) = %q, %q, want %q, %q", text, path, typed, wantPath, wantTyped)
		}
	}
	f("", nil, "")
	f("x = ba", nil, "ba")
	f("batch:co", []string{"batch"}, "co")
	f("f(ctx.state.", []string{"ctx", "state"}, "")
	f("1 + ", nil, "")
	f("é.x", []string{""}, "x")
	f("batch[1].", []string{""}, "")
}
