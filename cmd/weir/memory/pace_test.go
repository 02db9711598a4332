package memory

import (
	"math"
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

func TestPace(t *testing.T) {
	const mb = 1e6
	// steady returns what a pacer settles at.
	steady := func(garbage, grown, scanned float64) int {
		now := time.Unix(0, 0)
		r := reading{grown: grown, scanned: scanned}
		p := pacer{last: r, at: now, percent: startPercent}
		for range 30 {
			now = now.Add(period)
			r.allocated += garbage * period.Seconds()
			p.look(r, now)
		}
		return p.percent
	}
	f := func(what string, garbage, grown, scanned float64, want int) {
		t.Helper()
		if got := steady(garbage, grown, scanned); math.Abs(float64(got-want)) > float64(want)/10 {
			t.Errorf("%s: %d %%, want about %d", what, got, want)
		}
	}
	f("100,000 series", 0.5*mb, 30*mb, 6*mb, 36)
	f("a million series", 0.6*mb, 250*mb, 60*mb, 15)
	f("a million series that make hardly any garbage", 0.05*mb, 250*mb, 60*mb, minPercent)
	f("nearly idle", 0.02*mb, 6*mb, 4*mb, 29)
	f("scripts that make much garbage", 50*mb, 30*mb, 6*mb, maxPercent)
	f("nothing at all", 0, 6*mb, 4*mb, minPercent)
}

// TestPaceCostsAsSaid holds that the percentage balances as worth says: a little
// more and a little less are both dearer.
func TestPaceCostsAsSaid(t *testing.T) {
	f := func(garbage, grown, scanned float64) {
		t.Helper()
		cost := func(percent float64) float64 {
			wait := grown * percent / 100
			return marking*scanned*garbage/wait + worth*wait
		}
		now := time.Unix(0, 0)
		p := pacer{at: now, percent: 99}
		p.look(reading{allocated: garbage, grown: grown, scanned: scanned}, now.Add(time.Second))
		got := float64(p.percent)
		if cost(got) > cost(got*1.2) || cost(got) > cost(got/1.2) {
			t.Errorf("%.0f %% costs %g, 20 %% more %g, 20 %% less %g", got, cost(got), cost(got*1.2), cost(got/1.2))
		}
	}
	f(0.5e6, 30e6, 6e6)
	f(0.6e6, 250e6, 60e6)
	f(2e6, 60e6, 20e6)
}

func TestPaceLeavesWhatIsClose(t *testing.T) {
	now := time.Unix(0, 0)
	p := pacer{at: now, percent: startPercent}
	look := func(seconds time.Duration, garbage float64) bool {
		t.Helper()
		r := p.last
		r.grown, r.scanned = 30e6, 6e6
		now = now.Add(seconds * time.Second)
		r.allocated += garbage * float64(seconds)
		return p.look(r, now)
	}
	if !look(10, 1e6) {
		t.Fatalf("stayed at %d %%", p.percent)
	}
	was := p.percent
	if look(10, 1.1e6) {
		t.Errorf("%d %% became %d for a tenth more garbage", was, p.percent)
	}
	// One burst counts a quarter.
	if look(10, 2e6); p.percent > 2*was {
		t.Errorf("%d %% became %d for one burst", was, p.percent)
	}
	// A clock that stands still, or goes back, says nothing of rates.
	if look(0, 1e6) || look(-5, 1e6) {
		t.Error("changed without time having passed")
	}
}

// TestRuntimeHeap holds that the runtime has what is read, and takes what is set.
func TestRuntimeHeap(t *testing.T) {
	was := debug.SetGCPercent(77)
	defer debug.SetGCPercent(was)
	runtime.GC()
	r := readHeap()
	if r.allocated <= 0 || r.grown <= 0 || r.scanned <= 0 || r.grown > r.allocated+64e6 {
		t.Errorf("the heap reads %+v", r)
	}
	setPercent(66)
	if got := debug.SetGCPercent(77); got != 66 {
		t.Errorf("%d %% are set, want 66", got)
	}
}
