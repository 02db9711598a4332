package journal_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/engine/clock/clocktest"
	"github.com/weir-run/weir/engine/journal"
)

// The delivered part of a block is not pending, and is not counted as dropped
// with the rest of the block.
func TestPartOfABlockIsDone(t *testing.T) {
	c := clocktest.New(start)
	dir := t.TempDir()
	o := options(c)
	o.Limits.MaxAge = time.Hour
	j := open(t, dir, o)
	if err := j.Append(journal.Block{Kind: 7, Samples: 10, Payload: []byte("a")}, journal.Block{Kind: 8, Samples: 5, Payload: []byte("b")}); err != nil {
		t.Fatal(err)
	}
	pending := func(want map[uint8]int64) {
		t.Helper()
		st := j.Stats()
		if diff := cmp.Diff(want, st.Kinds); diff != "" {
			t.Errorf("pending by kind (-want +got):\n%s", diff)
		}
		sum := int64(0)
		for _, n := range want {
			sum += n
		}
		if st.Samples != sum {
			t.Errorf("%d samples are pending, want %d", st.Samples, sum)
		}
	}
	a, _ := j.TryNext(0)
	pending(map[uint8]int64{7: 10, 8: 5})
	j.Done(a, 4)
	pending(map[uint8]int64{7: 6, 8: 5})
	j.Done(a, 100) // no more than the block has
	pending(map[uint8]int64{7: 0, 8: 5})
	j.Ack(a)
	j.Done(a, 1)
	pending(map[uint8]int64{7: 0, 8: 5})

	b, _ := j.TryNext(0)
	j.Done(b, 3)
	c.Advance(2 * time.Hour)
	if j.Keeps(b) {
		t.Fatal("the block did not expire")
	}
	pending(map[uint8]int64{7: 0, 8: 0})
	if diff := cmp.Diff(map[string]map[uint8]int64{"max_age": {8: 2}}, j.Stats().DroppedKinds); diff != "" {
		t.Errorf("dropped (-want +got):\n%s", diff)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}
