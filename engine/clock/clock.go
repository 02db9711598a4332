// Package clock is the engine's one source of time, injected everywhere so
// that tests decide what time it is.
//
// System is the real clock; clocktest.Fake stands still until it is told to
// advance. It is not for measuring how long our own code takes: durations in
// metrics come from time.Now, which is monotonic.
package clock

import (
	"context"
	"time"
)

// Clock tells the time and wakes sleepers. Implementations are safe for
// concurrent use.
type Clock interface {
	// Now is the current time.
	Now() time.Time
	// NewTimer returns a timer that fires once, d from now; at once when d <= 0.
	NewTimer(d time.Duration) Timer
}

// Timer is one pending wake-up, with the semantics of *time.Timer since Go
// 1.23: after Stop or Reset no stale value is received.
type Timer interface {
	C() <-chan time.Time
	Stop() bool
	Reset(d time.Duration) bool
}

// Sleep waits for d, or until ctx ends and returns its cause.
func Sleep(ctx context.Context, c Clock, d time.Duration) error {
	t := c.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C():
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// System is the real clock.
type System struct{}

// Now returns time.Now.
func (System) Now() time.Time { return time.Now() }

// NewTimer returns a *time.Timer.
func (System) NewTimer(d time.Duration) Timer { return systemTimer{time.NewTimer(d)} }

type systemTimer struct{ *time.Timer }

func (t systemTimer) C() <-chan time.Time { return t.Timer.C }
