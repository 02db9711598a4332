package backoff_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-run/weir/engine/backoff"
	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/clock/clocktest"
)

// recorder is a clock whose timers fire at once and whose time advances by what
// they were set to.
type recorder struct {
	*clocktest.Fake
	last time.Duration
}

func (c *recorder) NewTimer(d time.Duration) clock.Timer {
	c.last = d
	t := c.Fake.NewTimer(d)
	c.Advance(d)
	return t
}

// TestIntervals checks that no interval is more than 10 % shorter than the
// previous one, up to max_backoff, and that every interval that was asked for is
// kept.
func TestIntervals(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		r := backoff.Reasons{Min: time.Duration(1 + rng.Int64N(int64(time.Second)))}
		r.Max = r.Min + time.Duration(rng.Int64N(int64(time.Minute)))
		if rng.IntN(10) == 0 {
			r.Max = r.Min
		}
		c := &recorder{Fake: clocktest.New(time.Unix(0, 0))}
		var p backoff.Pauses
		var previous time.Duration
		for i := range 30 {
			r.RetryAfter = 0
			if rng.IntN(8) == 0 {
				r.RetryAfter = time.Duration(rng.Int64N(int64(3 * r.Max)))
			}
			p.Pause(context.Background(), c, r)
			least := max(min(previous, r.Max)*9/10, r.RetryAfter, r.Min)
			most := max(r.Max, r.RetryAfter, r.Min) + max(r.Max, r.Min)/10 + 1
			if r.RetryAfter == 0 && r.Min < r.Max*9/10 {
				most = r.Max + time.Nanosecond
			}
			if c.last < least || c.last > most {
				t.Fatalf("interval %d after one of %s with %s to %s and Retry-After %s is %s, want %s to %s", i, previous, r.Min, r.Max, r.RetryAfter, c.last, least, most)
			}
			previous = c.last
		}
	}
}

// TestIntervalsDouble checks that the back-off doubles from Min to Max.
func TestIntervalsDouble(t *testing.T) {
	c := &recorder{Fake: clocktest.New(time.Unix(0, 0))}
	var p backoff.Pauses
	r := backoff.Reasons{Min: time.Second, Max: 11 * time.Second}
	f := func(least time.Duration) {
		t.Helper()
		p.Pause(context.Background(), c, r)
		if most := least * 11 / 10; c.last < least || c.last > most {
			t.Errorf("got an interval of %s, want %s to %s", c.last, least, most)
		}
	}
	for _, s := range []time.Duration{1, 2, 4, 8, 10, 10, 10} {
		f(s * time.Second)
	}
	p.Reset()
	f(time.Second)

	// The interval that the endpoint asks for counts as the previous one.
	r.RetryAfter = 40 * time.Second
	p.Pause(context.Background(), c, r)
	if c.last < 40*time.Second || c.last > 41*time.Second {
		t.Errorf("got an interval of %s after Retry-After: 40", c.last)
	}
	r.RetryAfter = 0
	f(10 * time.Second)
	r.RetryAfter = time.Second // shorter than the back-off
	f(10 * time.Second)
}

// TestIntervalIsCutShort checks when Back ends an interval early.
func TestIntervalIsCutShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p backoff.Pauses
		back := make(chan struct{})
		close(back)
		f := func(retryAfter, least, most time.Duration) {
			t.Helper()
			began := time.Now()
			p.Pause(t.Context(), clock.System{}, backoff.Reasons{Min: time.Minute, Max: time.Minute, RetryAfter: retryAfter, Back: back})
			if took := time.Since(began); took < least || took > most {
				t.Errorf("the interval lasted %s, want %s to %s", took, least, most)
			}
		}
		f(time.Hour, time.Hour, 61*time.Minute) // the endpoint asked for it
		f(0, 0, 5*time.Second)
		f(0, time.Minute, 66*time.Second) // not twice within Max
		f(0, 0, 5*time.Second)
	})
}
