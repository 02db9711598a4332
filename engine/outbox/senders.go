package outbox

import (
	"context"
	"runtime/debug"
	"sync"
	"time"

	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/flow"
)

// senders are the goroutines that send the blocks of a journal's shards.
type senders struct {
	wg   sync.WaitGroup
	stop context.CancelFunc // ends their requests
}

// startSenders calls send for shards 0 to shards-1, each in a goroutine.
// posting does not end with ctx; it ends when drain runs out of time. A panic
// is passed to fail.
func startSenders(ctx context.Context, shards int, send func(posting context.Context, shard int), fail func(*flow.PanicError)) *senders {
	posting, stop := context.WithCancel(context.WithoutCancel(ctx))
	s := &senders{stop: stop}
	for shard := range shards {
		s.wg.Go(guard(func() { send(posting, shard) }, fail))
	}
	return s
}

// drain waits until the senders, which must have been told to stop, have
// returned. After grace, it cancels their requests.
func (s *senders) drain(c clock.Clock, grace time.Duration) {
	defer s.stop()
	done := make(chan struct{})
	go func() { s.wg.Wait(); close(done) }()
	t := c.NewTimer(grace)
	defer t.Stop()
	select {
	case <-done:
	case <-t.C():
		s.stop()
		<-done
	}
}

// guard returns f, whose panic is passed to fail.
func guard(f func(), fail func(*flow.PanicError)) func() {
	return func() {
		defer func() {
			if v := recover(); v != nil {
				fail(&flow.PanicError{Value: v, Stack: debug.Stack()})
			}
		}()
		f()
	}
}
