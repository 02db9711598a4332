package journal_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/engine/clock/clocktest"
	"github.com/weir-run/weir/engine/journal"
)

// several takes all blocks of a shard into flight and returns them.
func several(t *testing.T, j *journal.Journal, shard int) (all []journal.Block) {
	t.Helper()
	b, ok := j.TryNext(shard)
	for ok {
		all = append(all, b)
		b, ok = j.TryAfter(b, nil)
	}
	return all
}

func payloads(bs []journal.Block) (ps []string) {
	for _, b := range bs {
		ps = append(ps, string(b.Payload))
	}
	return ps
}

func TestSeveralBlocksInFlight(t *testing.T) {
	dir := t.TempDir()
	o := options(clocktest.New(start))
	j := open(t, dir, o)
	var want []string
	for i := range 300 { // more than a shard keeps in memory
		put(t, j, 0, fmt.Sprint(i))
		want = append(want, fmt.Sprint(i))
		put(t, j, 1, "of the other shard")
	}
	all := several(t, j, 0)
	if diff := cmp.Diff(want, payloads(all)); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	// The other blocks stay in flight, in order, when one of them is done.
	j.Ack(all[1])
	j.Drop(all[3], "rejected")
	if diff := cmp.Diff([]string{"0", "2", "4"}, payloads(several(t, j, 0))[:3]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	j.Ack(all[3]) // a second Ack of a block has no effect
	if st := j.Stats(); st.Blocks != 598 || st.DroppedBlocks["rejected"] != 1 {
		t.Errorf("got %+v", st)
	}
	// The cursor is at the first block that is not done.
	j.Maintain()
	j.Kill()
	j = open(t, dir, o)
	defer j.Close()
	if diff := cmp.Diff(want, drain(t, j, 0)); diff != "" {
		t.Errorf("after a restart (-want +got):\n%s", diff)
	}
}

func TestAfterWaits(t *testing.T) {
	j := open(t, t.TempDir(), options(clocktest.New(start)))
	defer j.Close()
	put(t, j, 0, "one")
	one, err := j.Next(t.Context(), 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := j.After(ended, one, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that ctx ended", err)
	}
	got := make(chan string)
	go func() {
		b, _ := j.After(t.Context(), one, nil)
		got <- string(b.Payload)
	}()
	put(t, j, 0, "two")
	if s := <-got; s != "two" {
		t.Errorf("got %q", s)
	}
}

func TestAfterStopsAtABarrier(t *testing.T) {
	j := open(t, t.TempDir(), options(clocktest.New(start)))
	defer j.Close()
	put(t, j, 0, "one")
	put(t, j, 0, "two")
	j.Barrier()
	put(t, j, 0, "three")
	all := several(t, j, 0)
	if diff := cmp.Diff([]string{"one", "two"}, payloads(all)); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	j.Ack(all[0])
	if b, ok := j.TryAfter(all[1], nil); ok {
		t.Errorf("got %q before all below the barrier was done", b.Payload)
	}
	j.Ack(all[1])
	if diff := cmp.Diff([]string{"three"}, drain(t, j, 0)); diff != "" {
		t.Error(diff)
	}
}

func TestBoundsReachEveryBlockInFlight(t *testing.T) {
	c := clocktest.New(start)
	o := options(c)
	o.Limits.MaxAge = time.Minute
	j := open(t, t.TempDir(), o)
	defer j.Close()
	put(t, j, 0, "old")
	c.Advance(time.Minute)
	put(t, j, 0, "young")
	all := several(t, j, 0)
	c.Advance(time.Second)
	if j.Keeps(all[0]) || !j.Keeps(all[1]) {
		t.Errorf("keeps %v and %v, want the young one", j.Keeps(all[0]), j.Keeps(all[1]))
	}
	if diff := cmp.Diff(map[string]int64{"max_age": 1}, j.Stats().DroppedBlocks); diff != "" {
		t.Error(diff)
	}
	j.Ack(all[1])
	if st := j.Stats(); st.Blocks != 0 {
		t.Errorf("got %+v", st)
	}
}
