package journal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
)

// A segment file is a header and records:
//
//	segment header, 32 bytes: "WEIRJNL\n", version u32, flags u32 (1: a
//	barrier precedes the first record), sequence number of the first record
//	u64, CRC32C of the preceding 24 bytes u32, zero u32
//
//	record header, 48 bytes: "\xd7WJ\x01", payload length u32, sequence number
//	u64, time i64, lowest sample timestamp i64, samples u32, shard u8, kind u8,
//	zero u16, CRC32C of the payload u32, CRC32C of the preceding 44 bytes u32;
//	then the payload
//
// Integers are little endian. The record header has its own checksum, so that
// the length can be trusted before the payload is read.
const (
	segmentMagic      = "WEIRJNL\n"
	segmentVersion    = 1
	segmentHeaderSize = 32
	flagBarrier       = 1
	recordMagic       = "\xd7WJ\x01"
	recordHeaderSize  = 48
	crcOffset         = 40 // of the payload, in a record
	maxPayload        = 256 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// file contains the methods of *os.File that the journal uses; tests inject
// faults.
type file interface {
	io.ReaderAt
	io.WriterAt
	Truncate(size int64) error
	Sync() error
	Close() error
}

func openOSFile(path string, flag int) (file, error) {
	f, err := os.OpenFile(path, flag, 0o600)
	if err != nil {
		return nil, err // a nil *os.File in the interface would not equal nil
	}
	return f, nil
}

// record is a record header.
type record struct {
	size    int // of the payload
	seq     uint64
	time    int64
	first   int64
	samples int
	shard   int
	kind    uint8
	crc     uint32
}

func appendSegmentHeader(dst []byte, first uint64, flags uint32) []byte {
	n := len(dst)
	dst = append(dst, segmentMagic...)
	dst = binary.LittleEndian.AppendUint32(dst, segmentVersion)
	dst = binary.LittleEndian.AppendUint32(dst, flags)
	dst = binary.LittleEndian.AppendUint64(dst, first)
	dst = binary.LittleEndian.AppendUint32(dst, crc32.Checksum(dst[n:], castagnoli))
	return binary.LittleEndian.AppendUint32(dst, 0)
}

func appendRecord(dst []byte, seq uint64, b *Block) []byte {
	n := len(dst)
	le := binary.LittleEndian
	dst = append(dst, recordMagic...)
	dst = le.AppendUint32(dst, uint32(len(b.Payload)))
	dst = le.AppendUint64(dst, seq)
	dst = le.AppendUint64(dst, uint64(b.Time))
	dst = le.AppendUint64(dst, uint64(b.First))
	dst = le.AppendUint32(dst, uint32(b.Samples))
	dst = append(dst, byte(b.Shard), b.Kind, 0, 0)
	dst = le.AppendUint32(dst, crc32.Checksum(b.Payload, castagnoli)) // at crcOffset
	dst = le.AppendUint32(dst, crc32.Checksum(dst[n:], castagnoli))
	return append(dst, b.Payload...)
}

// parseRecord parses a record header from the first 48 bytes of b.
func parseRecord(b []byte) (r record, ok bool) {
	le := binary.LittleEndian
	if string(b[:4]) != recordMagic || le.Uint32(b[44:]) != crc32.Checksum(b[:44], castagnoli) {
		return r, false
	}
	r = record{
		size:    int(le.Uint32(b[4:])),
		seq:     le.Uint64(b[8:]),
		time:    int64(le.Uint64(b[16:])),
		first:   int64(le.Uint64(b[24:])),
		samples: int(le.Uint32(b[32:])),
		shard:   int(b[36]),
		kind:    b[37],
		crc:     le.Uint32(b[crcOffset:]),
	}
	return r, r.size <= maxPayload && r.shard < MaxShards && r.seq > 0
}

// errUnknownVersion is the error for a segment of a later weir.
var errUnknownVersion = errors.New("unknown version")

// checkSegmentHeader checks the header. The error is errUnknownVersion if a
// valid header has another version. sound is false if the header is damaged;
// the records may still be intact.
func checkSegmentHeader(r io.ReaderAt) (flags uint32, sound bool, err error) {
	var b [segmentHeaderSize]byte
	if n, err := r.ReadAt(b[:], 0); n < len(b) {
		if err == io.EOF {
			err = nil
		}
		return 0, false, err
	}
	le := binary.LittleEndian
	if string(b[:8]) != segmentMagic || le.Uint32(b[24:]) != crc32.Checksum(b[:24], castagnoli) {
		return 0, false, nil
	}
	if v := le.Uint32(b[8:]); v != segmentVersion {
		return 0, true, fmt.Errorf("%w %d", errUnknownVersion, v)
	}
	return le.Uint32(b[12:]), true, nil
}

// scanner reads the record headers of a segment in order. It skips and counts
// bytes that are not records, up to the next valid header.
type scanner struct {
	r       io.ReaderAt
	off     int64 // where to search for the next record
	end     int64 // end of the readable part
	skipped int64 // bytes skipped before the last returned record
	torn    int64 // bytes at the end that are not a record
	err     error // read error
	buf     []byte
	hdr     [recordHeaderSize]byte
}

// next returns the next record and its offset. At the end of the segment, ok is
// false; err is set if reading failed.
func (s *scanner) next() (r record, off int64, ok bool) {
	s.skipped = 0
	if r, ok := s.readHeader(s.off); ok {
		off, s.off = s.off, s.off+recordHeaderSize+int64(r.size)
		return r, off, true
	}
	if s.err != nil || s.off >= s.end {
		return r, 0, false
	}
	from := s.off
	for s.off++; s.find(); s.off++ {
		if r, ok := s.readHeader(s.off); ok {
			s.skipped = s.off - from
			off, s.off = s.off, s.off+recordHeaderSize+int64(r.size)
			return r, off, true
		}
		if s.err != nil {
			return r, 0, false
		}
	}
	s.torn = s.end - from
	s.off = s.end
	return r, 0, false
}

// readHeader reads the header at off. ok is also false if its payload is
// incomplete.
func (s *scanner) readHeader(off int64) (r record, ok bool) {
	if off+recordHeaderSize > s.end {
		return r, false
	}
	if n, err := s.r.ReadAt(s.hdr[:], off); n < len(s.hdr) {
		if err != io.EOF {
			s.err = err
		}
		return r, false
	}
	r, ok = parseRecord(s.hdr[:])
	return r, ok && off+recordHeaderSize+int64(r.size) <= s.end
}

// find moves off to the next magic at or after it.
func (s *scanner) find() bool {
	if s.buf == nil {
		s.buf = make([]byte, 64<<10)
	}
	for s.off+recordHeaderSize <= s.end {
		b := s.buf[:min(int64(len(s.buf)), s.end-s.off)]
		n, err := s.r.ReadAt(b, s.off)
		if i := bytes.Index(b[:n], []byte(recordMagic)); i >= 0 {
			s.off += int64(i)
			return true
		}
		if n < len(b) {
			if err != io.EOF {
				s.err = err
			}
			return false
		}
		s.off += int64(n - len(recordMagic) + 1)
	}
	return false
}

// segment is one file. The fields below refs are guarded by Journal.mu.
type segment struct {
	path  string
	first uint64 // from its name; no record has a lower number
	after bool   // a barrier precedes it

	refs int // readers and, for the active segment, the writer
	f    file
	dead bool // removed from the list; the file is removed when refs is 0

	last    uint64 // highest sequence number; first-1 if there are no records
	size    int64  // end of the last valid record
	newest  int64  // time of the last block
	pending tally
	damaged bool
}

// tally contains counts of blocks.
type tally struct {
	blocks, samples, bytes int64
	kinds                  map[uint8]int64 // samples by kind
}

func (t *tally) add(r *ref) {
	t.blocks++
	t.bytes += int64(r.size)
	t.count(r.kind, int64(r.samples-r.done))
}

func (t *tally) sub(r *ref) {
	t.blocks--
	t.bytes -= int64(r.size)
	t.count(r.kind, -int64(r.samples-r.done))
}

// count adds samples of a kind.
func (t *tally) count(kind uint8, samples int64) {
	if t.kinds == nil {
		t.kinds = map[uint8]int64{}
	}
	t.samples += samples
	t.kinds[kind] += samples
}

// addAll adds another tally, multiplied by times: 1 adds it, -1 subtracts it.
func (t *tally) addAll(o tally, times int64) {
	t.blocks += times * o.blocks
	t.bytes += times * o.bytes
	for kind, samples := range o.kinds {
		t.count(kind, times*samples)
	}
}

func segmentPath(dir string, first uint64) string {
	return filepath.Join(dir, fmt.Sprintf("%020d.seg", first))
}
