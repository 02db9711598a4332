//go:build integration

package main

import (
	"bytes"
	"strings"
	"testing"
)

// TestReload is a short run: nothing is lost, and the levels return. Times are for
// `weirbench reload` on a machine that does nothing else.
func TestReload(t *testing.T) {
	t.Parallel()
	var out, errOut bytes.Buffer
	code := execute(t.Context(), []string{"reload", "--weir=" + builtWeir(t), "--saves=50", "--targets=5", "--series=300", "--lines=500",
		"--configs=500", "--changes=5", "--dead-for=10s", "--patience=2m"}, strings.NewReader(""), &out, &errOut)
	t.Logf("%s%s", &out, &errOut)
	if code != 0 || strings.Count(out.String(), "| met |") < 14 {
		t.Errorf("exit code %d", code)
	}
}
