package clock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-run/weir/engine/clock"
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
