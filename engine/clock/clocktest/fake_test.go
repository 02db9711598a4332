package clocktest_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/clock/clocktest"
)

var epoch = time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)

func fired(tm clock.Timer) string {
	select {
	case at := <-tm.C():
		return at.Sub(epoch).String()
	default:
		return ""
	}
}

func TestFakeFiresWhatIsDue(t *testing.T) {
	f := clocktest.New(epoch)
	now, a, b := f.NewTimer(0), f.NewTimer(2*time.Second), f.NewTimer(3*time.Second)
	var got []string
	step := func(d time.Duration) {
		f.Advance(d)
		got = append(got, fmt.Sprintf("%s: %q %q %q", f.Now().Sub(epoch), fired(now), fired(a), fired(b)))
	}
	step(time.Second)
	step(time.Second)
	step(5 * time.Second)
	step(time.Hour)
	want := []string{`1s: "0s" "" ""`, `2s: "" "2s" ""`, `7s: "" "" "3s"`, `1h0m7s: "" "" ""`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Timers do what time.Timer does since Go 1.23.
func TestFakeStopAndReset(t *testing.T) {
	f := clocktest.New(epoch)
	tm := f.NewTimer(time.Second)
	if !tm.Stop() || tm.Stop() {
		t.Error("Stop reports a pending timer once")
	}
	f.Advance(time.Minute)
	if got := fired(tm); got != "" {
		t.Errorf("a stopped timer fired at %s", got)
	}
	if tm.Reset(time.Second) {
		t.Error("a stopped timer was pending")
	}
	if !tm.Reset(2 * time.Second) {
		t.Error("a running timer was not pending")
	}
	f.Advance(2 * time.Second)
	tm.Reset(time.Second) // what it sent is not received any more
	if got := fired(tm); got != "" {
		t.Errorf("a stale value: %s", got)
	}
	f.Advance(time.Second)
	if got := fired(tm); got != "1m3s" {
		t.Errorf("fired at %q", got)
	}
}

func TestFakeWaitTimers(t *testing.T) {
	f := clocktest.New(epoch)
	done := make(chan error)
	for range 2 {
		go func() { done <- clock.Sleep(t.Context(), f, time.Second) }()
	}
	if err := f.WaitTimers(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	f.Advance(time.Second)
	for range 2 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := f.WaitTimers(ctx, 1); err != context.Canceled {
		t.Errorf("got %v", err)
	}
}
