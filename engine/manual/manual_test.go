package manual_test

import (
	"strings"
	"testing"

	"github.com/weir-run/weir/engine/manual"
)

func TestWriteParagraph(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		var b strings.Builder
		manual.WriteParagraph(&b, "  ", text)
		if got := b.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	f("", "\n")
	f(" one\n two ", "  one two\n")
	most := strings.Repeat("é", manual.Width-2)
	f(most, "  "+most+"\n")
	f("a "+most+" b", "  a\n  "+most+"\n  b\n")
	f(most[:len(most)-2*len("é")]+" b c", "  "+most[:len(most)-2*len("é")]+" b\n  c\n")
	f(most+most+" b", "  "+most+most+"\n  b\n")
}
