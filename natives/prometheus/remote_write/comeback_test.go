package remotewrite_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/clock/clocktest"
	"github.com/weir-run/weir/engine/component/componenttest"
)

// long is a back-off that only the timers of retries have.
const long = 10 * time.Minute

// naps is a clock that reports the timers of retries: their durations, and the
// durations to which they are shortened.
type naps struct {
	*clocktest.Fake
	begun, cut chan time.Duration
}

func (c naps) NewTimer(d time.Duration) clock.Timer {
	t := c.Fake.NewTimer(d)
	if d < long*9/10 || d > long*11/10 {
		return t
	}
	c.begun <- d
	return nap{t, c}
}

type nap struct {
	clock.Timer
	c naps
}

func (t nap) Reset(d time.Duration) bool {
	was := t.Timer.Reset(d)
	t.c.cut <- d
	return was
}

// TestComeback: the first request that an endpoint accepts after an outage wakes
// the shards that wait to retry. It does not wake a shard that the endpoint asked
// to wait, and it does not wake a shard a second time if that shard failed again.
func TestComeback(t *testing.T) {
	const asked, waiting, alsoWaiting, free = 0, 1, 2, 3 // shards
	srv := newServer(t)
	srv.setFault(func(w http.ResponseWriter, _ *http.Request, n int) bool {
		switch n {
		case 1:
			w.Header().Set("Retry-After", "600")
			w.WriteHeader(429)
		case 2, 3: // the waiting shards
			w.WriteHeader(503)
		case 5, 6: // when they were woken
			w.WriteHeader(500)
		default:
			return false
		}
		return true
	})
	c := naps{clocktest.New(time.UnixMilli(t0)), make(chan time.Duration, 100), make(chan time.Duration, 100)}
	n := start(t, componenttest.New(t, "prometheus.remote_write.test"), c, endpoint(srv.URL, `queue_config {
		max_samples_per_send = 3
		min_shards           = 4
		max_shards           = 4
		min_backoff          = "10m"
		max_backoff          = "10m"
	}`))
	want := func(naps chan time.Duration, what string, least, most time.Duration) {
		t.Helper()
		select {
		case d := <-naps:
			if d < least || d > most {
				t.Fatalf("%s for %s, want %s to %s", what, d, least, most)
			}
		case <-time.After(time.Minute): // the machine may be busy
			t.Fatal(what + " did not happen")
		}
	}
	send := func(shard uint64, at int64) { n.accept(t, gauges(shard, 3, at)) } // fills a block
	send(asked, t0)
	want(c.begun, "the wait that was asked for", long, long*11/10)
	for _, shard := range []uint64{waiting, alsoWaiting} {
		send(shard, t0)
		want(c.begun, "the back-off", long, long*11/10)
	}

	send(free, t0)
	for range 2 {
		want(c.cut, "waking up", 0, long/16)
	}
	c.Advance(long / 16)
	for range 2 {
		want(c.begun, "the next back-off", long, long*11/10)
	}

	send(free, t0+1)
	send(free, t0+2) // sent after all shards know about the previous one
	requests := func(n int) { t.Helper(); srv.wait(t, func() bool { return len(srv.received()) == n }) }
	requests(8)
	c.Advance(2 * long) // everything that waits
	requests(11)
	srv.wait(t, func() bool { return srv.count(t) == 18 })
	if len(c.cut) > 0 {
		t.Error("a wait was cut short that was asked for, or right after one that was in vain")
	}
}
