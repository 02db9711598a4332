package memory

import (
	"context"
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// The limits for garbage, in percent of the live heap.
const (
	startPercent = 15
	minPercent   = 10
	maxPercent   = 100 // the default of Go
)

const (
	// worth is the CPU time per second that a byte of memory is worth: 10 µs for
	// a megabyte, or a thousandth of a core for 100 MB.
	worth = 10e-6 / 1e6
	// marking is the CPU time for marking a byte of memory that may contain
	// pointers. The measured value was 1.2 ns with 450,000 objects in 20 MB. It
	// is not measured while weir runs, because the result would include the load
	// of a busy machine.
	marking = 1e-9
	// tooMuch is the CPU time per second that collections may take until the next
	// reading, patience is the number of CPU seconds by which they may exceed it,
	// and urgent is the number of bytes of garbage that are allowed afterwards,
	// at most the size of the live heap.
	tooMuch  = 0.05
	patience = 0.02
	urgent   = 24e6
)

// reading contains the values that a pacer reads.
type reading struct {
	collected float64 // number of collections since the start
	allocated float64 // bytes since the start
	grown     float64 // bytes that the last collection found alive, with stacks and globals: the basis of the percentage
	scanned   float64 // bytes of grown that may contain pointers
}

// pacer finds the percentage at which memory and CPU time together cost least. If
// s bytes of a heap are scanned, g bytes of garbage are created per second, and h
// bytes of garbage are allowed, there are g/h collections per second. They cost
// marking·s·g/h CPU time, and h bytes of memory. The sum is minimal where both
// costs are equal, at h² = marking·s·g/worth.
//
// Source: Kirisame, Shenoy, Panchekha, "Optimal heap limits for reducing browser
// memory use", https://arxiv.org/abs/2204.10455
type pacer struct {
	last    reading
	at      time.Time
	rate    float64 // bytes of garbage per second, smoothed; 0 before the first reading
	percent int

	from   time.Time // nothing is urgent before this time
	step   reading   // the last reading of adjustAfterCollection
	stepAt time.Time
	debt   float64 // CPU seconds by which collections exceeded tooMuch
}

// adjustAfterCollection takes a reading after a collection and reports whether
// percent changed. It increases percent immediately if collections cost too much,
// for example if a log collector finds a backlog of files.
func (p *pacer) adjustAfterCollection(r reading, now time.Time) (changed bool) {
	if now.Before(p.from) {
		return false
	}
	if !p.stepAt.IsZero() {
		p.debt += marking*r.scanned*(r.collected-p.step.collected) - tooMuch*now.Sub(p.stepAt).Seconds()
	}
	p.step, p.stepAt = r, now
	if p.debt = max(0, p.debt); p.debt < patience || r.grown <= 0 {
		return false
	}
	p.debt = 0
	percent := min(int(100*urgent/r.grown), maxPercent)
	if percent <= p.percent {
		return false
	}
	p.percent = percent
	return true
}

// adjust takes a reading and reports whether percent changed. It increases by at
// most a quarter: a start, or a reload that adds a thousand targets, creates
// garbage only for a moment, and is the worst time to let it accumulate.
func (p *pacer) adjust(r reading, now time.Time) (changed bool) {
	seconds := now.Sub(p.at).Seconds()
	if seconds <= 0 || r.grown <= 0 {
		return false
	}
	rate := max(0, r.allocated-p.last.allocated-(r.grown-p.last.grown)) / seconds
	if p.rate > 0 {
		rate = p.rate + (rate-p.rate)/4
	}
	p.rate, p.last, p.at = rate, r, now
	wait := math.Sqrt(marking / worth * r.scanned * p.rate)
	percent := min(max(int(100*wait/r.grown), minPercent), maxPercent, p.percent+(p.percent+3)/4)
	if off := percent - p.percent; off*off*100 <= p.percent*p.percent {
		return false // setting the percentage stops the world
	}
	p.percent = percent
	return true
}

// collections returns a channel that gets a value after each garbage collection
// until ctx ends. Collections are merged while the channel is full. Waiting on
// the channel costs nothing while there are no collections.
func collections(ctx context.Context) <-chan struct{} {
	c := make(chan struct{}, 1)
	var arm func()
	arm = func() {
		// The next collection finds an object without references.
		runtime.AddCleanup(new([4]uint64), func(arm func()) {
			select {
			case c <- struct{}{}:
			default:
			}
			if ctx.Err() == nil {
				arm()
			}
		}, arm)
	}
	arm()
	return c
}

func setPercent(p int) { debug.SetGCPercent(p) }

// readHeap reads the heap of this process.
func readHeap() reading {
	s := []metrics.Sample{
		{Name: "/gc/cycles/total:gc-cycles"},
		{Name: "/gc/heap/allocs:bytes"},
		{Name: "/gc/heap/live:bytes"},
		{Name: "/gc/scan/stack:bytes"},
		{Name: "/gc/scan/globals:bytes"},
		{Name: "/gc/scan/total:bytes"},
	}
	metrics.Read(s)
	at := func(i int) float64 { return float64(s[i].Value.Uint64()) }
	return reading{collected: at(0), allocated: at(1), grown: at(2) + at(3) + at(4), scanned: at(5)}
}
