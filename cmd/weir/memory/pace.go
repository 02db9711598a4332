package memory

import (
	"context"
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// The garbage that may wait, in percent of what lives.
const (
	startPercent = 15
	minPercent   = 10
	maxPercent   = 100 // Go's own
)

const (
	// worth is the CPU time a second that a byte of memory is worth: 10 µs for
	// a megabyte, or 100 MB for a thousandth of a core.
	worth = 10e-6 / 1e6
	// marking is the CPU time that it takes to mark a byte of memory that may
	// hold pointers. Measured were 1.2 ns with 450,000 objects in 20 MB. It is
	// not measured again as weir runs: on a busy machine that gives the others'
	// load.
	marking = 1e-9
	// tooMuch is the CPU time a second that collecting may take until the next
	// look, patience how many seconds beyond that are borne, and urgent how many
	// bytes may wait from then on, if they are no more than what lives.
	tooMuch  = 0.05
	patience = 0.02
	urgent   = 24e6
)

// reading is what a pacer looks at.
type reading struct {
	collected float64 // how often, since the start
	allocated float64 // bytes, since the start
	grown     float64 // bytes that a collection found alive, with stacks and globals: what the percentage is of
	scanned   float64 // bytes of those that may hold pointers
}

// pacer finds the percentage at which memory and CPU time together cost least.
// A heap of which s bytes are scanned, and that gets g bytes of garbage a
// second, is collected g/h times a second when h bytes may wait: that costs
// marking·s·g/h CPU time, and h bytes. The sum is least where both are the same,
// at h² = marking·s·g/worth.
//
// Source: Kirisame, Shenoy, Panchekha, "Optimal heap limits for reducing browser
// memory use", https://arxiv.org/abs/2204.10455
type pacer struct {
	last    reading
	at      time.Time
	rate    float64 // bytes of garbage a second, smoothed; 0 before the first look
	percent int

	from   time.Time // before that nothing is a hurry
	step   reading   // the last reading of adjustAfterCollection
	stepAt time.Time
	debt   float64 // CPU seconds that collecting has cost beyond tooMuch
}

// adjustAfterCollection takes a reading after a collection and reports whether percent was
// changed: it rises at once when collecting costs too much, as it does when a
// collector of logs finds a backlog of files.
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

// adjust takes a reading and reports whether percent was changed. It rises by a
// quarter at most: a start, or a reload that brings a thousand targets, makes
// garbage for a moment only, and is the worst moment to let it wait.
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
		return false // setting it stops the world
	}
	p.percent = percent
	return true
}

// collections returns a channel that gets a value after a collection of
// garbage, unless it holds one still, until ctx ends. Who waits for it costs
// nothing while nothing is collected.
func collections(ctx context.Context) <-chan struct{} {
	c := make(chan struct{}, 1)
	var arm func()
	arm = func() {
		// What nobody holds is found by the next collection.
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

// readHeap reads this process's heap.
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
