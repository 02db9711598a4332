// Package clock is the engine's only source of time. It is injected everywhere,
// so that tests control the time.
//
// System is the real clock; clocktest.Fake stands still until it is advanced.
// It is not for measuring the duration of our own code: durations in metrics
// use time.Now, which is monotonic.
package clock

import (
	"context"
	"time"
)

// Clock provides the time and timers. Implementations are safe for concurrent
// use.
type Clock interface {
	// Now returns the current time.
	Now() time.Time
	// NewTimer returns a timer that fires once, after d; immediately if d <= 0.
	NewTimer(d time.Duration) Timer
}

// Timer is one pending wake-up, with the semantics of *time.Timer since Go
// 1.23: after Stop or Reset no stale value is received.
type Timer interface {
	C() <-chan time.Time
	Stop() bool
	Reset(d time.Duration) bool
}

// Sleep waits for d. If ctx ends first, it returns its cause.
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
