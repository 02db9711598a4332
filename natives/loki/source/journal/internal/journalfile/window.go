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

// windows read a file in pieces and keep the last ones.
//
// journald changes objects in place: pointers, and the items at the end of entry
// arrays. What is kept is therefore dropped when the file has grown (forget).
type windows struct {
	f       *os.File
	kept    [windowCount]window
	scratch []byte // for what is not within one window
}

type window struct {
	at  int64
	buf []byte // nil: none
}

// read returns n bytes at an offset, valid until the next call.
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

// wrap tells the end of a file, which is damage, from failures to read it.
func (w *windows) wrap(err error, at uint64) error {
	if errors.Is(err, io.EOF) {
		return &damage{fmt.Sprintf("the file ends before an object at offset %d", at)}
	}
	return fmt.Errorf("cannot read journal file: %w", err)
}

// forget drops what is kept.
func (w *windows) forget() {
	for i := range w.kept {
		w.kept[i].buf = w.kept[i].buf[:0]
	}
}

// free gives the memory back.
func (w *windows) free() { w.kept, w.scratch = [windowCount]window{}, nil }
