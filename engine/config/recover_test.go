package config_test

import (
	"io"
	"strings"
	"testing"

	"github.com/weir-run/weir/engine/config"
)

// FuzzRecover checks that the errors in any repaired text have valid positions
// and can be shown.
func FuzzRecover(f *testing.F) {
	f.Add("a {\n  v = [{\"b\" = \"x:1}]\n  w = [b.receiver]\n}\nb {}")
	f.Add("a \"x {\n  v = 1\n}\nb {}")
	f.Add("a {\n  v = [x:1\"]\n}")
	f.Add("a {\n  v = [{\"b\" = 1]\n  w = b]\n}")
	f.Fuzz(func(t *testing.T, text string) {
		_, ds := config.Parse(map[string]string{"c": text})
		lines := strings.Split(text, "\n")
		for _, d := range ds {
			if d.Line > len(lines) || d.Line > 0 && d.Col > len(lines[d.Line-1])+2 {
				t.Errorf("%q: %v is at a place that does not exist", text, d)
			}
		}
		if err := ds.Write(io.Discard, map[string]string{"c": text}, false); err != nil {
			t.Error(err)
		}
	})
}
