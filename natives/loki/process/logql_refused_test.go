//go:build nologql

package process_test

import "testing"

// TestLogQLRefused: without LogQL, the stage exists and its error explains why it
// cannot be used.
func TestLogQLRefused(t *testing.T) {
	n := newHarness(t)
	n.reload("stage.logql {\n\tpipeline = `| json`\n}")
	const want = "c.alloy:3:13: stage.logql.pipeline: cannot use pipeline: this weir was built without LogQL (-tags nologql): use other stages, such as stage.json and stage.match, or a weir that was built with LogQL"
	if n.mistakes != want {
		t.Errorf("got %s", n.mistakes)
	}
}
