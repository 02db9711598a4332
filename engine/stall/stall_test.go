package stall_test

import (
	"sync"
	"testing"
	"time"

	"github.com/weir-run/weir/engine/clock/clocktest"
	"github.com/weir-run/weir/engine/stall"
)

func TestOverdue(t *testing.T) {
	clk := clocktest.New(time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC))
	w := stall.New(clk)
	want := func(want ...string) {
		t.Helper()
		got := w.Overdue(clk.Now())
		if len(got) != len(want) {
			t.Fatalf("got %v, want %v", got, want)
		}
		for i, c := range got {
			if c.String() != want[i] {
				t.Errorf("got %q, want %q", c, want[i])
			}
		}
	}
	send := w.Begin("send", time.Minute)
	clk.Advance(time.Second)
	var again stall.Op
	w.Start(&again, "hook metrics", time.Second)
	build := w.Begin("build", 0)
	want()
	clk.Advance(time.Minute)
	want(
		"send has not returned since 2025-01-01T00:00:00Z (limit 1m0s)",
		"hook metrics has not returned since 2025-01-01T00:00:01Z (limit 1s)",
		"build has not returned since 2025-01-01T00:00:01Z (limit 15s)")
	send.End()
	send.End() // does nothing
	again.Next("hook logs", time.Hour)
	want("build has not returned since 2025-01-01T00:00:01Z (limit 15s)")
	build.End()
	again.End()
	want()
	w.Start(&again, "hook metrics", time.Second)
	clk.Advance(2 * time.Second)
	want("hook metrics has not returned since 2025-01-01T00:01:01Z (limit 1s)")
	again.End()
	if all := w.All(); len(all) != 0 {
		t.Errorf("left: %v", all)
	}
}

// A node without a Watch is one in a test of a component.
func TestNil(t *testing.T) {
	var w *stall.Watch
	op := w.Begin("send", time.Second)
	op.Next("wait", time.Second)
	op.End()
	w.Start(new(stall.Op), "send", time.Second)
	if got := w.All(); got != nil {
		t.Errorf("got %v", got)
	}
}

func TestConcurrent(t *testing.T) {
	w := stall.New(clocktest.New(time.Unix(0, 0)))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			var op stall.Op
			for range 1000 {
				w.Start(&op, "a", time.Second)
				b := w.Begin("b", time.Second)
				op.End()
				w.All()
				b.End()
			}
		})
	}
	wg.Wait()
	if all := w.All(); len(all) != 0 {
		t.Errorf("left: %v", all)
	}
}

func TestStartDoesNotAllocate(t *testing.T) {
	w := stall.New(clocktest.New(time.Unix(0, 0)))
	var op stall.Op
	if n := testing.AllocsPerRun(100, func() { w.Start(&op, "a", time.Second); op.End() }); n != 0 {
		t.Errorf("%v allocations a call", n)
	}
}
