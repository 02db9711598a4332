package memory

import (
	"context"
	"errors"
	"log/slog"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/engine/clock/clocktest"
)

// kept is a keeper with a fake clock and heap. did records its actions.
type kept struct {
	t     *testing.T
	clock *clocktest.Fake
	heap  reading
	gc    chan struct{}
	did   []string
	log   strings.Builder
}

// startKept starts a keeper. advance advances the clock step by step.
func startKept(t *testing.T, paced bool, released error) (k *kept, advance func(steps int, step time.Duration)) {
	k = &kept{t: t, clock: clocktest.New(time.Unix(0, 0)), heap: reading{grown: 30e6, scanned: 6e6}, gc: make(chan struct{})}
	log := slog.New(slog.NewTextHandler(&k.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	keeper := keeper{
		clock: k.clock, log: log, paced: paced, collected: k.gc,
		read:    func() reading { return k.heap },
		set:     func(int) { k.did = append(k.did, "set") },
		release: func() error { k.did = append(k.did, "release"); return released },
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		keeper.run(ctx)
	}()
	t.Cleanup(func() { cancel(); <-done })
	asleep := func() { // the keeper does nothing after this
		if err := k.clock.WaitTimers(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
	}
	asleep()
	return k, func(steps int, step time.Duration) {
		for range steps {
			k.heap.allocated += 5e6 * step.Seconds()
			k.clock.Advance(step)
			asleep()
		}
	}
}

// settling is the time until a keeper reaches its normal period: 1 + 2 + 4 + 8.
const settling = 15 * time.Second

func TestKeep(t *testing.T) {
	k, advance := startKept(t, true, nil)
	check := func(what string, want ...string) {
		t.Helper()
		if d := cmp.Diff(want, k.did); d != "" {
			t.Errorf("%s (-want +got):\n%s", what, d)
		}
		k.did = nil
	}
	advance(1, time.Second)
	check("after a second", "release")
	advance(14, time.Second)
	check("until it has settled", "release", "release", "release")
	advance(1, period)
	check("after the first period", "set")
	advance(2*minute-1, period)
	k.did = slices.DeleteFunc(k.did, func(did string) bool { return did == "set" })
	check("after two minutes", "release", "release")
}

// TestKeepHurries checks that a burst does not wait for the next reading.
func TestKeepHurries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, advance := startKept(t, true, nil)
		advance(1, time.Second)
		k.did = nil
		for range 10 {
			k.heap.collected++
			k.clock.Advance(10 * time.Millisecond)
			k.gc <- struct{}{}
			synctest.Wait()
		}
		if d := cmp.Diff([]string{"set"}, k.did); d != "" {
			t.Errorf("-want +got:\n%s", d)
		}
	})
}

// TestKeepNothing checks that GOGC takes precedence, and that a failure is logged
// once and not retried.
func TestKeepNothing(t *testing.T) {
	k, advance := startKept(t, false, errors.New("not here"))
	advance(int(settling/time.Second), time.Second)
	advance(minute, period)
	if d := cmp.Diff([]string{"release"}, k.did); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	if n := strings.Count(k.log.String(), "not here"); n != 1 {
		t.Errorf("said %d times:\n%s", n, k.log.String())
	}
}

func TestStart(t *testing.T) {
	was := debug.SetGCPercent(100)
	defer debug.SetGCPercent(was)
	f := func(gogc string, want int) {
		t.Helper()
		debug.SetGCPercent(100)
		t.Setenv("GOGC", gogc)
		Start()
		if got := debug.SetGCPercent(100); got != want {
			t.Errorf("with GOGC=%q the heap grows by %d %%, want %d", gogc, got, want)
		}
	}
	f("", startPercent)
	f("70", 100) // Go has read the variable earlier
}
