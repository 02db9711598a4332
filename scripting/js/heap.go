package js

import (
	"fmt"
	"runtime/metrics"
	"sync/atomic"
	"time"

	"github.com/weir-run/weir/scripting"
)

// heap limits the memory of one VM during a call. Go reports the memory of the
// process, not of a VM. The watchdog therefore monitors the allocations of the
// process. When the process has allocated as much as the VM would need to
// exceed its limit, the VM measures its own memory in the next native function,
// because only the goroutine that runs it can. If other parts of the process
// allocate much, this happens more often, but the VM is not blamed for it.
//
// A script that calls only its own functions never measures its memory. If the
// live memory of the process also grew by more than the limit, the script is
// stopped.
type heap struct {
	limit   int64
	setting string // description in messages of the setting for limit

	known atomic.Int64 // size of the VM at the last measurement

	// These belong to the watchdog.
	seen  bool
	base  memoryNow // of the process, when room was last computed
	room  uint64    // bytes that the process may allocate before the VM is measured
	asked int       // ticks since a measurement was requested; 0 if none is
	// The VM sets these for the watchdog.
	after  atomic.Int64 // Unix ns of the earliest next measurement
	looked atomic.Bool
	// looking means that the VM is measuring, which may take many ticks.
	looking atomic.Bool
}

const (
	// heapUrgent is how much the process may allocate before the VM is measured
	// even if the last measurement took long.
	heapUrgent = 128 << 20
	// heapShare limits the time for measuring the VM to a tenth of the total.
	heapShare = 10
	// maxAsked is the number of ticks for which a VM may ignore a request to
	// measure its memory.
	maxAsked = 2
)

// memoryNow is the total allocated memory of the process and its memory in use.
type memoryNow struct {
	samples [3]metrics.Sample
	// allocs is the total ever allocated, alive the live memory after the last
	// garbage collection, and objects the live memory plus later allocations.
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

// tick requests a measurement by setting flag, or returns an error if the VM
// does not measure and the memory of the process has grown too much.
func (h *heap) tick(now time.Time, m *memoryNow, flag *atomic.Uint32) error {
	switch {
	case h.limit == 0:
		return nil
	case !h.seen:
		h.seen, h.base, h.room = true, *m, h.next()/2 // earlier allocations are unknown
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

// measureHeld measures the memory of the VM.
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

// next returns how much the VM may still grow, at least enough to justify a
// measurement.
func (h *heap) next() uint64 { return uint64(max(h.limit-h.known.Load(), h.limit/8)) }

func sizeText(n int64) string {
	if n%(1<<20) == 0 {
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d bytes", n)
}
