//go:build integration

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSoak is a soak of some seconds: all samples arrive, and all faults occur.
func TestSoak(t *testing.T) {
	t.Parallel()
	weir, err := filepath.Abs(os.Getenv("WEIR"))
	if err != nil || os.Getenv("WEIR") == "" {
		t.Fatal("WEIR is not set: run `make integration`")
	}
	var out, errOut bytes.Buffer
	code := execute(t.Context(), []string{"soak", "--collector=weir=" + weir, "--targets=3", "--series=300", "--interval=2s", "--warmup=6s",
		"--measure=24s", "--every=700ms", "--max-growth=1000"}, strings.NewReader(""), &out, &errOut)
	if code != 0 || !strings.Contains(out.String(), "weir_script_errors_total") {
		t.Errorf("got %d and\n%s%s", code, &out, &errOut)
	}
}
