package js

import (
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/dop251/goja"
)

// TestALookIsAnAnswer: a VM that adds up what it holds is not stopped because it
// did not answer, however long it takes and whatever others allocate meanwhile.
func TestALookIsAnAnswer(t *testing.T) {
	const limit = 1 << 20
	var h heap
	var flag atomic.Uint32
	h.start(limit, "")
	now := time.Unix(0, 0)
	tick := func(allocs uint64) error {
		return h.tick(now, &memoryNow{allocs: allocs, alive: allocs, objects: allocs}, &flag)
	}
	if err := tick(0); err != nil {
		t.Fatal(err)
	}
	err := h.measureHeld(func(int) int {
		for range 2 * maxAsked {
			if err := tick(1 << 30); err != nil {
				t.Error(err)
			}
		}
		return 0
	})
	if err != nil {
		t.Fatal(err)
	}
	h.after.Store(0)
	for range maxAsked { // looked, and asked once
		if err := tick(1 << 30); err != nil {
			t.Fatal(err)
		}
	}
	for range maxAsked {
		err = tick(2 << 30)
	}
	if err == nil {
		t.Error("a VM that does not look was not stopped")
	}
}

// TestHeldBesideAnInterrupt is for the race detector.
func TestHeldBesideAnInterrupt(t *testing.T) {
	rt := goja.New()
	s := &sandbox{rt: rt}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 100 {
			rt.Interrupt(t)
		}
	}()
	for range 100 {
		if n := s.held(64 << 20); n < int(unsafe.Sizeof(*rt)) {
			t.Errorf("held %d bytes", n)
		}
	}
	<-done
}
