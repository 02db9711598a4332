package lua

import (
	"fmt"
	"runtime/metrics"
	"time"

	"github.com/weir-run/weir/scripting"
)

// heap bounds what one VM holds while a call runs. Go does not count the
// memory of a VM, but of the process; so that is what is looked at now and
// then, and when the process has allocated as much as the VM would need to be
// over its limit, what the VM holds is added up. A neighbour that allocates
// much makes that happen more often, and is never taken for the VM.
type heap struct {
	limit   int64
	setting string // what a message says of where limit was set
	sample  [1]metrics.Sample
	looked  time.Time
	base    uint64    // bytes the process had allocated when room was last known
	room    uint64    // bytes it may allocate until the VM is looked at again
	after   time.Time // when that may be at the earliest, unless it is urgent
	known   int64     // what the VM held at the last look
}

const (
	// heapEvery is the time between looks at the process, of which one takes
	// about 0.5 µs.
	heapEvery = 200 * time.Microsecond
	// heapUrgent is what the process may allocate before the VM is looked at
	// although the last look took long.
	heapUrgent = 128 << 20
	// heapShare is the share of time that looking at the VM may take: a tenth.
	heapShare = 10
)

// start begins a call.
func (h *heap) start(limit int64) {
	h.sample[0].Name = "/gc/heap/allocs:bytes"
	h.limit, h.looked, h.after = limit, time.Time{}, time.Time{}
}

// check returns an error when what held adds up is over the limit.
func (h *heap) check(now time.Time, held func(limit int) int) error {
	if h.limit == 0 || now.Sub(h.looked) < heapEvery {
		return nil
	}
	first := h.looked.IsZero()
	h.looked = now
	metrics.Read(h.sample[:])
	allocs := h.sample[0].Value.Uint64()
	if first {
		h.base = allocs
		h.room = h.next() / 2 // what was allocated before this look is not known
		return nil
	}
	if n := allocs - h.base; n < h.room || n < heapUrgent && now.Before(h.after) {
		return nil
	}
	h.known = int64(held(int(h.limit)))
	if h.known > h.limit {
		return fmt.Errorf("%w: the call holds more than %s%s", scripting.ErrLimit, sizeText(h.limit), h.setting)
	}
	end := time.Now()
	h.looked = end
	h.after = end.Add(heapShare * end.Sub(now))
	h.base, h.room = allocs, h.next()
	return nil
}

// next is how much the VM lacks to its limit, and enough to be worth a look.
func (h *heap) next() uint64 { return uint64(max(h.limit-h.known, h.limit/8)) }

func sizeText(n int64) string {
	if n%(1<<20) == 0 {
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d bytes", n)
}
