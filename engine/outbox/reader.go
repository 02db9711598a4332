package outbox

import (
	"context"
	"time"

	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/journal"
)

// Reader reads the blocks of a shard that are sent as one request: the next
// block, and the blocks after it. It reuses its buffers. Only one goroutine may
// use it at a time.
type Reader struct {
	journal *journal.Journal
	clock   clock.Clock
	shard   int

	free [][]byte
	kept [][]byte // of the last request
}

// NewReader returns a reader of a shard.
func NewReader(j *journal.Journal, c clock.Clock, shard int) *Reader {
	return &Reader{journal: j, clock: c, shard: shard}
}

// Begin begins another request. The payloads that Keep kept may be overwritten.
func (r *Reader) Begin() {
	r.free = append(r.free, r.kept...)
	r.kept = r.kept[:0]
}

// Keep keeps the payload of a block until Begin.
func (r *Reader) Keep(b journal.Block) { r.kept = append(r.kept, b.Payload) }

// Free releases the payload of a block for reuse.
func (r *Reader) Free(b journal.Block) { r.free = append(r.free, b.Payload) }

// Next returns the shard's next block, and waits for one if necessary. It
// returns false if ctx ended and the shard is empty. Call Keep or Free for the
// block.
func (r *Reader) Next(ctx context.Context) (journal.Block, bool) {
	b, err := r.journal.Next(ctx, r.shard, r.buffer())
	return b, err == nil
}

// Behind returns the block after last. If there is none yet, it waits until
// patience has passed since first was appended. It returns false if there is
// none, or if ctx ended. Call Keep or Free for the block.
type Behind func(first, last journal.Block, patience time.Duration) (journal.Block, bool)

// Follow returns a Behind for the blocks of one request. Call stop after its last
// use.
func (r *Reader) Follow(ctx context.Context) (behind Behind, stop func()) {
	var waiting context.Context // nil until it must wait
	end := func() {}
	behind = func(first, last journal.Block, patience time.Duration) (journal.Block, bool) {
		buf := r.buffer()
		if b, ok := r.journal.TryAfter(last, buf); ok {
			return b, true
		}
		if left := Remaining(first, patience, r.clock.Now()); left > 0 && ctx.Err() == nil {
			if waiting == nil {
				var cancel context.CancelFunc
				waiting, cancel = context.WithCancel(ctx)
				alarm := clock.AfterFunc(r.clock, left, cancel)
				end = func() { alarm.Stop(); cancel() }
			}
			if b, err := r.journal.After(waiting, last, buf); err == nil {
				return b, true
			}
		}
		if buf != nil {
			r.free = append(r.free, buf)
		}
		return journal.Block{}, false
	}
	return behind, func() { end() }
}

// buffer returns memory for a block, or nil if there is none.
func (r *Reader) buffer() []byte {
	n := len(r.free) - 1
	if n < 0 {
		return nil
	}
	b := r.free[n]
	r.free = r.free[:n]
	return b[:0]
}

// Remaining returns how much longer a block may wait if its total waiting time
// is all. It is never more than all, even if the clock was set back.
func Remaining(b journal.Block, all time.Duration, now time.Time) time.Duration {
	return min(time.UnixMilli(b.Time).Add(all).Sub(now), all)
}
