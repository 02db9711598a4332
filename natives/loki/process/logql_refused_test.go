//go:build nologql

package process_test

import "testing"

// TestLogQLRefused: without LogQL the stage is known, and says why it is of no use.
func TestLogQLRefused(t *testing.T) {
	n := newLab(t)
	n.reload("stage.logql {\n\tpipeline = `| json`\n}")
	const want = "c.alloy:3:13: stage.logql.pipeline: cannot use pipeline: this weir was built without LogQL (-tags nologql): use stage.json, stage.match and others in its place, or a weir that was built with it"
	if n.mistakes != want {
		t.Errorf("got %s", n.mistakes)
	}
}
