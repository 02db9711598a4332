package batch_test

import (
	"testing"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/batch/batchtest"
)

// Labels that collide under every unseeded hash must not share a slot: n of
// them would cost n² comparisons.
func TestFlood(t *testing.T) {
	const n = 5000
	in := batch.NewInterner(0)
	hashes := map[uint64]bool{}
	seen := map[*batch.Series]bool{}
	for _, ls := range batchtest.Colliding(n) {
		s := in.Intern(ls, nil, epoch)
		hashes[s.Hash()], seen[s] = true, true
	}
	if len(seen) != n || in.Len() != n {
		t.Fatalf("%d label sets are %d handles, %d known", n, len(seen), in.Len())
	}
	if got := in.Longest(); got > 2 {
		t.Errorf("a look-up compares up to %d handles", got)
	}
	if len(hashes) < n-2 {
		t.Errorf("%d series have %d hashes", n, len(hashes))
	}
	in.Clear()
}
