package file

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"
)

// errChanged means that the content of a file before the position has changed.
var errChanged = errors.New("the content before the position is another one")

// logFile is a file that a follower reads: the file at the path, or a rotated one.
type logFile struct {
	f        *os.File // nil while it is parked: closed because too many files are open
	id       identity
	real     string // its path, with symbolic links resolved
	pos      *position
	text     textFormat
	packed   decompression
	cursor   cursor
	seen     observation
	rotation rotation
}

// textFormat is the encoding of a file.
type textFormat struct {
	declared *coding // from the arguments
	actual   *coding // from the byte order mark; nil until the start of the file was read
}

// cursor is the read position in a file.
type cursor struct {
	offset  int64 // where the next range begins
	head    mark  // of the first bytes of the file
	tail    mark  // of the bytes before offset
	fresh   bool  // no line was read yet, at most a hole
	again   []span
	scanned int64 // no line ends between offset and scanned
}

// newCursor returns a cursor at p. The open ranges of p are read again first.
func newCursor(p *position) cursor {
	return cursor{offset: p.read, head: p.head, tail: p.tail, fresh: p.read == 0, again: append([]span(nil), p.open...)}
}

// advance moves to the end of a range that was read for the first time.
func (c *cursor) advance(r chunk) {
	if !r.again {
		c.offset, c.tail, c.fresh, c.scanned = r.to, r.tail, false, 0
	}
}

// setTail sets tail to the mark of the last bytes of b, which precede the offset.
func (c *cursor) setTail(b []byte) { c.tail = markOf(b[max(0, len(b)-tailSize):]) }

// observation is the size and the time of a file at the last check.
type observation struct {
	raw      int64     // the size of the file
	size     int64     // the size of its content, which differs from raw if the file is compressed
	before   int64     // the size of its content at the previous check
	written  time.Time // when the file was last written to
	earlier  time.Time // written at the previous check
	grew     time.Time // when a check last found that the file had grown
	compared int64     // the size when the content was last compared with what was read
	doubted  bool      // the content has to be compared with what was read
}

// hasChanged reports whether the file was written to since the last look.
func (o *observation) hasChanged(fi fs.FileInfo) bool {
	return fi.Size() != o.raw || !fi.ModTime().Equal(o.written)
}

// decompression is the state of reading a compressed file. Its zero value is that
// of a file that is not compressed.
type decompression struct {
	in  *inflater
	end error // nil: there may be more to read; io.EOF: read to its end; otherwise, why the rest cannot be read
}

// isEnded reports whether nothing more can be read until the file changes.
func (d *decompression) isEnded() bool { return d.end != nil }

// problem returns why the rest of the file cannot be read, or nil.
func (d *decompression) problem() error {
	if d.end == io.EOF {
		return nil
	}
	return d.end
}

// finish records that the inflater has reached the end. err is nil at the end of
// the file.
func (d *decompression) finish(err error) {
	if d.end = err; err == nil {
		d.end = io.EOF
	}
}

// restart makes the next read start over, because the file has changed.
func (d *decompression) restart() {
	d.end = nil
	d.in.reset()
}

// newLogFile returns a log file that reads f, which fi describes.
func newLogFile(f *os.File, fi fs.FileInfo, resolved string, c *coding, format Format) *logFile {
	id, _ := identify(f, fi)
	lf := &logFile{f: f, id: id, real: resolved, text: textFormat{declared: c}, cursor: cursor{fresh: true}, seen: observation{raw: fi.Size(), written: fi.ModTime(), size: fi.Size()}}
	if format != "" {
		lf.packed.in = &inflater{f: f, format: format}
		lf.seen.size = unknownSize
	}
	return lf
}

func (lf *logFile) isCompressed() bool { return lf.packed.in != nil }

func (lf *logFile) isParked() bool { return lf.f == nil }

// park closes the file. It is opened again when it is its turn to be read.
func (lf *logFile) park() {
	lf.close()
	lf.f = nil
}

// resumeFrom makes lf continue at p.
func (lf *logFile) resumeFrom(p *position) { lf.pos, lf.cursor = p, newCursor(p) }

// forgetContent resets what is known about the content, which has changed.
func (lf *logFile) forgetContent() {
	if fi, err := lf.f.Stat(); err == nil {
		lf.seen.raw, lf.seen.written = fi.Size(), fi.ModTime()
	}
	lf.seen.size, lf.seen.compared = lf.seen.raw, 0
	if lf.isCompressed() {
		lf.seen.size = unknownSize
		lf.packed.restart()
	}
	lf.cursor.again, lf.text.actual = nil, nil
}

// refresh updates the observation from the open file and returns the number of
// names that the file has.
func (lf *logFile) refresh(now time.Time) (names uint64, err error) {
	fi, err := lf.f.Stat()
	if err != nil {
		return 1, err
	}
	_, names = identify(lf.f, fi)
	lf.observe(fi, now)
	return names, nil
}

// observe updates the observation. The size of an expired file does not increase
// any more, because data written to it after max_wait is not read.
func (lf *logFile) observe(fi fs.FileInfo, now time.Time) {
	o := &lf.seen
	if fi.Size() != o.raw {
		o.grew = now
	}
	if !lf.isCompressed() {
		if size := fi.Size(); !lf.rotation.isExpired() || size < o.size {
			o.before, o.size = o.size, size
		}
	} else if o.hasChanged(fi) {
		o.size = unknownSize
		lf.packed.restart()
	}
	o.raw, o.earlier, o.written = fi.Size(), o.written, fi.ModTime()
}

// hasPartialLine reports whether the rest to be read is a single line without an
// end.
func (lf *logFile) hasPartialLine() bool {
	c := &lf.cursor
	return len(c.again) == 0 && lf.seen.size > c.offset && lf.seen.size == c.scanned
}

// hasUnread reports whether there may be a complete line to read.
func (lf *logFile) hasUnread() bool {
	c := &lf.cursor
	return len(c.again) > 0 || lf.seen.size > max(c.offset, c.scanned)
}

func (lf *logFile) close() {
	if lf.isCompressed() {
		lf.packed.in.reset()
	}
	_ = lf.f.Close() // the file was only read
}

// checkRegular returns an error for files that cannot be followed.
func checkRegular(path string, fi fs.FileInfo) error {
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
