// Package clocktest has a clock for tests: it stands still until it is told
// to advance.
package clocktest

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/golayout"
)

// Fake is a clock that moves only by Advance and Leap. Like those of the real
// clock, its times have a monotonic reading. It is safe for concurrent use.
type Fake struct {
	mu     sync.Mutex
	now    time.Time // without a monotonic reading; what timers go by
	leapt  time.Duration
	timers map[*timer]bool // those that will fire
	armed  chan struct{}   // closed and replaced when a timer is armed
}

// New returns a Fake that shows now.
func New(now time.Time) *Fake {
	return &Fake{now: now.Round(0), timers: map[*timer]bool{}, armed: make(chan struct{})}
}

// Now returns the time it shows.
func (f *Fake) Now() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.shown()
}

// shown returns the time it shows. mu is held.
func (f *Fake) shown() time.Time { return withMonotonic()(f.now.Add(f.leapt), f.now) }

// Leap sets the clock on the wall forward by d, or back, as an administrator
// does. No time goes by: no timer fires, and none fires at another moment.
func (f *Fake) Leap(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.leapt += d
}

// NewTimer returns a timer that fires when Advance passes it.
func (f *Fake) NewTimer(d time.Duration) clock.Timer {
	t := &timer{f: f, c: make(chan time.Time, 1)}
	t.Reset(d)
	return t
}

// Advance moves the clock by d and fires what is due, earliest first.
func (f *Fake) Advance(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	end := f.now.Add(d)
	for {
		var next *timer
		for t := range f.timers {
			if !t.at.After(end) && (next == nil || t.at.Before(next.at)) {
				next = t
			}
		}
		if next == nil {
			break
		}
		if next.at.After(f.now) {
			f.now = next.at
		}
		delete(f.timers, next)
		next.c <- f.shown()
	}
	f.now = end
}

// WaitTimers returns when at least n timers are pending: the code under test
// sleeps. It returns ctx's error when that does not happen in time.
func (f *Fake) WaitTimers(ctx context.Context, n int) error {
	return f.wait(ctx, func() bool { return len(f.timers) >= n })
}

// WaitDue returns when a timer is pending that Advance(d) fires. It returns ctx's error
// when that does not happen in time.
func (f *Fake) WaitDue(ctx context.Context, d time.Duration) error {
	return f.wait(ctx, func() bool {
		for t := range f.timers {
			if !t.at.After(f.now.Add(d)) {
				return true
			}
		}
		return false
	})
}

// wait returns when done, which is called with mu held, returns true.
func (f *Fake) wait(ctx context.Context, done func() bool) error {
	for {
		f.mu.Lock()
		ok, armed := done(), f.armed
		f.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-armed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

type timer struct {
	f  *Fake
	c  chan time.Time
	at time.Time
}

func (t *timer) C() <-chan time.Time { return t.c }

func (t *timer) Stop() bool {
	t.f.mu.Lock()
	defer t.f.mu.Unlock()
	return t.stop()
}

func (t *timer) Reset(d time.Duration) bool {
	t.f.mu.Lock()
	defer t.f.mu.Unlock()
	active := t.stop()
	t.at = t.f.now.Add(d)
	if d <= 0 {
		t.c <- t.f.shown()
		return active
	}
	t.f.timers[t] = true
	close(t.f.armed)
	t.f.armed = make(chan struct{})
	return active
}

func (t *timer) stop() bool {
	active := t.f.timers[t]
	delete(t.f.timers, t)
	select {
	case <-t.c:
	default:
	}
	return active
}

var _ clock.Clock = (*Fake)(nil)

// withMonotonic returns wall with the monotonic reading of a clock that shows
// mono. With a Go whose times are laid out differently, it returns wall: what
// measures durations by this clock then sees each Leap.
var withMonotonic = sync.OnceValue(func() func(wall, mono time.Time) time.Time {
	return monotonicOr(golayout.CheckTime())
})

func monotonicOr(err error) func(wall, mono time.Time) time.Time {
	if err != nil {
		slog.Warn("clocks in tests have no monotonic reading", "err", err)
		return func(wall, _ time.Time) time.Time { return wall }
	}
	return golayout.WithMonotonic
}
