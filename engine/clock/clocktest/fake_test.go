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

func TestFakeWaitDue(t *testing.T) {
	f := clocktest.New(epoch)
	f.NewTimer(time.Minute)
	done := make(chan error)
	go func() { done <- clock.Sleep(t.Context(), f, time.Second) }()
	if err := f.WaitDue(t.Context(), time.Second); err != nil {
		t.Fatal(err)
	}
	f.Advance(time.Second)
	if err := <-done; err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := f.WaitDue(ctx, 58*time.Second); err != context.Canceled {
		t.Errorf("got %v", err)
	}
	if err := f.WaitDue(ctx, 59*time.Second); err != nil {
		t.Errorf("got %v", err)
	}
}

// TestLeap: the time of day is another, and nothing else.
func TestLeap(t *testing.T) {
	for _, d := range []time.Duration{time.Hour, -time.Hour} {
		f := clocktest.New(epoch)
		before := f.Now()
		tm := f.NewTimer(2 * time.Second)
		f.Leap(d)
		if got := fired(tm); got != "" {
			t.Errorf("leap of %s: the timer fired at %s", d, got)
		}
		f.Advance(time.Second)
		if got := f.Now(); !got.Equal(before.Add(time.Second)) || !got.Round(0).Equal(epoch.Add(d+time.Second)) || got.Location() != time.UTC {
			t.Errorf("leap of %s: it is %s, want %s of the day and a second after the start", d, got, epoch.Add(d+time.Second))
		}
		if got := f.Now().Sub(before); got != time.Second {
			t.Errorf("leap of %s: %s went by, want 1s", d, got)
		}
		f.Advance(time.Second)
		select {
		case at := <-tm.C():
			if at.Sub(before) != 2*time.Second || at.UnixNano() != epoch.Add(d+2*time.Second).UnixNano() {
				t.Errorf("leap of %s: the timer fired at %s", d, at)
			}
		default:
			t.Errorf("leap of %s: the timer did not fire", d)
		}
	}
}
