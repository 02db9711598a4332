package push

import (
	"encoding/binary"
	"math/bits"

	"github.com/weir-run/weir/engine/batch"
)

// AppendStream appends a stream without its entries to a request. The caller must
// append exactly entries bytes of entries. labels is text such as the output of
// AppendLabels.
func AppendStream(dst []byte, labels string, entries int) []byte {
	n := entries
	if labels != "" {
		n += stringSize(labels)
	}
	dst = binary.AppendUvarint(append(dst, 0x0a), uint64(n))
	if labels != "" {
		dst = appendString(dst, 0x0a, labels)
	}
	return dst
}

// EntrySize returns the number of bytes that AppendEntry appends.
func EntrySize(t int64, line string, meta []batch.Label) int {
	n := entrySize(t, line, meta)
	return 1 + uvarintSize(n) + n
}

// AppendEntry appends an entry to a stream; t is Unix ns.
func AppendEntry(dst []byte, t int64, line string, meta []batch.Label) []byte {
	dst = binary.AppendUvarint(append(dst, 0x12), uint64(entrySize(t, line, meta)))
	seconds, nanos := split(t)
	dst = append(dst, 0x0a, byte(timeSize(seconds, nanos)))
	if seconds != 0 {
		dst = binary.AppendUvarint(append(dst, 0x08), seconds)
	}
	if nanos != 0 {
		dst = binary.AppendUvarint(append(dst, 0x10), nanos)
	}
	if line != "" {
		dst = appendString(dst, 0x12, line)
	}
	for _, l := range meta {
		dst = binary.AppendUvarint(append(dst, 0x1a), uint64(labelSize(l)))
		if l.Name != "" {
			dst = appendString(dst, 0x0a, l.Name)
		}
		if l.Value != "" {
			dst = appendString(dst, 0x12, l.Value)
		}
	}
	return dst
}

// entrySize returns the length of an entry without its tag and length.
func entrySize(t int64, line string, meta []batch.Label) int {
	n := 2 + timeSize(split(t))
	if line != "" {
		n += stringSize(line)
	}
	for _, l := range meta {
		m := labelSize(l)
		n += 1 + uvarintSize(m) + m
	}
	return n
}

// split returns a time as the fields of a Timestamp: seconds (in two's complement
// if negative) and nanoseconds.
func split(t int64) (seconds, nanos uint64) {
	s, n := t/1e9, t%1e9
	if n < 0 {
		s, n = s-1, n+1e9
	}
	return uint64(s), uint64(n)
}

// timeSize returns the length of a Timestamp without its tag and length, at most
// 17.
func timeSize(seconds, nanos uint64) (n int) {
	if seconds != 0 {
		n = 1 + (bits.Len64(seconds)+6)/7
	}
	if nanos != 0 {
		n += 1 + (bits.Len64(nanos)+6)/7
	}
	return n
}

func labelSize(l batch.Label) (n int) {
	if l.Name != "" {
		n += stringSize(l.Name)
	}
	if l.Value != "" {
		n += stringSize(l.Value)
	}
	return n
}

func stringSize(s string) int { return 1 + uvarintSize(len(s)) + len(s) }

func appendString(dst []byte, tag byte, s string) []byte {
	return append(binary.AppendUvarint(append(dst, tag), uint64(len(s))), s...)
}

func uvarintSize(n int) int { return (bits.Len64(uint64(n)|1) + 6) / 7 }
