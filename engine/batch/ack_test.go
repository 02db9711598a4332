package batch_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weir-run/weir/engine/batch"
)

// counted returns an Ack and the number of times that it was done.
func counted() (*batch.Ack, *atomic.Int32) {
	n := new(atomic.Int32)
	return batch.NewAck(func() { n.Add(1) }), n
}

func TestAck(t *testing.T) {
	f := func(what string, n *atomic.Int32, want int32) {
		t.Helper()
		if got := n.Load(); got != want {
			t.Errorf("%s: done %d times, want %d", what, got, want)
		}
	}

	r, n := counted()
	f("before it is accepted", n, 0)
	r.Accepted()
	f("accepted", n, 1)

	r, n = counted()
	h, h2 := r.Hold(nil), r.Hold(nil)
	r.Accepted()
	h.Release()
	h.Release()
	f("with a hold that is left", n, 0)
	h2.Release()
	f("with all released", n, 1)

	// Rows kept from one batch are sent with the next batch.
	first, firstDone := counted()
	h = first.Hold(nil)
	first.Accepted()
	second, secondDone := counted()
	second.Adopt(h)
	kept := second.Hold(nil)
	second.Accepted()
	f("the first, while the second is kept", firstDone, 0)
	kept.Release()
	f("the second", secondDone, 1)
	f("the first, with the second", firstDone, 1)

	third, thirdDone := counted()
	h = third.Hold(nil)
	third.Accepted()
	second.Adopt(h) // is done already
	f("adopted too late", thirdDone, 1)

	var none *batch.Ack
	none.Adopt(none.Hold(nil))
	none.Hold(nil).Release()
	none.Accepted()
	none.Flush()
}

func TestAckFlush(t *testing.T) {
	r, _ := counted()
	var flushed []string
	keep := func(name string) *batch.Hold { return r.Hold(func() { flushed = append(flushed, name) }) }
	keep("gone").Release()
	keep("kept")
	r.Hold(nil)
	r.Flush()
	keep("late")
	if len(flushed) != 2 || flushed[0] != "kept" || flushed[1] != "late" {
		t.Errorf("flushed %q, want what is kept, and what comes later", flushed)
	}
}

// TestAckSideBySide: branches hold and release concurrently.
func TestAckSideBySide(t *testing.T) {
	for range 200 {
		r, n := counted()
		var wg sync.WaitGroup
		for range 4 {
			h := r.Hold(nil)
			wg.Go(h.Release)
		}
		wg.Go(r.Flush)
		r.Accepted()
		wg.Wait()
		if n.Load() != 1 {
			t.Fatalf("done %d times, want once", n.Load())
		}
	}
}

// TestAckTravels: every batch derived from a batch has its Ack.
func TestAckTravels(t *testing.T) {
	b := newRandom(3).logs(6)
	b.Ack = batch.NewAck(nil)
	become := append([]*batch.Stream(nil), b.Stream...)
	become[2] = nil
	for name, got := range map[string]*batch.Logs{
		"Rows":   b.Rows([]int{0, 3}),
		"Select": b.Select(func(i int) bool { return i > 1 }),
		"Along":  b.Along(7),
		"Change": batch.NewChange(b.Stream, become).ApplyLogs(b),
		"Join":   batch.JoinLogs(1, 0, []*batch.Logs{b.Rows([]int{0}), b.Rows([]int{3})}),
	} {
		if got.Ack != b.Ack {
			t.Errorf("%s lost the acknowledgement", name)
		}
	}
	if got := batch.JoinLogs(1, 0, []*batch.Logs{b, newRandom(4).logs(2)}); got.Ack != nil {
		t.Error("a batch of several sources has the acknowledgement of one")
	}
}
