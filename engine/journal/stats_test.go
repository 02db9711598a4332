package journal_test

import (
	"testing"
	"time"

	"github.com/weir-run/weir/engine/clock/clocktest"
)

func TestWaiting(t *testing.T) {
	c := clocktest.New(start)
	j := open(t, t.TempDir(), options(c))
	defer j.Close()
	f := func(blocks int64, age time.Duration) {
		t.Helper()
		if b, a := j.Waiting(); b != blocks || a != age {
			t.Errorf("got %d blocks, the oldest for %s; want %d, %s", b, a, blocks, age)
		}
	}
	f(0, 0)
	put(t, j, 0, "a")
	f(1, 0)
	c.Advance(time.Second)
	put(t, j, 1, "b")
	f(2, time.Second)
	c.Leap(time.Hour)
	f(2, time.Second)
	b, _ := j.TryNext(0)
	f(2, time.Second) // in flight
	c.Leap(-3 * time.Hour)
	j.Ack(b)
	f(1, 0)
	c.Advance(time.Minute)
	f(1, time.Minute)
}
