package scrape

import (
	"testing"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/batch/batchtest"
)

// TestFlood: a target chooses its labels, but not their slots in the table.
func TestFlood(t *testing.T) {
	const n = 5000
	c := newCache()
	for i, ls := range batchtest.Colliding(n) {
		if got := c.labelled(batch.AppendLabels(nil, ls), nil); got != i {
			t.Fatalf("series %d is %d", i, got)
		}
	}
	// A look-up reads up to the next free slot.
	longest, run := 0, 0
	for _, s := range append(c.byLabels.slots, c.byLabels.slots...) {
		if run++; s == 0 {
			run = 0
		}
		longest = max(longest, run)
	}
	if longest > 1000 {
		t.Errorf("%d series take up to %d slots without a free one between them", n, longest)
	}
}
