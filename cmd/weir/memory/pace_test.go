package memory

import (
	"math"
	"runtime"
	"runtime/debug"
	"slices"
	"testing"
	"time"
)

func TestPace(t *testing.T) {
	const mb = 1e6
	// steady returns the percentage at which a pacer settles.
	steady := func(garbage, grown, scanned float64) int {
		now := time.Unix(0, 0)
		r := reading{grown: grown, scanned: scanned}
		p := pacer{last: r, at: now, percent: startPercent}
		for range 30 {
			now = now.Add(period)
			r.allocated += garbage * period.Seconds()
			p.adjust(r, now)
		}
		return p.percent
	}
	f := func(what string, garbage, grown, scanned float64, want int) {
		t.Helper()
		if got := steady(garbage, grown, scanned); math.Abs(float64(got-want)) > float64(want)/10 {
			t.Errorf("%s: %d %%, want about %d", what, got, want)
		}
	}
	f("100,000 series", 0.5*mb, 30*mb, 6*mb, 57)
	f("a million series", 0.6*mb, 250*mb, 60*mb, 24)
	f("a million series that make hardly any garbage", 0.05*mb, 250*mb, 60*mb, minPercent)
	f("nearly idle", 0.02*mb, 6*mb, 4*mb, 47)
	f("scripts that make much garbage", 50*mb, 30*mb, 6*mb, maxPercent)
	f("nothing at all", 0, 6*mb, 4*mb, minPercent)
}

// TestPaceCostsAsSaid checks that the percentage is the optimum for worth:
// slightly more and slightly less both cost more.
func TestPaceCostsAsSaid(t *testing.T) {
	f := func(garbage, grown, scanned float64) {
		t.Helper()
		cost := func(percent float64) float64 {
			wait := grown * percent / 100
			return marking*scanned*garbage/wait + worth*wait
		}
		now := time.Unix(0, 0)
		r := reading{grown: grown, scanned: scanned}
		p := pacer{last: r, at: now, percent: 99}
		r.allocated = garbage
		p.adjust(r, now.Add(time.Second))
		got := float64(p.percent)
		if cost(got) > cost(got*1.2) || cost(got) > cost(got/1.2) {
			t.Errorf("%.0f %% costs %g, 20 %% more %g, 20 %% less %g", got, cost(got), cost(got*1.2), cost(got/1.2))
		}
	}
	f(0.5e6, 30e6, 6e6)
	f(0.6e6, 250e6, 60e6)
	f(2e6, 60e6, 20e6)
}

func TestPaceLooks(t *testing.T) {
	const garbage, grown = 1e6, 60e6
	// after returns the percentages before and after another reading of a settled
	// pacer.
	after := func(seconds time.Duration, garbageNow, grownNow float64) (was, is int, changed bool) {
		now := time.Unix(0, 0)
		r := reading{grown: grown, scanned: 12e6}
		p := pacer{last: r, at: now, percent: startPercent}
		step := func(seconds time.Duration, garbage, grown float64) bool {
			now = now.Add(seconds * time.Second)
			r.allocated += garbage*float64(seconds) + grown - r.grown
			r.grown = grown
			return p.adjust(r, now)
		}
		for range 30 {
			step(10, garbage, grown)
		}
		was = p.percent
		changed = step(seconds, garbageNow, grownNow)
		return was, p.percent, changed
	}
	f := func(what string, seconds time.Duration, garbage, grown float64, want string) {
		t.Helper()
		was, is, changed := after(seconds, garbage, grown)
		got := "stays"
		switch {
		case is > was*5/4+1:
			got = "leaps"
		case is > was:
			got = "rises"
		case is < was:
			got = "falls"
		}
		if got != want || changed != (is != was) {
			t.Errorf("%s: %d %% %s to %d, changed %t; want that it %s", what, was, got, is, changed, want)
		}
	}
	f("a tenth more garbage", 10, 1.1*garbage, grown, "stays")
	f("a tenth less", 10, 0.9*garbage, grown, "stays")
	f("a burst", 10, 100*garbage, grown, "rises")
	f("a minute of silence", 60, 0, grown, "falls")
	f("a thousand targets more", 10, garbage, 4*grown, "falls") // live memory is not garbage
	f("a clock that stands still", 0, garbage, grown, "stays")
	f("a clock that goes back", -5, garbage, grown, "stays")
}

// TestPaceHurries checks that a large amount of garbage does not wait for the
// next reading if it continues, and that the percentage of a large heap does not
// change.
func TestPaceHurries(t *testing.T) {
	const mb, step = 1e6, 30 * time.Millisecond
	// f checks the percentages after steps with these amounts of garbage per second,
	// in which the heap is collected as often as the percentage implies.
	f := func(what string, after time.Duration, garbage []float64, grown, scanned float64, want ...int) {
		t.Helper()
		now := time.Unix(0, 0)
		r := reading{grown: grown, scanned: scanned}
		p := pacer{last: r, at: now, percent: startPercent, from: now.Add(first)}
		now = now.Add(after)
		var waits float64
		var got []int
		for _, g := range garbage {
			for range step / time.Millisecond {
				now = now.Add(time.Millisecond)
				if waits += g / 1000; waits < grown*float64(p.percent)/100 {
					continue
				}
				waits = 0
				r.collected++
				was := p.percent
				if changed := p.adjustAfterCollection(r, now); changed != (p.percent != was) {
					t.Errorf("%s: changed is %t, %d to %d", what, changed, was, p.percent)
				}
			}
			got = append(got, p.percent)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", what, got, want)
		}
	}
	second := func(garbage ...float64) []float64 { return append(garbage, make([]float64, 30)...) }
	same := slices.Repeat([]int{startPercent}, 64)
	f("a backlog of logs", time.Second, []float64{100 * mb, 100 * mb, 100 * mb}, 10*mb, 8*mb, startPercent, maxPercent, maxPercent)
	f("a start", 0, []float64{100 * mb, 100 * mb, 100 * mb}, 10*mb, 8*mb, same[:3]...)
	f("moments", time.Second, slices.Concat(second(100*mb), second(100*mb)), 10*mb, 8*mb, same[:62]...)
	f("what is bearable", time.Second, slices.Repeat([]float64{5 * mb}, 64), 30*mb, 6*mb, same...)
	f("a million series", time.Second, slices.Repeat([]float64{100 * mb}, 64), 250*mb, 60*mb, same...)
	f("a heap of some size", time.Second, slices.Repeat([]float64{100 * mb}, 64), 80*mb, 20*mb, append(slices.Clone(same[:11]), slices.Repeat([]int{30}, 53)...)...)
}

// TestCollections checks that each collection is reported.
func TestCollections(t *testing.T) {
	c := collections(t.Context())
	for range 3 {
		for told := false; !told; {
			runtime.GC()
			select {
			case <-c:
				told = true
			default:
			}
		}
	}
}

// TestRuntimeHeap checks that the runtime has the metrics that are read and
// accepts the settings.
func TestRuntimeHeap(t *testing.T) {
	was := debug.SetGCPercent(77)
	defer debug.SetGCPercent(was)
	runtime.GC()
	r := readHeap()
	if r.collected <= 0 || r.allocated <= 0 || r.grown <= 0 || r.scanned <= 0 || r.grown > r.allocated+64e6 {
		t.Errorf("the heap reads %+v", r)
	}
	setPercent(66)
	if got := debug.SetGCPercent(77); got != 66 {
		t.Errorf("%d %% are set, want 66", got)
	}
}
