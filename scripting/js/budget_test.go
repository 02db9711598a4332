package js

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/dop251/goja"

	"github.com/weir-run/weir/scripting"
)

// newBudget returns a budget that nothing has used yet.
func newBudget(limit time.Duration, records int) *budget {
	b := &budget{rt: goja.New(), index: -1, setting: ", the limit is x", held: func(int) int { return 0 }}
	b.start(limit, records)
	return b
}

// wantStopped checks that a call was stopped by an error of a kind.
func wantStopped(t *testing.T, b *budget, kind error, text string) {
	t.Helper()
	if err := b.err(); !errors.Is(err, kind) || !strings.Contains(err.Error(), text) {
		t.Errorf("got %v, want %q", err, text)
	}
}

// TestBudgetOfWork: what the host does for a script is counted, and an error says
// that it was too much. The error stays.
func TestBudgetOfWork(t *testing.T) {
	b := newBudget(time.Millisecond, 0)
	const most = 1000 * workPerMicro
	if err := b.charge(most); err != nil {
		t.Fatalf("all that there is: %v", err)
	}
	err := b.charge(1)
	if !errors.Is(err, scripting.ErrLimit) || err.Error() != scripting.ErrLimit.Error()+": the call made the host do more than the work of 1000000 instructions, the limit is x" {
		t.Errorf("got %v", err)
	}
	for name, again := range map[string]error{"charge": b.charge(0), "stopped": b.stopped(), "err": b.err()} {
		if again != err {
			t.Errorf("%s: got %v, want the first error", name, again)
		}
	}
	if other := b.stopCall(errors.New("other")); other != err {
		t.Errorf("a second reason replaced the first: %v", other)
	}
	if _, err := b.rt.RunString("for (;;) {}"); err == nil {
		t.Error("the script goes on")
	}
	defer func() {
		if _, ok := recover().(*goja.InterruptedError); !ok {
			t.Error("a native function goes on")
		}
	}()
	b.check()
}

// TestBudgetOfBytes: native functions count what they read, at a lower rate.
func TestBudgetOfBytes(t *testing.T) {
	b := newBudget(time.Millisecond, 0)
	b.native(32 * 999_999)
	if err := b.charge(1); err != nil {
		t.Fatal(err)
	}
	b.native(32)
	if err := b.charge(0); !errors.Is(err, scripting.ErrLimit) {
		t.Errorf("got %v, want the limit", err)
	}
}

// TestBudgetOfStrings: a string has a limit, and so have all strings of a call.
// Only the second stops the call.
func TestBudgetOfStrings(t *testing.T) {
	b := newBudget(usualTime, 0)
	if err := b.chargeString(scripting.MaxString + 1); err == nil || !strings.Contains(err.Error(), "cannot make a string of") || errors.Is(err, scripting.ErrLimit) {
		t.Errorf("got %v, want an error of the string", err)
	}
	if err := b.err(); err != nil {
		t.Fatalf("a string that is too long stopped the call: %v", err)
	}
	made := int64(0)
	for ; b.chargeString(scripting.MaxString) == nil; made += scripting.MaxString {
	}
	if made != stringBytes {
		t.Errorf("a call made %d bytes of strings, want %d", made, stringBytes)
	}
	wantStopped(t, b, scripting.ErrLimit, "the call made more than 67108864 bytes of strings")
}

// TestBudgetOfStringsGrows: more time and more records allow more strings.
func TestBudgetOfStringsGrows(t *testing.T) {
	f := func(limit time.Duration, records int, want int64) {
		t.Helper()
		if got := newBudget(limit, records).allowed; got != want {
			t.Errorf("%s, %d records: got %d bytes, want %d", limit, records, got, want)
		}
	}
	f(usualTime, 0, stringBytes)
	f(time.Millisecond, 0, stringBytes)
	f(usualTime, 10, stringBytes+10*stringBytesPerRecord)
	f(3*usualTime, 1, 3*stringBytes+stringBytesPerRecord)
	f(4*usualTime-1, 0, 3*stringBytes)
}

// TestBudgetOfTime: the watchdog adds up what a script ran, and a gap between two
// looks counts as two ticks at most.
func TestBudgetOfTime(t *testing.T) {
	b := newBudget(10*time.Millisecond, 0)
	now := time.Unix(0, 0)
	b.started, b.looked = now, now
	look := func(d time.Duration) {
		now = now.Add(d)
		b.tick(now, &memoryNow{})
	}
	look(time.Millisecond)
	look(2 * time.Millisecond)
	if b.ran != 3*time.Millisecond {
		t.Errorf("it ran %s, want 3ms", b.ran)
	}
	look(time.Second) // the machine did something else
	if b.ran != 3*time.Millisecond+maxGap || b.err() != nil {
		t.Errorf("it ran %s: %v", b.ran, b.err())
	}
	look(3 * time.Millisecond)
	if b.err() != nil {
		t.Fatalf("stopped at its limit: %v", b.err())
	}
	look(1)
	wantStopped(t, b, scripting.ErrTime, "the call ran longer than 10ms, the limit is x")
}

// TestBudgetOfTheClock: a call that hardly runs ends as well.
func TestBudgetOfTheClock(t *testing.T) {
	f := func(limit, wall time.Duration) {
		t.Helper()
		b := newBudget(limit, 0)
		now := time.Unix(0, 0)
		b.started = now
		for _, at := range []time.Duration{wall - 1, wall} {
			b.ran, b.looked = 0, now.Add(at)
			if b.tick(now.Add(at), &memoryNow{}); b.err() != nil {
				t.Fatalf("%s: stopped after %s: %v", limit, at, b.err())
			}
		}
		b.ran, b.looked = 0, now.Add(wall+1)
		b.tick(now.Add(wall+1), &memoryNow{})
		wantStopped(t, b, scripting.ErrTime, "ran longer than "+limit.String())
	}
	f(time.Millisecond, leastWall)
	f(2*time.Second, wallFactor*2*time.Second)
}

// TestBudgetPauses: the time that a call waits does not count, nested calls count
// once, and the watchdog looks only while the script runs.
func TestBudgetPauses(t *testing.T) {
	b := newBudget(time.Hour, 0)
	watched := func(want bool) {
		t.Helper()
		var got bool
		watching.runUnwatched(func() { got = b.index >= 0 })
		if got != want {
			t.Errorf("it is watched: %v, want %v", got, want)
		}
	}
	watched(false)
	b.enter()
	b.enter()
	watched(true)
	b.leave()
	watched(true)
	if err := b.pause(); err != nil {
		t.Fatal(err)
	}
	watched(false)
	ran := b.used()
	b.left = b.left.Add(-time.Hour) // it waited for an hour
	started := b.started
	b.resume()
	watched(true)
	if waited := b.started.Sub(started); waited < time.Hour {
		t.Errorf("the call began %s later, want at least the hour that it waited", waited)
	}
	b.leave()
	watched(false)
	if more := b.used() - ran; more > time.Minute {
		t.Errorf("the pause counts: %s", more)
	}
	if b.worked != b.ran+ran {
		t.Errorf("it worked %s, want the sum of both parts, %s", b.worked, b.ran+ran)
	}
	b.stopCall(errors.New("stopped"))
	b.enter()
	if err := b.pause(); err == nil || err.Error() != "stopped" {
		t.Errorf("pause: got %v, want why the call was stopped", err)
	}
}

// TestBudgetOfMemory: a look that finds too much stops the call, at the next native
// function.
func TestBudgetOfMemory(t *testing.T) {
	holds := 0
	b := newBudget(time.Second, 0)
	b.held = func(int) int { return holds }
	b.memory(1<<20, ", the limit is y")
	look := func() error {
		b.flag.Or(flagLook)
		return b.stopped()
	}
	if err := look(); err != nil {
		t.Fatal(err)
	}
	if b.flag.Load() != 0 {
		t.Error("the look is asked for again")
	}
	holds = 1 << 20
	if err := look(); err != nil {
		t.Fatalf("at its limit: %v", err)
	}
	holds++
	if err := look(); !errors.Is(err, scripting.ErrLimit) || !strings.HasSuffix(err.Error(), "the call holds more than 1 MiB, the limit is y") {
		t.Errorf("got %v", err)
	}
	wantStopped(t, b, scripting.ErrLimit, "the call holds more than 1 MiB")

	// Without a limit nothing is looked at.
	b = newBudget(time.Second, 0)
	b.held = func(int) int { t.Error("it was looked at"); return 0 }
	b.memory(0, "")
	if err := look(); err != nil {
		t.Error(err)
	}
}

// TestSizes: limits are written as they were set.
func TestSizes(t *testing.T) {
	f := func(n int64, want string) {
		t.Helper()
		if got := sizeText(n); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	f(1<<20, "1 MiB")
	f(64<<20, "64 MiB")
	f(1<<20+1, "1048577 bytes")
	f(1000, "1000 bytes")
}

// TestWatchdog: it looks at all scripts that run, and at none that was removed.
func TestWatchdog(t *testing.T) {
	var w watchdog
	w.awake = true // there is no goroutine: nothing is looked at meanwhile
	bs := []*budget{{}, {}, {}, {}}
	for _, b := range bs {
		w.add(b)
	}
	check := func(want ...*budget) {
		t.Helper()
		if len(w.running) != len(want) {
			t.Fatalf("%d run, want %d", len(w.running), len(want))
		}
		for _, b := range want {
			if b.index < 0 || w.running[b.index] != b {
				t.Error("a script that runs is not found by its index")
			}
		}
	}
	check(bs...)
	w.remove(bs[1])
	check(bs[0], bs[2], bs[3])
	w.remove(bs[3])
	check(bs[0], bs[2])
	w.add(bs[1])
	check(bs[0], bs[1], bs[2])
	for _, b := range []*budget{bs[0], bs[2], bs[1]} {
		w.remove(b)
	}
	check()
	for i, b := range bs {
		if b.index != -1 {
			t.Errorf("budget %d has the index %d", i, b.index)
		}
	}
}
