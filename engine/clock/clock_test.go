package clock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/clock/clocktest"
)

func TestSystem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		c := clock.System{}
		if err := clock.Sleep(t.Context(), c, time.Hour); err != nil {
			t.Fatal(err)
		}
		if got := c.Now().Sub(start); got != time.Hour {
			t.Errorf("slept %v", got)
		}
		timer := c.NewTimer(time.Minute)
		if !timer.Stop() || timer.Reset(time.Second) {
			t.Error("a stopped timer is pending")
		}
		<-timer.C()
		if got := c.Now().Sub(start); got != time.Hour+time.Second {
			t.Errorf("the timer fired after %v", got)
		}

		cause := errors.New("stop")
		ctx, cancel := context.WithCancelCause(t.Context())
		done := make(chan error)
		go func() { done <- clock.Sleep(ctx, c, time.Hour) }()
		synctest.Wait()
		cancel(cause)
		if err := <-done; err != cause {
			t.Errorf("got %v", err)
		}
	})
}

func TestAfterFunc(t *testing.T) {
	f := func(c clock.Clock, pass func(time.Duration)) {
		t.Helper()
		rang := make(chan time.Time, 10)
		start := c.Now()
		a := clock.AfterFunc(c, time.Hour, func() { rang <- c.Now() })
		at := func(want time.Duration) {
			t.Helper()
			if got := (<-rang).Sub(start); got != want {
				t.Errorf("%T: it rang after %s, want %s", c, got, want)
			}
		}
		pass(time.Hour)
		at(time.Hour)
		a.Reset(time.Minute) // after it rang
		pass(time.Minute)
		at(time.Hour + time.Minute)
		a.Reset(time.Minute)
		a.Reset(2 * time.Minute) // before it rang
		pass(2 * time.Minute)
		at(time.Hour + 3*time.Minute)
		a.Reset(time.Minute)
		a.Stop()
		pass(time.Hour)
		if len(rang) > 0 {
			t.Errorf("%T: it rang after Stop", c)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		f(clock.System{}, func(d time.Duration) { time.Sleep(d); synctest.Wait() })
	})
	fake := clocktest.New(time.Unix(0, 0))
	f(fake, func(d time.Duration) { fake.Advance(d) })
}
