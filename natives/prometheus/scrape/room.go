package scrape

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// maxBody is the size from which on a body makes a scrape fail where
// body_size_limit is not written. A million series come in less.
const maxBody = 256 << 20

// Bodies are in memory as a whole, and there may be thousands of targets. So a
// body that grows needs a place in each of the rooms below its size, and waits
// for one until its scrape times out; targets that are as usual never meet that.
// Who has a place in the last room waits for nothing more, so that no two wait
// for each other.
type room struct {
	above  int // bytes
	places chan struct{}
}

// rooms are those of the process, whose memory it is.
var rooms = []room{
	{above: 1 << 20, places: make(chan struct{}, 32)},
	{above: chunkSize, places: make(chan struct{}, 2)},
}

// chunkSize is the largest piece of memory that a body grows in. One that is
// larger is read in such chunks, and put together when it is known to end.
const chunkSize = 16 << 20

// chunks are buffers above 1 MiB, up to chunkSize. They are not kept with the
// small ones: those go round among all targets, and each would be large at last.
var chunks sync.Pool

var errNoRoom = errors.New("other large bodies were being read all the time")

// reserveMemory takes the places that a body of n bytes needs beyond those it has.
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

// releaseMemory gives all places back.
func (b *body) releaseMemory() {
	for ; b.places > 0; b.places-- {
		<-rooms[b.places-1].places
	}
}

// grow makes room in buf behind what was read.
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

// join puts the chunks of a body together. It may not be that large again, so
// what comes out is not kept.
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

// newBuffer returns an empty buffer for n bytes or more.
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
