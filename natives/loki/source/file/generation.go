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
	// headSize is how many bytes at its start a generation is known by.
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

// errChanged says that what was read of a generation is not there any more.
var errChanged = errors.New("the content before the position is another one")

// generation is one content at a path, open.
type generation struct {
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

// chunk is a range of a generation and its lines.
type chunk struct {
	span
	lines []string
	tail  mark
	again bool // it was sent before
	holes int64
	bad   int // lines that could not be decoded
	cut   bool
}

// newGeneration takes over f, which is what fi describes. pos is what is known
// of it; its open ranges are read again.
func newGeneration(f *os.File, fi fs.FileInfo, real string, c *coding, format Format) *generation {
	id, _ := identify(f, fi)
	g := &generation{f: f, id: id, real: real, coding: c, fresh: true, raw: fi.Size(), written: fi.ModTime(), size: fi.Size()}
	if format != "" {
		g.in = &inflater{f: f, format: format}
		g.size = unknownSize
	}
	return g
}

// resume makes g go on from a position.
func (g *generation) resume(p *position) {
	g.pos, g.offset, g.head, g.tail = p, p.read, p.head, p.tail
	g.fresh = p.read == 0
	g.scanned = 0
	g.again = append([]span(nil), p.open...)
}

// readAt reads what is at an offset, less only at the end.
func (g *generation) readAt(b []byte, at int64) (int, error) {
	if g.in != nil {
		return g.in.readAt(b, at)
	}
	n, err := g.f.ReadAt(b, at)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}

// hasMarks reports whether head and tail mark what is in g before offset.
func (g *generation) hasMarks(head, tail mark, offset int64) (bool, error) {
	if g.in == nil && g.size < offset {
		return false, nil
	}
	ok, err := g.marked(head, 0)
	if !ok || err != nil {
		return false, err
	}
	return g.marked(tail, offset-int64(tail.n))
}

func (g *generation) marked(m mark, at int64) (bool, error) {
	b := make([]byte, m.n)
	n, err := g.readAt(b, at)
	return n == m.n && m.marks(b), err
}

// refresh looks at the file itself: at how long it is, and how many names it has.
func (g *generation) refresh(now time.Time) (names uint64, err error) {
	fi, err := g.f.Stat()
	if err != nil {
		return 1, err
	}
	_, names = identify(g.f, fi)
	g.updateSize(fi, now)
	return names, nil
}

// updateSize takes in how long the file is.
func (g *generation) updateSize(fi fs.FileInfo, now time.Time) {
	if fi.Size() != g.raw {
		g.grew = now
	}
	if g.in == nil {
		if size := fi.Size(); !g.expired || size < g.size {
			g.before, g.size = g.size, size
		}
	} else if fi.Size() != g.raw || !fi.ModTime().Equal(g.written) {
		g.ended, g.broken, g.size = false, nil, unknownSize
		g.in.reset()
	}
	g.raw, g.earlier, g.written = fi.Size(), g.written, fi.ModTime()
}

// waits reports whether all that is there is a part of a line.
func (g *generation) waits() bool {
	return len(g.again) == 0 && g.size > g.offset && g.size == g.scanned
}

// unread reports whether there may be a whole line to read.
func (g *generation) unread() bool {
	return len(g.again) > 0 || g.size > max(g.offset, g.scanned)
}

// next reads the next range, of about limit bytes unless its first line is
// longer. With whole a line without an end is one when nothing comes after it.
// ok is false when there is no line yet. The error is errChanged when g is not
// what it was.
func (g *generation) next(limit int, whole bool) (c chunk, ok bool, err error) {
	if len(g.again) > 0 {
		return g.repeat()
	}
	if g.scanned-g.offset > scanSize && !whole && g.scanned-g.offset < maxLine {
		if found, err := g.scan(); !found || err != nil {
			return c, false, err
		}
	}
	for want := limit; ; want = min(2*want, maxLine) {
		c, ok, err = g.try(want, whole)
		if ok || err != nil || c.to == 0 {
			return c, ok, err
		}
	}
}

// scan reads on in a long line and reports whether its end was found.
func (g *generation) scan() (bool, error) {
	b := make([]byte, scanSize)
	g.scanned -= (g.scanned - g.offset) % int64(g.actual.width())
	for g.scanned < g.size && g.scanned-g.offset < maxLine {
		n, err := g.readAt(b, g.scanned)
		if err != nil || n == 0 {
			return false, err
		}
		if g.actual.index(b[:n]) >= 0 {
			return true, nil
		}
		g.scanned += int64(n)
	}
	return g.scanned-g.offset >= maxLine, nil
}

// try reads want bytes. Without ok, c.to is not 0 when more would help.
func (g *generation) try(want int, whole bool) (c chunk, ok bool, err error) {
	if g.in == nil {
		want = int(min(int64(want), g.size-g.offset))
	}
	before := int(min(g.offset, tailSize))
	if g.tail.n < before {
		before = g.tail.n // nothing is known of what is before an imported position
	}
	arena := make([]byte, before+max(want, 0))
	n, err := g.readAt(arena, g.offset-int64(before))
	if err != nil && n <= before {
		return c, false, err
	}
	if n < before || !g.tail.marks(arena[:before]) {
		return c, false, errChanged
	}
	atEnd := n < len(arena) || g.in == nil && int64(want) == g.size-g.offset
	if g.in != nil && n < len(arena) {
		g.ended = true
		g.broken = err
		whole = err == nil // it is finished, and so is its last line
		g.size = g.offset + int64(n-before)
	}
	data := arena[before:n]
	skipped := g.start(data)
	c.holes = skipped.holes
	data = data[skipped.n:]
	g.offset += int64(skipped.n)
	if skipped.n > 0 && len(data) == 0 {
		g.setTail(arena[:n])
		return c, true, nil
	}
	end := g.actual.end(data)
	switch {
	case whole && atEnd:
		end = len(data)
	case end > 0:
	case len(data) >= maxLine:
		c.cut = true
		end = g.cut(data)
	case !atEnd:
		g.offset -= int64(skipped.n)
		c.to = 1
		return c, false, nil
	}
	if end == 0 {
		g.scanned = g.offset + int64(len(data))
		if skipped.n > 0 {
			g.setTail(arena[:before+skipped.n])
		}
		return c, skipped.n > 0, nil
	}
	c.lines, c.bad = g.actual.split(data[:end])
	c.from, c.to = g.offset, g.offset+int64(end)
	all := arena[:len(arena[:n])-(len(data)-end)]
	c.tail = markOf(all[max(0, len(all)-tailSize):])
	return c, true, nil
}

// setTail marks the end of b as what is before the offset.
func (g *generation) setTail(b []byte) { g.tail = markOf(b[max(0, len(b)-tailSize):]) }

// cut returns where a line that is too long is cut, between two characters.
func (g *generation) cut(b []byte) int {
	n := maxLine - maxLine%g.actual.width()
	if g.actual.enc == nil {
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

type skipped struct {
	n     int
	holes int64
}

// start looks at the start of the file: at the mark of its encoding, and at the
// hole that is left where a writer goes on at its place in a file that was
// truncated. It returns how much of data is neither.
func (g *generation) start(data []byte) (s skipped) {
	if (!g.fresh || g.offset > 0) && g.actual == nil {
		var b [4]byte
		n, _ := g.readAt(b[:], 0) // what cannot be read has no mark
		g.actual, _ = g.coding.byMark(b[:n])
	}
	if !g.fresh {
		return s
	}
	if g.offset == 0 {
		g.actual, s.n = g.coding.byMark(data)
	}
	if g.actual.width() == 1 {
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
func (g *generation) repeat() (c chunk, ok bool, err error) {
	r := g.again[0]
	b := make([]byte, r.to-r.from)
	n, err := g.readAt(b, r.from)
	if n < len(b) {
		if err == nil {
			err = errChanged
		}
		return c, false, err
	}
	fresh := g.fresh
	g.fresh = false
	g.start(nil)
	g.fresh = fresh
	c.span, c.again = r, true
	c.lines, c.bad = g.actual.split(b)
	g.again = g.again[1:]
	return c, true, nil
}

// sent moves on past a range.
func (g *generation) sent(c chunk) {
	if c.again {
		return
	}
	g.offset, g.tail, g.fresh, g.scanned = c.to, c.tail, false, 0
}

// grownHead returns the mark of the start of the first upTo bytes, and whether it
// says more than the one before.
func (g *generation) grownHead(upTo int64) (mark, bool) {
	n := int(min(upTo, headSize))
	if n <= g.head.n {
		return g.head, false
	}
	b := make([]byte, n)
	if g.in != nil {
		n = copy(b, g.in.head)
	} else if m, err := g.readAt(b, 0); err != nil || m < n {
		return g.head, false
	}
	g.head = markOf(b[:n])
	return g.head, true
}

func (g *generation) close() {
	if g.in != nil {
		g.in.reset()
	}
	_ = g.f.Close() // it was only read
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
