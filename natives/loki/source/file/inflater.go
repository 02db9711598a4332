package file

import (
	"bufio"
	"compress/bzip2"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
)

// unknownSize is the size of a compressed file that was not read to its end yet.
const unknownSize = math.MaxInt64

// maxInflaters limits the number of decompressors, because each may need
// megabytes of memory.
const maxInflaters = 8

// inflater reads a compressed file at offsets of its decompressed content.
// Reading forward and within the last read is cheap; reading from an earlier
// offset starts over.
type inflater struct {
	f      *os.File
	format Format
	r      io.Reader // nil: decompression has to start
	at     int64     // offset of the start of window
	window []byte    // the bytes that were read last
	head   []byte    // the first bytes of the content
	err    error     // why the content ends; io.EOF at the end of the file
}

// reset resets everything except head.
func (in *inflater) reset() { *in = inflater{f: in.f, format: in.format, head: in.head} }

func (in *inflater) begin() error {
	*in = inflater{f: in.f, format: in.format}
	src := bufio.NewReaderSize(io.NewSectionReader(in.f, 0, math.MaxInt64), 16<<10)
	var err error
	switch in.format {
	case z:
		in.r, err = zlib.NewReader(src)
	case bz2:
		in.r = bzip2.NewReader(src)
	default:
		in.r, err = gzip.NewReader(src)
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF // nothing was written yet
	}
	return err
}

// readAt reads at an offset. It returns fewer bytes only at the end, and an error
// if the file is truncated or invalid.
func (in *inflater) readAt(b []byte, at int64) (int, error) {
	if in.r == nil || at < in.at {
		if err := in.begin(); err != nil {
			in.r = nil
			return 0, fmt.Errorf("cannot decompress as %s: %w", in.format, err)
		}
	}
	end := at + int64(len(b))
	for in.err == nil && in.at+int64(len(in.window)) < end {
		in.readTowards(at, end)
	}
	var n int
	if from := at - in.at; from < int64(len(in.window)) {
		n = copy(b, in.window[from:])
	}
	if n < len(b) && in.err != nil && !errors.Is(in.err, io.EOF) {
		return n, fmt.Errorf("cannot decompress as %s: %w", in.format, in.err)
	}
	return n, nil
}

// readTowards reads up to end and discards the bytes before at.
func (in *inflater) readTowards(at, end int64) {
	if drop := min(at-in.at, int64(len(in.window))); drop > 0 {
		in.window = in.window[:copy(in.window, in.window[drop:])]
		in.at += drop
	}
	have := len(in.window)
	room := int(min(end-in.at-int64(have), 32<<10))
	if cap(in.window) < have+room {
		grown := make([]byte, have, max(have+room, int(min(end-at, chunkSize+tailSize))))
		copy(grown, in.window)
		in.window = grown
	}
	n, err := in.r.Read(in.window[have : have+room])
	in.window, in.err = in.window[:have+n], err
	if missing := headSize - len(in.head); missing > 0 && int64(len(in.head)) == in.at+int64(have) {
		in.head = append(in.head, in.window[have:have+min(n, missing)]...)
	}
}

// inflaters are the open inflaters, at most maxInflaters.
type inflaters struct {
	mu   sync.Mutex
	open map[*inflater]struct{}
}

// acquire reports whether in may be open.
func (s *inflaters) acquire(in *inflater) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.open[in]; !ok && len(s.open) >= maxInflaters {
		return false
	}
	s.open[in] = struct{}{}
	return true
}

// release closes in.
func (s *inflaters) release(in *inflater) {
	in.reset()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, in)
}
