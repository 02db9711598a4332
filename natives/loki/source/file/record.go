package file

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"slices"

	"github.com/cespare/xxhash/v2"
)

// The positions log: "WEIRPOS\n", version u32 little endian, then records of
// length u32, CRC32C of the payload u32 and the payload, which consists of a
// kind, uvarints and strings. An incomplete record at the end results from a
// killed process and is not damage.
const (
	logMagic   = "WEIRPOS\n"
	logVersion = 1
	logHeader  = len(logMagic) + 4
	recordHead = 8

	kindPosition = 1 // all fields of a position
	kindSent     = 2 // a range of a position
	kindDone     = 3 // the end of a range
	kindGone     = 4 // the removal of a position
	kindBoot     = 5 // the boot of the machine in which the log is written, and whether the process stopped normally
)

// The flags of a position.
const (
	isFinished = 1
	hasBegan   = 2 // the start offset follows
)

// mark is the hash of n bytes.
type mark struct {
	n   int
	sum uint64
}

func markOf(b []byte) mark { return mark{len(b), xxhash.Sum64(b)} }

// marks reports whether m is the mark of b. The mark of nothing matches
// everything.
func (m mark) marks(b []byte) bool { return m.n == 0 || markOf(b) == m }

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func appendHeader(dst []byte) []byte {
	return binary.LittleEndian.AppendUint32(append(dst, logMagic...), logVersion)
}

// appendRecord appends a record whose payload build appends.
func appendRecord(dst []byte, build func([]byte) []byte) []byte {
	at := len(dst)
	dst = build(append(dst, make([]byte, recordHead)...))
	payload := dst[at+recordHead:]
	binary.LittleEndian.PutUint32(dst[at:], uint32(len(payload)))
	binary.LittleEndian.PutUint32(dst[at+4:], crc32.Checksum(payload, castagnoli))
	return dst
}

func appendInts(dst []byte, vs ...int64) []byte {
	for _, v := range vs {
		dst = binary.AppendUvarint(dst, uint64(v))
	}
	return dst
}

func appendString(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

func appendMark(dst []byte, m mark) []byte {
	return binary.LittleEndian.AppendUint64(binary.AppendUvarint(dst, uint64(m.n)), m.sum)
}

func appendPosition(dst []byte, p *position) []byte {
	return appendRecord(dst, func(b []byte) []byte {
		b = binary.AppendUvarint(append(b, kindPosition), p.n)
		b = appendString(appendString(appendString(b, p.labels), p.path), p.real)
		b = binary.AppendUvarint(binary.AppendUvarint(b, p.id.dev), p.id.ino)
		b = appendMark(appendMark(b, p.head), p.tail)
		flags := int64(hasBegan)
		if p.finished {
			flags |= isFinished
		}
		b = appendInts(b, p.read, p.last, p.written, flags, p.began, int64(len(p.open)))
		for _, r := range p.open {
			b = appendInts(b, r.from, r.to, r.base, r.lines)
		}
		return b
	})
}

func appendSent(dst []byte, n uint64, r span, tail mark, written int64) []byte {
	return appendRecord(dst, func(b []byte) []byte {
		b = binary.AppendUvarint(append(b, kindSent), n)
		return appendMark(appendInts(b, r.from, r.to, r.base, r.lines, written), tail)
	})
}

func appendDone(dst []byte, n uint64, from int64) []byte {
	return appendRecord(dst, func(b []byte) []byte {
		return appendInts(binary.AppendUvarint(append(b, kindDone), n), from)
	})
}

func appendBoot(dst []byte, boot string, closed bool) []byte {
	return appendRecord(dst, func(b []byte) []byte {
		var end int64
		if closed {
			end = 1
		}
		return appendInts(appendString(append(b, kindBoot, 0), boot), end)
	})
}

func appendGone(dst []byte, n uint64) []byte {
	return appendRecord(dst, func(b []byte) []byte { return binary.AppendUvarint(append(b, kindGone), n) })
}

var errRecord = errors.New("a record is malformed")

// load reads a log. If it ends before its end, the error is the reason; the
// records before are used.
func (s *positions) load(b []byte) error {
	if len(b) < logHeader && string(b) == string(appendHeader(nil)[:len(b)]) {
		return nil // killed while the log was created
	}
	if len(b) < logHeader || string(b[:len(logMagic)]) != logMagic {
		return fmt.Errorf("%s is no positions log", s.path)
	}
	if v := binary.LittleEndian.Uint32(b[len(logMagic):]); v != logVersion {
		return fmt.Errorf("%s has version %d, this weir knows %d", s.path, v, logVersion)
	}
	for at := logHeader; at < len(b); {
		rest := b[at:]
		if len(rest) < recordHead {
			return nil
		}
		n := int64(binary.LittleEndian.Uint32(rest))
		if n > int64(len(rest)-recordHead) {
			if recordAfter(rest[1:]) {
				return fmt.Errorf("%s is damaged at byte %d", s.path, at)
			}
			return nil
		}
		payload := rest[recordHead : recordHead+int(n)]
		if crc32.Checksum(payload, castagnoli) != binary.LittleEndian.Uint32(rest[4:]) {
			if int(n)+recordHead == len(rest) {
				return nil // results from a power failure
			}
			return fmt.Errorf("%s is damaged at byte %d", s.path, at)
		}
		if err := s.readRecord(payload); err != nil {
			return fmt.Errorf("%s is damaged at byte %d: %w", s.path, at, err)
		}
		at += recordHead + int(n)
	}
	return nil
}

// recordAfter reports whether b contains a valid record at any position.
func recordAfter(b []byte) bool {
	for len(b) > recordHead {
		n := int64(binary.LittleEndian.Uint32(b))
		if n > 0 && n <= int64(len(b)-recordHead) && crc32.Checksum(b[recordHead:recordHead+n], castagnoli) == binary.LittleEndian.Uint32(b[4:]) {
			return true
		}
		b = b[1:]
	}
	return false
}

// readRecord applies one record.
func (s *positions) readRecord(payload []byte) error {
	d := decoder{b: payload}
	kind, n := d.byte(), d.uint()
	p := s.all[n]
	switch kind {
	case kindPosition:
		p = d.position(n)
	case kindSent:
		r, written := d.span(), d.int()
		tail := d.mark()
		if p != nil && !d.bad {
			s.remember(n, sentRange{r, tail})
			p.open = append(p.open, r)
			p.read, p.tail, p.written, p.last = r.to, tail, written, max(p.last, r.base+r.lines-1)
		}
	case kindDone:
		from := d.int()
		if p != nil {
			p.open = slices.DeleteFunc(p.open, func(r span) bool { return r.from == from })
		}
	case kindGone:
		p = nil
	case kindBoot:
		s.wrote, s.closed = d.string(), d.int() == 1
	default:
		return fmt.Errorf("%w: kind %d", errRecord, kind)
	}
	if d.bad || len(d.b) > 0 {
		return errRecord
	}
	if p == nil {
		delete(s.all, n)
		return nil
	}
	s.all[n] = p
	s.next = max(s.next, n)
	return nil
}

// decoder decodes a payload. bad is true if the payload is invalid.
type decoder struct {
	b   []byte
	bad bool
}

func (d *decoder) bytes(n int) []byte {
	if n < 0 || n > len(d.b) {
		d.b, d.bad = nil, true
		return nil
	}
	b := d.b[:n]
	d.b = d.b[n:]
	return b
}

func (d *decoder) byte() byte {
	if b := d.bytes(1); b != nil {
		return b[0]
	}
	return 0
}

func (d *decoder) uint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.b, d.bad = nil, true
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) int() int64 {
	v := d.uint()
	if v > math.MaxInt64 {
		d.bad = true
		return 0
	}
	return int64(v)
}

func (d *decoder) string() string { return string(d.bytes(int(min(d.uint(), math.MaxInt32)))) }

func (d *decoder) mark() mark {
	n := d.int()
	if n > headSize {
		d.bad = true
	}
	m := mark{n: int(min(n, headSize))}
	if b := d.bytes(8); b != nil {
		m.sum = binary.LittleEndian.Uint64(b)
	}
	return m
}

func (d *decoder) span() span {
	r := span{d.int(), d.int(), d.int(), d.int()}
	if r.to < r.from {
		d.bad = true
	}
	return r
}

func (d *decoder) position(n uint64) *position {
	p := &position{n: n, labels: d.string(), path: d.string(), real: d.string()}
	p.id = identity{d.uint(), d.uint()}
	p.head, p.tail = d.mark(), d.mark()
	p.read, p.last, p.written = d.int(), d.int(), d.int()
	flags := d.int()
	p.finished = flags&isFinished != 0
	if flags&hasBegan != 0 {
		p.began = d.int()
	}
	for range d.int() {
		if d.bad {
			break
		}
		p.open = append(p.open, d.span())
	}
	return p
}
