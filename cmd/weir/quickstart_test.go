package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-run/weir/cmd/weir/quickstart"
)

// TestQuickstartIsFine: the quickstart of every system is a valid config.
func TestQuickstartIsFine(t *testing.T) {
	for goos, blocks := range map[string]string{"linux": "6 blocks", "darwin": "5 blocks"} {
		path := filepath.Join(t.TempDir(), "quickstart.alloy")
		if err := os.WriteFile(path, []byte(quickstart.Text(goos)), 0o600); err != nil {
			t.Fatal(err)
		}
		var out, errs bytes.Buffer
		if code := execute(t.Context(), &terminal{out: &out, err: &errs}, []string{"check", path}); code != exitOK {
			t.Errorf("%s: exit code %d:\n%s", goos, code, errs.String())
		}
		if !strings.Contains(out.String(), "is fine: "+blocks) {
			t.Errorf("%s: got %q, want %s", goos, out.String(), blocks)
		}
	}
}
