package file

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"
	"unicode/utf8"
)

const (
	// headSize is how many bytes at its start identify a file.
	headSize = 1024
	// tailSize is how many bytes before its offset are checked at every read.
	tailSize = 64
	// chunkSize is the most that one batch is made of, unless one line is longer.
	chunkSize = 256 << 10
	// maxLine is the longest line; what is longer is cut.
	maxLine = 16 << 20
	// scanSize is how much is read of a long line that has no end yet.
	scanSize = 64 << 10
)

// errChanged means that the content of a file before the position has changed.
var errChanged = errors.New("the content before the position is another one")

// logFile is a file that a follower reads: the file at the path, or a rotated one.
type logFile struct {
	f      *os.File  // nil: closed until it is read, as there are too many
	in     *inflater // nil when the file is not compressed
	id     identity
	real   string
	coding *coding // as the arguments say
	actual *coding // as the file says, nil until its start was read
	pos    *position

	offset int64 // where the next range begins
	size   int64 // as last seen, of what is decompressed if it is
	before int64 // the size that was seen before that
	head   mark
	tail   mark
	fresh  bool   // nothing but a hole was read
	again  []span // to be read again

	scanned int64     // up to there is no end of a line
	grew    time.Time // when it last had more than before
	tracked int64     // the size when it was last compared with what was read
	raw     int64     // size of the file as last seen
	written time.Time // when the file was last written to, as last seen
	earlier time.Time // and as seen before that
	doubted bool      // what was read is to be compared with what is there
	rotation
	ended  bool  // compressed, and read to its end
	broken error // compressed, and not readable beyond what was read
}

// chunk is a range of a file and its lines.
type chunk struct {
	span
	lines []string
	tail  mark
	again bool // it was sent before
	holes int64
	bad   int // lines that could not be decoded
	cut   bool
}

// newLogFile takes over f, which is what fi describes. pos is what is known
// of it; its open ranges are read again.
func newLogFile(f *os.File, fi fs.FileInfo, real string, c *coding, format Format) *logFile {
	id, _ := identify(f, fi)
	lf := &logFile{f: f, id: id, real: real, coding: c, fresh: true, raw: fi.Size(), written: fi.ModTime(), size: fi.Size()}
	if format != "" {
		lf.in = &inflater{f: f, format: format}
		lf.size = unknownSize
	}
	return lf
}

// resume makes lf go on from a position.
func (lf *logFile) resume(p *position) {
	lf.pos, lf.offset, lf.head, lf.tail = p, p.read, p.head, p.tail
	lf.fresh = p.read == 0
	lf.scanned = 0
	lf.again = append([]span(nil), p.open...)
}

// readAt reads what is at an offset, less only at the end.
func (lf *logFile) readAt(b []byte, at int64) (int, error) {
	if lf.in != nil {
		return lf.in.readAt(b, at)
	}
	n, err := lf.f.ReadAt(b, at)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}

// hasMarks reports whether head and tail mark what is in lf before offset.
func (lf *logFile) hasMarks(head, tail mark, offset int64) (bool, error) {
	if lf.in == nil && lf.size < offset {
		return false, nil
	}
	ok, err := lf.marked(head, 0)
	if !ok || err != nil {
		return false, err
	}
	return lf.marked(tail, offset-int64(tail.n))
}

func (lf *logFile) marked(m mark, at int64) (bool, error) {
	b := make([]byte, m.n)
	n, err := lf.readAt(b, at)
	return n == m.n && m.marks(b), err
}

// refresh looks at the file itself: at how long it is, and how many names it has.
func (lf *logFile) refresh(now time.Time) (names uint64, err error) {
	fi, err := lf.f.Stat()
	if err != nil {
		return 1, err
	}
	_, names = identify(lf.f, fi)
	lf.updateSize(fi, now)
	return names, nil
}

// updateSize takes in how long the file is.
func (lf *logFile) updateSize(fi fs.FileInfo, now time.Time) {
	if fi.Size() != lf.raw {
		lf.grew = now
	}
	if lf.in == nil {
		if size := fi.Size(); !lf.expired || size < lf.size {
			lf.before, lf.size = lf.size, size
		}
	} else if fi.Size() != lf.raw || !fi.ModTime().Equal(lf.written) {
		lf.ended, lf.broken, lf.size = false, nil, unknownSize
		lf.in.reset()
	}
	lf.raw, lf.earlier, lf.written = fi.Size(), lf.written, fi.ModTime()
}

// waits reports whether all that is there is a part of a line.
func (lf *logFile) waits() bool {
	return len(lf.again) == 0 && lf.size > lf.offset && lf.size == lf.scanned
}

// unread reports whether there may be a whole line to read.
func (lf *logFile) unread() bool {
	return len(lf.again) > 0 || lf.size > max(lf.offset, lf.scanned)
}

// next reads the next range, of about limit bytes unless its first line is
// longer. With whole a line without an end is one when nothing comes after it.
// ok is false when there is no line yet. The error is errChanged when lf is not
// what it was.
func (lf *logFile) next(limit int, whole bool) (c chunk, ok bool, err error) {
	if len(lf.again) > 0 {
		return lf.repeat()
	}
	if lf.scanned-lf.offset > scanSize && !whole && lf.scanned-lf.offset < maxLine {
		if found, err := lf.scan(); !found || err != nil {
			return c, false, err
		}
	}
	for want := limit; ; want = min(2*want, maxLine) {
		c, ok, err = lf.try(want, whole)
		if ok || err != nil || c.to == 0 {
			return c, ok, err
		}
	}
}

// scan reads on in a long line and reports whether its end was found.
func (lf *logFile) scan() (bool, error) {
	b := make([]byte, scanSize)
	lf.scanned -= (lf.scanned - lf.offset) % int64(lf.actual.width())
	for lf.scanned < lf.size && lf.scanned-lf.offset < maxLine {
		n, err := lf.readAt(b, lf.scanned)
		if err != nil || n == 0 {
			return false, err
		}
		if lf.actual.index(b[:n]) >= 0 {
			return true, nil
		}
		lf.scanned += int64(n)
	}
	return lf.scanned-lf.offset >= maxLine, nil
}

// try reads want bytes. Without ok, c.to is not 0 when more would help.
func (lf *logFile) try(want int, whole bool) (c chunk, ok bool, err error) {
	if lf.in == nil {
		want = int(min(int64(want), lf.size-lf.offset))
	}
	before := int(min(lf.offset, tailSize))
	if lf.tail.n < before {
		before = lf.tail.n // nothing is known of what is before an imported position
	}
	arena := make([]byte, before+max(want, 0))
	n, err := lf.readAt(arena, lf.offset-int64(before))
	if err != nil && n <= before {
		return c, false, err
	}
	if n < before || !lf.tail.marks(arena[:before]) {
		return c, false, errChanged
	}
	atEnd := n < len(arena) || lf.in == nil && int64(want) == lf.size-lf.offset
	if lf.in != nil && n < len(arena) {
		lf.ended = true
		lf.broken = err
		whole = err == nil // it is finished, and so is its last line
		lf.size = lf.offset + int64(n-before)
	}
	data := arena[before:n]
	prefix := lf.start(data)
	c.holes = prefix.holes
	data = data[prefix.n:]
	lf.offset += int64(prefix.n)
	if prefix.n > 0 && len(data) == 0 {
		lf.setTail(arena[:n])
		return c, true, nil
	}
	end := lf.actual.end(data)
	switch {
	case whole && atEnd:
		end = len(data)
	case end > 0:
	case len(data) >= maxLine:
		c.cut = true
		end = lf.cut(data)
	case !atEnd:
		lf.offset -= int64(prefix.n)
		c.to = 1
		return c, false, nil
	}
	if end == 0 {
		lf.scanned = lf.offset + int64(len(data))
		if prefix.n > 0 {
			lf.setTail(arena[:before+prefix.n])
		}
		return c, prefix.n > 0, nil
	}
	c.lines, c.bad = lf.actual.split(data[:end])
	c.from, c.to = lf.offset, lf.offset+int64(end)
	all := arena[:len(arena[:n])-(len(data)-end)]
	c.tail = markOf(all[max(0, len(all)-tailSize):])
	return c, true, nil
}

// setTail marks the end of b as what is before the offset.
func (lf *logFile) setTail(b []byte) { lf.tail = markOf(b[max(0, len(b)-tailSize):]) }

// cut returns where a line that is too long is cut, between two characters.
func (lf *logFile) cut(b []byte) int {
	n := maxLine - maxLine%lf.actual.width()
	if lf.actual.enc == nil {
		for back := 0; back < utf8.UTFMax-1 && !utf8.RuneStart(b[n-1]); back++ {
			n--
		}
		if b[n-1] >= utf8.RuneSelf && utf8.RuneStart(b[n-1]) {
			n--
		}
	}
	return n
}

// zeros are what a hole is compared with: it may have gigabytes.
var zeros [4096]byte

type prefix struct {
	n     int
	holes int64
}

// start looks at the start of the file: at the mark of its encoding, and at the
// hole that is left where a writer goes on at its place in a file that was
// truncated. It returns how much of data is neither.
func (lf *logFile) start(data []byte) (s prefix) {
	if (!lf.fresh || lf.offset > 0) && lf.actual == nil {
		var b [4]byte
		n, _ := lf.readAt(b[:], 0) // what cannot be read has no mark
		lf.actual, _ = lf.coding.byMark(b[:n])
	}
	if !lf.fresh {
		return s
	}
	if lf.offset == 0 {
		lf.actual, s.n = lf.coding.byMark(data)
	}
	if lf.actual.width() == 1 {
		mark := s.n
		for len(data)-s.n >= len(zeros) && bytes.Equal(data[s.n:s.n+len(zeros)], zeros[:]) {
			s.n += len(zeros)
		}
		for s.n < len(data) && data[s.n] == 0 {
			s.n++
		}
		s.holes = int64(s.n - mark)
	}
	return s
}

// repeat reads the first range that is to be sent again.
func (lf *logFile) repeat() (c chunk, ok bool, err error) {
	r := lf.again[0]
	b := make([]byte, r.to-r.from)
	n, err := lf.readAt(b, r.from)
	if n < len(b) {
		if err == nil {
			err = errChanged
		}
		return c, false, err
	}
	fresh := lf.fresh
	lf.fresh = false
	lf.start(nil)
	lf.fresh = fresh
	c.span, c.again = r, true
	c.lines, c.bad = lf.actual.split(b)
	lf.again = lf.again[1:]
	return c, true, nil
}

// sent moves on past a range.
func (lf *logFile) sent(c chunk) {
	if c.again {
		return
	}
	lf.offset, lf.tail, lf.fresh, lf.scanned = c.to, c.tail, false, 0
}

// grownHead returns the mark of the start of the first upTo bytes, and whether it
// says more than the one before.
func (lf *logFile) grownHead(upTo int64) (mark, bool) {
	n := int(min(upTo, headSize))
	if n <= lf.head.n {
		return lf.head, false
	}
	b := make([]byte, n)
	if lf.in != nil {
		n = copy(b, lf.in.head)
	} else if m, err := lf.readAt(b, 0); err != nil || m < n {
		return lf.head, false
	}
	lf.head = markOf(b[:n])
	return lf.head, true
}

// lastLineEnd returns where the last whole line ends.
func (lf *logFile) lastLineEnd() (int64, error) {
	const step = 4096 // a multiple of all widths
	lf.start(nil)
	c := lf.coding
	var head [4]byte
	if n, _ := lf.readAt(head[:], 0); n > 0 {
		c, _ = c.byMark(head[:n])
	}
	b := make([]byte, step)
	for at := (lf.size - 1) / step * step; at >= 0; at -= step {
		n, err := lf.readAt(b, at)
		if err != nil {
			return 0, err
		}
		if end := c.end(b[:n]); end > 0 {
			return at + int64(end), nil
		}
	}
	return 0, nil
}

// forgetContent forgets what is known of the content, which has changed.
func (lf *logFile) forgetContent() {
	if fi, err := lf.f.Stat(); err == nil {
		lf.raw, lf.written = fi.Size(), fi.ModTime()
	}
	lf.size = lf.raw
	if lf.in != nil {
		lf.size, lf.ended, lf.broken = unknownSize, false, nil
		lf.in.reset()
	}
	lf.again, lf.actual, lf.tracked = nil, nil, 0
}

func (lf *logFile) close() {
	if lf.in != nil {
		lf.in.reset()
	}
	_ = lf.f.Close() // it was only read
}

// check refuses what cannot be followed.
func check(path string, fi fs.FileInfo) error {
	switch m := fi.Mode(); {
	case m.IsRegular():
		return nil
	case m.IsDir():
		return fmt.Errorf("cannot follow %s: it is a directory; name a file, or set file_match.enabled and use a pattern", path)
	case m&fs.ModeNamedPipe != 0:
		return fmt.Errorf("cannot follow %s: it is a named pipe; name a file", path)
	default:
		return fmt.Errorf("cannot follow %s: it is a device or a socket; name a file", path)
	}
}
