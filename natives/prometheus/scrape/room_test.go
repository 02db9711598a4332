package scrape

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
)

// endless is a body that never ends.
type endless struct{ read int }

func (e *endless) Read(p []byte) (int, error) {
	e.read += len(p)
	return len(p), nil
}

// inUse returns the number of places taken in each room.
func inUse() (n []int) {
	for _, r := range rooms {
		n = append(n, len(r.places))
	}
	return n
}

func checkEmpty(t *testing.T) {
	t.Helper()
	for i, n := range inUse() {
		if n != 0 {
			t.Errorf("%d places of room %d are taken still", n, i)
		}
	}
}

// TestReadKeepsEveryByte: for all sizes, the bytes read are the bytes sent, with
// one byte of spare capacity.
func TestReadKeepsEveryByte(t *testing.T) {
	for _, n := range []int{0, 1, 511, 4095, 4096, 1 << 20, 1<<20 + 1, chunkSize - 512, chunkSize - 1, chunkSize, chunkSize + 1, 3*chunkSize + 12345} {
		sent := bytes.Repeat([]byte("0123456789abcde\n"), n/16+1)[:n]
		for range 2 { // the second time with reused memory
			b := bodies.Get().(*body)
			if err := b.read(t.Context(), bytes.NewReader(sent), maxBody); err != nil {
				t.Fatalf("%d bytes: %v", n, err)
			}
			if !bytes.Equal(b.buf, sent) || cap(b.buf) == len(b.buf) {
				t.Errorf("%d bytes came as %d, with %d of capacity", n, len(b.buf), cap(b.buf))
			}
			want := 0
			for _, r := range rooms {
				if n > r.above {
					want++
				}
			}
			if b.places < want {
				t.Errorf("a body of %d bytes has %d places, want %d", n, b.places, want)
			}
			b.free()
			if cap(b.buf) > rooms[0].above {
				t.Errorf("a buffer of %d bytes is kept for all targets", cap(b.buf))
			}
			checkEmpty(t)
		}
	}
}

// TestEndlessBody: an endless body is read up to the limit, in memory that the
// next body reuses.
func TestEndlessBody(t *testing.T) {
	const limit = 5*chunkSize + 100
	for range 3 {
		b, in := new(body), new(endless)
		if err := b.read(t.Context(), in, limit); !errors.Is(err, errBodySizeLimit) || in.read != limit {
			t.Errorf("read %d bytes of a limit of %d: %v", in.read, limit, err)
		}
		if got := b.size + len(b.buf); got != limit {
			t.Errorf("%d bytes are there", got)
		}
		b.free()
		checkEmpty(t)
	}
}

// TestLargeBodiesWaitForEachOther: the number of large bodies at a time is
// limited, and small bodies do not wait for them.
func TestLargeBodiesWaitForEachOther(t *testing.T) {
	most := cap(rooms[len(rooms)-1].places)
	const waiting = 3
	read, ends, hold := make(chan bool), make(chan error), make(chan struct{})
	ctx, cancel := context.WithCancelCause(t.Context())
	for range most + waiting {
		go func() {
			b := new(body)
			err := b.read(ctx, io.LimitReader(new(endless), chunkSize+1000), maxBody)
			if err == nil {
				read <- true
				<-hold
			}
			b.free()
			ends <- err
		}()
	}
	for range most {
		<-read
	}
	if got := inUse()[len(rooms)-1]; got != most {
		t.Errorf("%d large bodies are in memory, want %d", got, most)
	}
	small := new(body)
	if err := small.read(ctx, io.LimitReader(new(endless), 1<<20-1000), maxBody); err != nil || small.places != 0 {
		t.Errorf("a usual body has %d places: %v", small.places, err)
	}
	small.free()
	hold <- struct{}{} // one body ends, another one starts
	if err := <-ends; err != nil {
		t.Error(err)
	}
	<-read
	cancel(errTimeout)
	for range waiting - 1 {
		if err := <-ends; !errors.Is(err, errNoRoom) || outcome(err) != outcomeTimeout || !strings.Contains(err.Error(), "large bodies") {
			t.Errorf("who found no place got %v", err)
		}
	}
	close(hold)
	for range most {
		if err := <-ends; err != nil {
			t.Error(err)
		}
	}
	checkEmpty(t)
}
