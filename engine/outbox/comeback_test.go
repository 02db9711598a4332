package outbox_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-run/weir/engine/outbox"
)

// The first offer that is delivered after an outage wakes the shards that wait
// for it. It does not wake a shard that was asked to wait, and it does not
// immediately wake a shard that fails again.
func TestComeback(t *testing.T) {
	inLab(t, func(t *testing.T, l *harness) {
		const asked, waiting, alsoWaiting, free = 0, 1, 2, 3 // shards
		var down atomic.Bool
		down.Store(true)
		l.r.set(func(shard int, o *outbox.Offer) outbox.Outcome {
			if shard == asked && o.Attempt == 1 {
				return outbox.Retry(o, 10*time.Minute)
			}
			if down.Load() || shard == alsoWaiting {
				return outbox.Retry(o, 0)
			}
			return outbox.Outcome{}
		})
		stop := l.run(settings())
		for shard := range uint64(free) {
			l.accept(samples(t, shard, fmt.Sprintf("s%d 1 1\n", shard)))
		}
		pass(3 * time.Minute) // the back-off is 22.5 s to 30 s by now
		l.r.takeOffered()
		for len(l.r.takeOffered()) == 0 { // one pause has just begun, and the other ends within 30 s
			pass(100 * time.Millisecond)
		}
		down.Store(false)
		l.accept(samples(t, free, "s3 1 1\n"))
		pass(2 * time.Second)
		got := map[string]int{}
		for _, o := range l.r.takeOffered() {
			got[o]++
		}
		equal(t, got, map[string]int{"1: s1 1 1": 1, "2: s2 1 1": 1, "3: s3 1 1": 1})
		l.accept(samples(t, free, "s3 2 2\n"))
		pass(3 * time.Second)
		equal(t, l.r.takeOffered(), []string{"3: s3 2 2"})
		down.Store(true)
		l.accept(samples(t, waiting, "s1 2 2\n")) // was woken, and fails again
		pass(time.Second / 2)
		down.Store(false)
		l.accept(samples(t, free, "s3 3 3\n"))
		pass(100 * time.Millisecond) // a sixteenth of the back-off is over, all of it is not
		equal(t, l.r.takeOffered(), []string{"1: s1 2 2", "3: s3 3 3"})
		l.r.set(nil)
		stop(false)
	})
}
