package journalfile

import (
	"errors"
	"fmt"
	"io"
	"os"
)

const (
	windowSize  = 16 << 10
	windowCount = 8
)

// windows read a file in pieces and cache the last ones.
//
// journald changes objects in place: pointers, and the items at the end of entry
// arrays. Therefore, the cache is cleared when the file has grown (forget).
type windows struct {
	f       *os.File
	kept    [windowCount]window
	scratch []byte // for data that is not within one window
}

type window struct {
	at  int64
	buf []byte // nil if unused
}

// read returns n bytes at an offset. They are valid until the next call.
func (w *windows) read(at, n uint64) ([]byte, error) {
	if at > 1<<62 || n > maxValue+dataSizeCompact {
		return nil, &damage{fmt.Sprintf("%d bytes at %d are out of range", n, at)}
	}
	from := at % windowSize
	if from+n > windowSize {
		if uint64(cap(w.scratch)) < n {
			w.scratch = make([]byte, n)
		}
		b := w.scratch[:n]
		if _, err := w.f.ReadAt(b, int64(at)); err != nil {
			return nil, w.wrap(err, at)
		}
		return b, nil
	}
	start := int64(at - from)
	k := &w.kept[(at/windowSize)%windowCount]
	if k.at != start || uint64(len(k.buf)) < from+n {
		if k.buf == nil {
			k.buf = make([]byte, windowSize)
		}
		k.buf = k.buf[:windowSize]
		got, err := w.f.ReadAt(k.buf, start)
		k.at, k.buf = start, k.buf[:got]
		if uint64(got) < from+n {
			return nil, w.wrap(err, at)
		}
	}
	return k.buf[from : from+n], nil
}

// wrap distinguishes the end of a file, which is damage, from read errors.
func (w *windows) wrap(err error, at uint64) error {
	if errors.Is(err, io.EOF) {
		return &damage{fmt.Sprintf("the file ends before an object at offset %d", at)}
	}
	return fmt.Errorf("cannot read journal file: %w", err)
}

// forget clears the cache.
func (w *windows) forget() {
	for i := range w.kept {
		w.kept[i].buf = w.kept[i].buf[:0]
	}
}

// free releases the memory.
func (w *windows) free() { w.kept, w.scratch = [windowCount]window{}, nil }
