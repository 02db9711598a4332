package file

import (
	"bytes"
	"errors"
	"io"
	"unicode/utf8"
)

const (
	// headSize is the number of bytes at the start of a file that identify it.
	headSize = 1024
	// tailSize is the number of bytes before its offset that are checked at every
	// read.
	tailSize = 64
	// chunkSize is the maximum number of bytes for one batch, unless one line is
	// longer.
	chunkSize = 256 << 10
	// maxLine is the maximum size of a line; longer lines are cut.
	maxLine = 16 << 20
	// scanSize is the number of bytes that are read at a time of a long line
	// whose end has not been found.
	scanSize = 64 << 10
)

// chunk is a range of a file and its lines.
type chunk struct {
	span
	lines []string
	tail  mark
	again bool  // it was sent before
	holes int64 // zero bytes that were skipped before it
	bad   int   // lines that could not be decoded
	cut   bool  // its line was too long and has been cut
}

// readAt fills b from an offset. It reads less only at the end.
func (lf *logFile) readAt(b []byte, at int64) (int, error) {
	if lf.isCompressed() {
		return lf.packed.in.readAt(b, at)
	}
	n, err := lf.f.ReadAt(b, at)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}

// hasMarks reports whether the bytes before offset have the marks head and tail.
func (lf *logFile) hasMarks(head, tail mark, offset int64) (bool, error) {
	if !lf.isCompressed() && lf.seen.size < offset {
		return false, nil
	}
	ok, err := lf.hasMarkAt(head, 0)
	if !ok || err != nil {
		return false, err
	}
	return lf.hasMarkAt(tail, offset-int64(tail.n))
}

// hasContentOf reports whether the content that c has read is in lf.
func (lf *logFile) hasContentOf(c *cursor) (bool, error) {
	return lf.hasMarks(c.head, c.tail, c.offset)
}

func (lf *logFile) hasMarkAt(m mark, at int64) (bool, error) {
	b := make([]byte, m.n)
	n, err := lf.readAt(b, at)
	return n == m.n && m.marks(b), err
}

// nextChunk reads the next range, of about limit bytes unless its first line is
// longer. With whole, a line without an end counts as a line if it is the last.
// ok is false if there is no line yet. The error is errChanged if the content
// before the range has changed.
func (lf *logFile) nextChunk(limit int, whole bool) (c chunk, ok bool, err error) {
	cur := &lf.cursor
	if len(cur.again) > 0 {
		return lf.readAgain()
	}
	if cur.scanned-cur.offset > scanSize && !whole && cur.scanned-cur.offset < maxLine {
		if found, err := lf.scanForEnd(); !found || err != nil {
			return c, false, err
		}
	}
	for want := limit; ; want = min(2*want, maxLine) {
		c, ok, err = lf.readRange(want, whole)
		if ok || err != nil || c.to == 0 {
			return c, ok, err
		}
	}
}

// scanForEnd reads on in a long line. It reports whether it found the end of the
// line, or enough to cut the line.
func (lf *logFile) scanForEnd() (bool, error) {
	cur := &lf.cursor
	b := make([]byte, scanSize)
	cur.scanned -= (cur.scanned - cur.offset) % int64(lf.text.actual.width())
	for cur.scanned < lf.seen.size && cur.scanned-cur.offset < maxLine {
		n, err := lf.readAt(b, cur.scanned)
		if err != nil || n == 0 {
			return false, err
		}
		if lf.text.actual.index(b[:n]) >= 0 {
			return true, nil
		}
		cur.scanned += int64(n)
	}
	return cur.scanned-cur.offset >= maxLine, nil
}

// readRange reads want bytes. If ok is false, c.to is not 0 if reading more would
// help.
func (lf *logFile) readRange(want int, whole bool) (c chunk, ok bool, err error) {
	cur := &lf.cursor
	if !lf.isCompressed() {
		want = int(min(int64(want), lf.seen.size-cur.offset))
	}
	before := int(min(cur.offset, tailSize))
	if cur.tail.n < before {
		before = cur.tail.n // the bytes before an imported position are unknown
	}
	arena := make([]byte, before+max(want, 0))
	n, err := lf.readAt(arena, cur.offset-int64(before))
	if err != nil && n <= before {
		return c, false, err
	}
	if n < before || !cur.tail.marks(arena[:before]) {
		return c, false, errChanged
	}
	atEnd := n < len(arena) || !lf.isCompressed() && int64(want) == lf.seen.size-cur.offset
	if lf.isCompressed() && n < len(arena) {
		lf.packed.finish(err)
		whole = err == nil // a complete file has a complete last line
		lf.seen.size = cur.offset + int64(n-before)
	}
	data := arena[before:n]
	prefix := lf.detectPrefix(data)
	c.holes = prefix.holes
	data = data[prefix.n:]
	cur.offset += int64(prefix.n)
	if prefix.n > 0 && len(data) == 0 {
		cur.setTail(arena[:n])
		return c, true, nil
	}
	end := lf.text.actual.end(data)
	switch {
	case whole && atEnd:
		end = len(data)
	case end > 0:
	case len(data) >= maxLine:
		c.cut = true
		end = lf.cutLongLine(data)
	case !atEnd:
		cur.offset -= int64(prefix.n)
		c.to = 1
		return c, false, nil
	}
	if end == 0 {
		cur.scanned = cur.offset + int64(len(data))
		if prefix.n > 0 {
			cur.setTail(arena[:before+prefix.n])
		}
		return c, prefix.n > 0, nil
	}
	c.lines, c.bad = lf.text.actual.split(data[:end])
	c.from, c.to = cur.offset, cur.offset+int64(end)
	all := arena[:len(arena[:n])-(len(data)-end)]
	c.tail = markOf(all[max(0, len(all)-tailSize):])
	return c, true, nil
}

// cutLongLine returns where a line that is too long is cut, between two characters.
func (lf *logFile) cutLongLine(b []byte) int {
	n := maxLine - maxLine%lf.text.actual.width()
	if lf.text.actual.enc == nil {
		for back := 0; back < utf8.UTFMax-1 && !utf8.RuneStart(b[n-1]); back++ {
			n--
		}
		if b[n-1] >= utf8.RuneSelf && utf8.RuneStart(b[n-1]) {
			n--
		}
	}
	return n
}

// zeros is compared with holes, which may be gigabytes long.
var zeros [4096]byte

// prefix is the part of a file before its text.
type prefix struct {
	n     int   // bytes, including the byte order mark
	holes int64 // zero bytes of n
}

// detectPrefix returns the length of the part of data before the text: the byte
// order mark, which sets the encoding, and the hole that remains in a truncated
// file if its writer continues at its old offset.
func (lf *logFile) detectPrefix(data []byte) (p prefix) {
	cur := &lf.cursor
	if (!cur.fresh || cur.offset > 0) && lf.text.actual == nil {
		var b [4]byte
		n, _ := lf.readAt(b[:], 0) // if it cannot be read, there is no mark
		lf.text.actual, _ = lf.text.declared.byMark(b[:n])
	}
	if !cur.fresh {
		return p
	}
	if cur.offset == 0 {
		lf.text.actual, p.n = lf.text.declared.byMark(data)
	}
	if lf.text.actual.width() == 1 {
		bom := p.n
		for len(data)-p.n >= len(zeros) && bytes.Equal(data[p.n:p.n+len(zeros)], zeros[:]) {
			p.n += len(zeros)
		}
		for p.n < len(data) && data[p.n] == 0 {
			p.n++
		}
		p.holes = int64(p.n - bom)
	}
	return p
}

// readAgain reads the first range that is to be sent again.
func (lf *logFile) readAgain() (c chunk, ok bool, err error) {
	cur := &lf.cursor
	r := cur.again[0]
	b := make([]byte, r.to-r.from)
	n, err := lf.readAt(b, r.from)
	if n < len(b) {
		if err == nil {
			err = errChanged
		}
		return c, false, err
	}
	fresh := cur.fresh
	cur.fresh = false
	lf.detectPrefix(nil)
	cur.fresh = fresh
	c.span, c.again = r, true
	c.lines, c.bad = lf.text.actual.split(b)
	cur.again = cur.again[1:]
	return c, true, nil
}

// extendHead returns the mark of the first upTo bytes, and whether it covers more
// bytes than the previous one.
func (lf *logFile) extendHead(upTo int64) (mark, bool) {
	cur := &lf.cursor
	n := int(min(upTo, headSize))
	if n <= cur.head.n {
		return cur.head, false
	}
	b := make([]byte, n)
	if lf.isCompressed() {
		n = copy(b, lf.packed.in.head)
	} else if m, err := lf.readAt(b, 0); err != nil || m < n {
		return cur.head, false
	}
	cur.head = markOf(b[:n])
	return cur.head, true
}

// lastLineEnd returns where the last whole line ends.
func (lf *logFile) lastLineEnd() (int64, error) {
	const step = 4096 // a multiple of all widths
	lf.detectPrefix(nil)
	c := lf.text.declared
	var head [4]byte
	if n, _ := lf.readAt(head[:], 0); n > 0 {
		c, _ = c.byMark(head[:n])
	}
	b := make([]byte, step)
	for at := (lf.seen.size - 1) / step * step; at >= 0; at -= step {
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
