package unix_test

import (
	"strings"
	"testing"
)

// The collectors' settings are no news at info.
func TestCollectorsAreQuiet(t *testing.T) {
	n, _ := mustBuild(t, arguments(t, "filesystem", "diskstats"))
	if logs := n.Logs(); strings.Contains(logs, "Parsed flag") {
		t.Errorf("logged at info:\n%s", logs)
	}
}
