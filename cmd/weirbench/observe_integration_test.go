//go:build integration

package main

import (
	"bytes"
	"strings"
	"testing"
)

// TestObserve is a short run: each observer gets its data. Costs are for `weirbench observe` on
// a machine that does nothing else.
func TestObserve(t *testing.T) {
	t.Parallel()
	var out, errOut bytes.Buffer
	code := execute(t.Context(), []string{"observe", "--weir=" + builtWeir(t), "--targets=2", "--series=100", "--pages=5", "--rounds=1", "--measure=1s"}, strings.NewReader(""), &out, &errOut)
	t.Logf("%s%s", &out, &errOut)
	if code != 0 || strings.Count(out.String(), "\n| ") != 6 {
		t.Errorf("exit code %d", code)
	}
}
