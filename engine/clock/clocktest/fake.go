// Package clocktest has a clock for tests: it stands still until it is told
// to advance.
package clocktest

import (
	"context"
	"sync"
	"time"

	"github.com/weir-run/weir/engine/clock"
)

// Fake is a clock that moves only by Advance. It is safe for concurrent use.
type Fake struct {
	mu     sync.Mutex
	now    time.Time
	timers map[*timer]bool // those that will fire
	armed  chan struct{}   // closed and replaced when a timer is armed
}

// New returns a Fake that shows now.
func New(now time.Time) *Fake {
	return &Fake{now: now, timers: map[*timer]bool{}, armed: make(chan struct{})}
}

// Now returns the time it shows.
func (f *Fake) Now() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now
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
		next.c <- f.now
	}
	f.now = end
}

// WaitTimers returns when at least n timers are pending: the code under test
// sleeps. It returns ctx's error when that does not happen in time.
func (f *Fake) WaitTimers(ctx context.Context, n int) error {
	for {
		f.mu.Lock()
		pending, armed := len(f.timers), f.armed
		f.mu.Unlock()
		if pending >= n {
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
		t.c <- t.f.now
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
