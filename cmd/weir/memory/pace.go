package memory

import (
	"math"
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
	// look, and urgent how many bytes may wait before that at most.
	tooMuch = 0.05
	urgent  = 24e6
)

// reading is what a pacer looks at.
type reading struct {
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

	step   reading // that hurry had last
	stepAt time.Time
	late   int // readings in turn at which collecting cost too much
}

// hurry takes a reading between two looks and reports whether percent was
// changed: it rises at once when collecting costs too much, as it does when a
// collector of logs finds a backlog of files.
func (p *pacer) hurry(r reading, now time.Time) (changed bool) {
	last, seconds := p.step, now.Sub(p.stepAt).Seconds()
	first := p.stepAt.IsZero()
	p.step, p.stepAt = r, now
	if first || seconds <= 0 || r.grown <= 0 {
		return false
	}
	rate := max(0, r.allocated-last.allocated-(r.grown-last.grown)) / seconds
	wait := marking * r.scanned * rate / tooMuch
	percent := min(int(100*min(wait, urgent)/r.grown), maxPercent)
	if percent <= p.percent {
		p.late = 0
		return false
	}
	if p.late++; p.late < 2 {
		return false // what comes once and is over
	}
	p.late, p.percent, p.rate = 0, percent, max(p.rate, rate)
	return true
}

// look takes a reading and reports whether percent was changed. It rises by a
// quarter at most: a start, or a reload that brings a thousand targets, makes
// garbage for a moment only, and is the worst moment to let it wait.
func (p *pacer) look(r reading, now time.Time) (changed bool) {
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

func setPercent(p int) { debug.SetGCPercent(p) }

// readHeap reads this process's heap.
func readHeap() reading {
	s := []metrics.Sample{
		{Name: "/gc/heap/allocs:bytes"},
		{Name: "/gc/heap/live:bytes"},
		{Name: "/gc/scan/stack:bytes"},
		{Name: "/gc/scan/globals:bytes"},
		{Name: "/gc/scan/total:bytes"},
	}
	metrics.Read(s)
	at := func(i int) float64 { return float64(s[i].Value.Uint64()) }
	return reading{allocated: at(0), grown: at(1) + at(2) + at(3), scanned: at(4)}
}
