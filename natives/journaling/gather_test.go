package journaling_test

import (
	"testing"
	"time"

	"github.com/weir-run/weir/natives/journaling"
)

// TestDue: what several lanes begin to gather at about the same time is written
// at the same time, and never later than the deadline.
func TestDue(t *testing.T) {
	ms := func(n int64) time.Time { return time.UnixMilli(1735689600000 + n) }
	f := func(deadline time.Duration, opened, want int64) {
		t.Helper()
		if got := journaling.Due(ms(opened), deadline); !got.Equal(ms(want)) {
			t.Errorf("opened at %d ms, with a deadline of %s it is due at %s, want %d ms", opened, deadline, got.Sub(ms(0)), want)
		}
	}
	f(100*time.Millisecond, 0, 100)
	f(100*time.Millisecond, 3, 100)
	f(100*time.Millisecond, 24, 100)
	f(100*time.Millisecond, 25, 125)
	f(8*time.Millisecond, 1, 8)
	f(0, 1, 1)
}
