package lua

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-run/weir/scripting"
)

// TestBudgetCountsScriptTime holds that a script pays for its own time, not
// for that of a busy machine, and that the wall clock bounds it all the same.
func TestBudgetCountsScriptTime(t *testing.T) {
	f := func(gap time.Duration, want int) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			var b budget
			b.start(100*time.Millisecond, 0)
			got := 0
			for b.tripped == nil {
				time.Sleep(gap) // the bubble's clock: it takes no time
				b.instr.left = 0
				b.checkLimits()
				got++
			}
			if got != want {
				t.Errorf("with %s between looks: stopped at look %d, want %d", gap, got, want)
			}
			if !errors.Is(b.Err(), scripting.ErrLimit) {
				t.Errorf("err = %v, want a limit", b.Err())
			}
		})
	}
	f(10*time.Microsecond, 10_001) // all of it is the script's
	f(time.Millisecond, 101)
	f(5*time.Millisecond, 51)   // most of it is the machine's
	f(100*time.Millisecond, 11) // ten times the limit has passed
}

// TestSamplerLeavesOutWaits: the time that a call waits is not in its profile.
func TestSamplerLeavesOutWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, done := &scripting.Profile{}, make(chan []scripting.ProfileSample)
		go func() { done <- p.Collect(t.Context(), time.Second) }()
		var b budget
		b.sampler = (&vm{}).newSampler(p)
		b.start(time.Minute, 0)
		time.Sleep(105 * time.Millisecond) // in the bubble
		b.resume()
		if b.sampler.seen != 10 || p.Ticks() != 10 {
			t.Errorf("%d ticks of %d are left out, want 10 of 10", b.sampler.seen, p.Ticks())
		}
		<-done
	})
}
