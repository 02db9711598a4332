package js

import (
	"fmt"
	"runtime/metrics"
	"sync/atomic"
	"time"

	"github.com/weir-run/weir/scripting"
)

// heap bounds what one VM holds while a call runs. Go does not count the
// memory of a VM, but of the process. So the watchdog looks at that, and when
// the process has allocated as much as the VM would need to be over its limit,
// the VM adds up what it holds, at the next native function: only the goroutine
// that it runs on can. A neighbour that allocates much makes that happen more
// often, and is not taken for the VM.
//
// A script that calls no function but its own never comes to that. If what is
// alive in the process grew by more than the limit as well, it is stopped.
type heap struct {
	limit   int64
	setting string // what a message says of where limit was set

	known atomic.Int64 // what the VM held at the last look

	// The watchdog's.
	seen  bool
	base  memoryNow // of the process, when room was last known
	room  uint64    // bytes it may allocate until the VM is looked at
	asked int       // ticks since a look was asked for; 0: none is
	// The VM's, for the watchdog.
	after  atomic.Int64 // Unix ns when it may be looked at again
	looked atomic.Bool
	// looking says that the VM is at it, which may take many ticks.
	looking atomic.Bool
}

const (
	// heapUrgent is what the process may allocate before the VM is looked at
	// although the last look took long.
	heapUrgent = 128 << 20
	// heapShare is the share of time that looking at the VM may take: a tenth.
	heapShare = 10
	// maxAsked is for how many ticks a VM may leave unanswered that it is to look
	// at what it holds.
	maxAsked = 2
)

// memoryNow is what the process has allocated, and what of it is in use.
type memoryNow struct {
	samples [3]metrics.Sample
	// allocs counts all that was ever allocated, alive is what the last garbage
	// collection found in use, objects that and what was allocated since.
	allocs, alive, objects uint64
}

func (m *memoryNow) read() {
	m.samples[0].Name = "/gc/heap/allocs:bytes"
	m.samples[1].Name = "/gc/heap/live:bytes"
	m.samples[2].Name = "/memory/classes/heap/objects:bytes"
	metrics.Read(m.samples[:])
	m.allocs, m.alive, m.objects = m.samples[0].Value.Uint64(), m.samples[1].Value.Uint64(), m.samples[2].Value.Uint64()
}

// start begins a call.
func (h *heap) start(limit int64, setting string) {
	h.limit, h.setting, h.seen, h.asked = limit, setting, false, 0
	h.after.Store(0)
	h.looked.Store(false)
}

// tick asks for a look by setting flag, or returns an error when the VM does
// not look and what the process holds has grown too much.
func (h *heap) tick(now time.Time, m *memoryNow, flag *atomic.Uint32) error {
	switch {
	case h.limit == 0:
		return nil
	case !h.seen:
		h.seen, h.base, h.room = true, *m, h.next()/2 // what was allocated before is not known
		return nil
	case h.looked.Swap(false):
		h.base, h.room, h.asked = *m, h.next(), 0
		return nil
	case h.looking.Load():
		return nil
	}
	n := m.allocs - h.base.allocs
	if n < h.room || n < heapUrgent && now.UnixNano() < h.after.Load() {
		return nil
	}
	flag.Or(flagLook)
	h.asked++
	limit := uint64(h.limit)
	if h.asked > maxAsked && m.alive > h.base.alive+limit || h.asked > 1 && m.objects > h.base.objects+4*limit+heapUrgent {
		return h.limitError()
	}
	return nil
}

func (h *heap) limitError() error {
	return fmt.Errorf("%w: the call holds more than %s%s", scripting.ErrLimit, sizeText(h.limit), h.setting)
}

// measureHeld adds up what the VM holds.
func (h *heap) measureHeld(held func(limit int) int) error {
	if h.limit == 0 {
		return nil
	}
	h.looking.Store(true)
	defer h.looking.Store(false)
	began := time.Now()
	known := int64(held(int(h.limit)))
	h.known.Store(known)
	if known > h.limit {
		return h.limitError()
	}
	end := time.Now()
	h.after.Store(end.Add(heapShare * end.Sub(began)).UnixNano())
	h.looked.Store(true)
	return nil
}

// next is how much the VM lacks to its limit, and enough to be worth a look.
func (h *heap) next() uint64 { return uint64(max(h.limit-h.known.Load(), h.limit/8)) }

func sizeText(n int64) string {
	if n%(1<<20) == 0 {
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d bytes", n)
}
