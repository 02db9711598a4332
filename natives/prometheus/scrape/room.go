package scrape

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// maxBody is the size from which a body makes a scrape fail if body_size_limit is
// not set. A body with a million series is smaller.
const maxBody = 256 << 20

// room limits the number of bodies above a size. Bodies are kept in memory as a
// whole, and there may be thousands of targets. Therefore, a growing body needs a
// place in each room whose size it exceeds, and waits for it until its scrape
// times out. Targets of usual size never wait. Bodies take places in the order of
// the rooms and wait for nothing else, so there is no deadlock.
type room struct {
	above  int // bytes
	places chan struct{}
}

// rooms belong to the process, because its memory is limited.
var rooms = []room{
	{above: 1 << 20, places: make(chan struct{}, 32)},
	{above: chunkSize, places: make(chan struct{}, 2)},
}

// chunkSize is the maximum size of the buffer in which a body grows. A larger
// body is read in chunks of this size, which are joined when the end is reached.
const chunkSize = 16 << 20

// chunks is the pool of buffers larger than 1 MiB, up to chunkSize. They are
// separate from the small buffers: those are used by all targets in turn, and
// each of them would become large over time.
var chunks sync.Pool

var errNoRoom = errors.New("other large bodies were being read all the time")

// reserveMemory takes the additional places that a body of n bytes needs.
func (b *body) reserveMemory(ctx context.Context, n int) error {
	for b.places < len(rooms) && n > rooms[b.places].above {
		select {
		case rooms[b.places].places <- struct{}{}:
			b.places++
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", errNoRoom, context.Cause(ctx))
		}
	}
	return nil
}

// releaseMemory returns all places.
func (b *body) releaseMemory() {
	for ; b.places > 0; b.places-- {
		<-rooms[b.places-1].places
	}
}

// grow makes room in buf after the bytes that were read.
func (b *body) grow(ctx context.Context) error {
	if cap(b.buf) >= chunkSize {
		if err := b.reserveMemory(ctx, chunkSize+1); err != nil {
			return err
		}
		b.full = append(b.full, b.buf)
		b.size += len(b.buf)
		b.buf = newBuffer(chunkSize)
		return nil
	}
	n := min(max(4<<10, 2*cap(b.buf)), chunkSize)
	if err := b.reserveMemory(ctx, n); err != nil {
		return err
	}
	grown := append(newBuffer(n), b.buf...)
	keepBuffer(b.buf)
	b.buf = grown
	return nil
}

// join joins the chunks of a body. The buffer of the result is not kept, because
// the next body may not be as large.
func (b *body) join() {
	if b.size == 0 {
		return
	}
	all := make([]byte, 0, b.size+len(b.buf)+1)
	for i, c := range b.full {
		all = append(all, c...)
		keepBuffer(c)
		b.full[i] = nil
	}
	all = append(all, b.buf...)
	keepBuffer(b.buf)
	b.buf, b.full, b.size = all, nil, 0
}

// newBuffer returns an empty buffer with a capacity of at least n bytes.
func newBuffer(n int) []byte {
	if n > rooms[0].above {
		if c, _ := chunks.Get().(*[]byte); c != nil && cap(*c) >= n {
			return (*c)[:0]
		}
	}
	return make([]byte, 0, n)
}

func keepBuffer(b []byte) {
	if cap(b) > rooms[0].above && cap(b) <= chunkSize {
		chunks.Put(&b)
	}
}
